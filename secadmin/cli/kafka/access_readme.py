"""README.txt in the folder of an access: how to use each client. It holds no secret."""

from __future__ import annotations

from catalog.topics import (
    FENCE_HEADER,
    ID_HEADER,
    LABEL_HEADER,
    LEFT_OUT_HEADER,
    REASON_HEADER,
)
from secadmin.cli.kafka.access import Access

_HEAD = """\
{title}

The files here are secret: whoever has them has this access. They are yours alone (0600).
End the access:  secadmin unsubscribe DIR   (DIR is this folder)

  client.properties   for Java clients; the CA is inside
  librdkafka.conf     for kcat -F, and for clients built on librdkafka 2.6.1 or later;
                      it names ca.pem by its full path: change that line if you move the folder
  ca.pem              the CA that vouches for the brokers
"""

_READ = """
Ours:    secadmin consume DIR
         It follows every change of your rights.

Java's console consumer:
             python3 -m deploy console DIR      (in the project's folder, which has the jars)
         or, with the programs of a Kafka that you have:
             {java_flag} '{java_topic}' \\
                 --consumer.config client.properties --property print.headers=true
         When a topic is denied to it, it ends: "Not authorized to access topics". Begun again, it
         goes on with what you may read then. The last records before may come again:
             while python3 -m deploy console DIR; do sleep 1; done

Java (KafkaConsumer):
             Properties settings = new Properties();
             settings.load(new FileReader("client.properties"));
             var consumer = new KafkaConsumer<>(settings, new StringDeserializer(),
                                                new StringDeserializer());
             consumer.subscribe({java_subscribe});
         When a topic is denied, poll throws a TopicAuthorizationException. Catch it, wait for a
         second and poll again. Then the consumer follows every change.

kcat:    kcat -F librdkafka.conf -X session.timeout.ms=6000 -G {group} \\
             '{subscription}' -f '%h\\t%s\\n'
         {kcat}
         When a topic is denied to it, it ends: "Topic authorization failed". Begun again, it goes
         on after a few seconds (its group waits for the one that has ended).

Python (confluent-kafka):
             lines = open("librdkafka.conf").read().splitlines()
             consumer = Consumer(dict(line.split("=", 1) for line in lines))
             consumer.subscribe([r"{subscription}"])
         When a topic is denied, poll returns a message with the error
         TOPIC_AUTHORIZATION_FAILED. Subscribe again a second later. Then it follows every change.

Others, when a topic is denied (docs/clients.md of the project says what to set, and
tests/clients/programs has a program for each):
  kafka-python  poll raises TopicAuthorizationFailedError again and again, and the client does not
                find other topics. Catch it, unsubscribe, and subscribe by the pattern again.
  aiokafka      getmany raises TopicAuthorizationFailedError. Catch it and go on.
  kafkajs       The consumer crashes, and looks for topics only when it subscribes. Begin a new
                consumer after a crash, and when admin.listTopics() gives other topics.
  Spark         It leaves the topic out. A batch that was reading it fails, and the query gives
                nothing more until the right is back: begin the query with a new checkpoint.
  Flink         The job fails. Begin a new job: it goes on from what the group has committed. (A
                job that goes on from its own state fails again.)

Rules of the house
- Skip a record that has the header "{fence}": it carries no value and no meaning for you.
{headers}
- The group's name must begin with "{prefix}".
- What the topic still holds from before can be read too.
{moves}"""

_KCAT = """\
Needs librdkafka 2.6.1 or later (kcat -V names it). The kcat of Debian 12 has 2.0.2: it
         cannot log in to Kafka 4 and says only that authentication failed. Use another client, or
         lend kcat the library inside the Python package confluent-kafka (docs/clients.md)."""
_RESULT_HEADERS = """\
- The header "{label}" says which categories went into a result; "{id}" is the same when a result
  is delivered again, so a reader that needs each once remembers ids (secadmin consume does).
- A record that has "{fence}" and "{left_out}" is a tuple that the query left out, because its state
  is full. The second header says why (secadmin consume --left-out shows it)."""
_QUARANTINE_HEADERS = """\
- The value is the record as it came; the header "{reason}" says why it is not in the stream."""
_MOVES = """\
- When your rights change, topics under the same pattern come and go. So subscribe by the pattern,
  never by one topic's name, and treat an authorization error on a topic as something that passes.
  There may be several at a time, and there is no order between two. If a result comes in two of
  them, it has the same id.
  librdkafka leaves a partition alone if the error came while it asked where its group had stopped.
  That is why you subscribe again after an error.
"""

_SEND = """
Ours:    secadmin produce {name} FILE      (it makes an access of its own)

Java's console producer:
             python3 -m deploy console DIR < records.jsonl      (in the project's folder)
         or, with the programs of a Kafka that you have:
             kafka-console-producer.sh --bootstrap-server {bootstrap} --topic {topic} \\
                 --producer.config client.properties

kcat:    kcat -F librdkafka.conf -P -t {topic} records.jsonl
         {kcat}

Python (confluent-kafka):
             lines = open("librdkafka.conf").read().splitlines()
             producer = Producer(dict(line.split("=", 1) for line in lines))
             producer.produce("{topic}", value=json.dumps({{"attribute": 1}}))
             producer.flush()

Rules of the house
- A record is one JSON object in UTF-8 with the stream's attributes; an attribute that is not
  required may be absent or null. No key is read, and no header but one that a label rule names.
- A record that does not fit goes to the stream's quarantine with the reason.
- A transactional.id must begin with "{transactions}". What you do not commit within a minute (or
  the cluster's transaction.max.timeout.ms) is aborted; until then nothing behind it is read.
- If you may not send any more and then may again, you have another topic: make a new folder.
"""


def readme(access: Access) -> str:
    """The text for a sender's, a subscriber's or a quarantine reader's folder."""
    if access.writes:
        title = f"Sending to the stream {access.name}"
        sending = _SEND.format(
            name=access.name,
            topic=access.topic,
            bootstrap=access.bootstrap,
            kcat=_KCAT,
            transactions=f"{access.principal}.",
        )
        return _HEAD.format(title=title) + sending
    by_pattern = access.topic_pattern is not None
    what = "the output" if by_pattern else "the quarantine of the stream"
    subscription = access.subscription
    headers = _RESULT_HEADERS if by_pattern else _QUARANTINE_HEADERS
    option = "--include" if by_pattern else "--topic"
    java = f"kafka-console-consumer.sh --bootstrap-server {access.bootstrap} {option}"
    listed = subscription.replace("\\", "\\\\")
    return _HEAD.format(title=f"Reading {what} {access.name}") + _READ.format(
        group=access.group,
        kcat=_KCAT,
        subscription=subscription,
        java_flag=java,
        java_topic=subscription,
        java_subscribe=f'Pattern.compile("{listed}")' if by_pattern else f'List.of("{listed}")',
        fence=FENCE_HEADER,
        headers=headers.format(
            label=LABEL_HEADER,
            id=ID_HEADER,
            reason=REASON_HEADER,
            fence=FENCE_HEADER,
            left_out=LEFT_OUT_HEADER,
        ),
        prefix=access.group_prefix,
        moves=_MOVES if by_pattern else "",
    )

"""README.txt in the folder of an access: how to use it with three clients. It holds no secret."""

from __future__ import annotations

from catalog.topics import FENCE_HEADER, ID_HEADER, LABEL_HEADER, REASON_HEADER
from secadmin.cli.access import Access

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

kcat:    kcat -F librdkafka.conf -G {group} '{subscription}' -f '%h\\t%s\\n'

Java:    {java_flag} '{java_topic}' --consumer.config client.properties \\
             --property print.headers=true
         or, in a program:
             Properties settings = new Properties();
             settings.load(new FileReader("client.properties"));
             var consumer = new KafkaConsumer<>(settings, new StringDeserializer(),
                                                new StringDeserializer());
             consumer.subscribe({java_subscribe});

Python (confluent-kafka):
             lines = open("librdkafka.conf").read().splitlines()
             consumer = Consumer(dict(line.split("=", 1) for line in lines))
             consumer.subscribe([r"{subscription}"])

Rules of the house
- Skip a record that has the header "{fence}": it carries no value and no meaning for you.
{headers}
- The group's name must begin with "{prefix}".
- What the topic still holds from before can be read too.
{moves}"""

_RESULT_HEADERS = """\
- The header "{label}" says which categories went into a result; "{id}" is the same when a result
  is delivered again, so a reader that needs each once remembers ids."""
_QUARANTINE_HEADERS = """\
- The value is the record as it came; the header "{reason}" says why it is not in the stream."""
_MOVES = """\
- When your rights change you are moved to another topic: one authorization error, then the new
  topic appears under the same pattern. So subscribe by the pattern, never by one topic's name, and
  treat an authorization error on a topic as something that passes. librdkafka leaves a partition
  alone if the error came while it asked where its group had stopped: subscribe again a second
  after an error on a partition of which you have read nothing since it was assigned.
"""

_SEND = """
Ours:    secadmin produce {name} FILE      (it makes an access of its own)

kcat:    kcat -F librdkafka.conf -P -t {topic} records.jsonl

Java:    kafka-console-producer.sh --bootstrap-server {bootstrap} --topic {topic} \\
             --producer.config client.properties

Python (confluent-kafka):
             lines = open("librdkafka.conf").read().splitlines()
             producer = Producer(dict(line.split("=", 1) for line in lines))
             producer.produce("{topic}", value=json.dumps({{"attribute": 1}}))
             producer.flush()

Rules of the house
- A record is one JSON object in UTF-8 with the stream's attributes; an attribute that is not
  required may be absent or null. Keys and headers are not read.
- A record that does not fit goes to the stream's quarantine with the reason.
"""


def readme(access: Access) -> str:
    """The text for a sender's, a subscriber's or a quarantine reader's folder."""
    if access.writes:
        title = f"Sending to the stream {access.name}"
        sending = _SEND.format(name=access.name, topic=access.topic, bootstrap=access.bootstrap)
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
        subscription=subscription,
        java_flag=java,
        java_topic=subscription,
        java_subscribe=f'Pattern.compile("{listed}")' if by_pattern else f'List.of("{listed}")',
        fence=FENCE_HEADER,
        headers=headers.format(label=LABEL_HEADER, id=ID_HEADER, reason=REASON_HEADER),
        prefix=access.group_prefix,
        moves=_MOVES if by_pattern else "",
    )

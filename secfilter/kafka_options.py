"""Options with which Spark's Kafka source and sink connect as the engine's account."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from catalog.broker_patience import ANSWER_MS
from catalog.private_file import write_private
from catalog.settings import KafkaAccount, KafkaSettings

_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PROVIDER = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
_JAAS_FILE = "sasl.jaas.config"
# What Spark's consumers name their groups with. They use none, so the account has no right to any.
GROUP_PREFIX = "secfilter"
EARLIEST = -2
Offsets = Mapping[str, Mapping[str, int]]


def written(offsets: Mapping[int, int]) -> dict[str, int]:
    """A topic's offsets as Spark writes them: the numbers of partitions are texts."""
    return {str(partition): offset for partition, offset in offsets.items()}


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """Connection options. None of them holds the password, but one names the file with it."""

    connection: Mapping[str, str]

    def source(
        self,
        topics: Sequence[str],
        starting: Offsets | None = None,
        *,
        sent: bool = False,
        headers: bool = True,
        most: int | None = None,
    ) -> dict[str, str]:
        """Options of a streaming source over `topics`: lab topics, or in topics if `sent`.

        Of in topics only committed transactions are read. Where the headers of a record have no
        meaning, they are not read, which saves time.

        `starting` is {topic: {partition: offset}} for all partitions. It is used if there is no
        checkpoint yet. Without it, the topics are read from their beginning.

        A micro-batch reads `most` records, or all that there are.
        """
        start = json.dumps(starting, sort_keys=True) if starting else "earliest"
        return {
            **self.connection,
            "subscribe": ",".join(topics),
            "startingOffsets": start,
            "includeHeaders": str(headers).lower(),
            **({"kafka.isolation.level": "read_committed"} if sent else {}),
            **({} if most is None else {"maxOffsetsPerTrigger": str(most)}),
            "groupIdPrefix": GROUP_PREFIX,
            # A gap in a lab topic is never skipped silently: the query fails.
            "failOnDataLoss": "true",
        }

    def sink(self, client: str) -> dict[str, str]:
        """Options of a sink. Each row names its topic.

        Sinks of the same `client` share a producer. If one must wait, the others wait too.
        """
        return {
            **self.connection,
            "kafka.client.id": client,
            # A missing or forbidden topic fails the query now, not after a minute.
            "kafka.max.block.ms": "5000",
            "kafka.linger.ms": "0",
            # The topics have their own limits, of 4 MiB at most. A limit of 1 MB would stop the
            # query.
            # The embedded broker does not accept longer requests (`deploy.broker_memory`).
            "kafka.max.request.size": str(4 * 1024 * 1024 + 512 * 1024),
            "kafka.compression.type": "none",
            # A broker handles one request of a connection at a time. Meanwhile new records are
            # collected for the next request: a single record is sent at once, many together.
            "kafka.max.in.flight.requests.per.connection": "1",
            "kafka.batch.size": str(64 * 1024),
            # If a batch were given up, later batches would overtake it. Ingest looks only at the
            # newest record, so it would never send that batch again. So retry until it is written.
            "kafka.enable.idempotence": "true",
            "kafka.delivery.timeout.ms": str(2**31 - 1),
        }


def kafka_options(settings: KafkaSettings, account: KafkaAccount, secrets: Path) -> KafkaOptions:
    """The options for that account of the cluster.

    The log-in is written to a private file in the folder `secrets` (mode 0700). Kafka's client
    reads that file itself, so the log-in is in no process argument, plan, checkpoint or log.
    """
    secrets.mkdir(parents=True, exist_ok=True, mode=0o700)
    secrets.chmod(0o700)
    login = f"{_LOGIN} required username={_quoted(account.username)}"
    # In one step, because a client may be reading it.
    write_private(secrets / _JAAS_FILE, f"{login} password={_quoted(account.password())};")
    folder = secrets.resolve()
    return KafkaOptions(
        {
            "kafka.bootstrap.servers": settings.bootstrap,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": f"${{file:{folder}:{_JAAS_FILE}}}",
            "kafka.config.providers": "file",
            "kafka.config.providers.file.class": _PROVIDER,
            "kafka.config.providers.file.param.allowed.paths": str(folder),
            "kafka.ssl.truststore.type": "PEM",
            # The certificates themselves, because other machines may not have the file.
            "kafka.ssl.truststore.certificates": settings.ca_file.read_text(),
            "kafka.request.timeout.ms": str(ANSWER_MS),
        }
    )


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

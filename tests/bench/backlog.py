"""A backlog: records that wait in a topic, the same for the platform and for plain Spark jobs."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from confluent_kafka import Consumer, Producer, TopicPartition

SCHEMA = "trade"
ATTRIBUTES = [
    {"name": "ts", "type": "timestamp", "required": True},
    {"name": "symbol", "type": "string", "required": True},
    {"name": "venue", "type": "string"},
    {"name": "price", "type": "double", "required": True},
    {"name": "quantity", "type": "bigint", "required": True},
    {"name": "buyer", "type": "boolean"},
]
# The same for Spark.
SPARK_SCHEMA = (
    "ts timestamp, symbol string, venue string, price double, quantity bigint, buyer boolean"
)
_DIFFERENT = 10_000
_LARGEST = 1_000


def threshold(number: int) -> int:
    """What the query of that number wants `quantity` to be larger than: about half pass."""
    return _LARGEST // 2 + number


def plain_topic(number: int) -> str:
    """Where the job of that number writes."""
    return f"bench-plain-{number}"


class Backlog:
    """Writes records of about 120 bytes; their number is a multiple of 10,000."""

    def __init__(self, producer: Producer, topic: str) -> None:
        chance = random.Random(4)  # the same records in every run
        rows = [_row(chance) for _ in range(_DIFFERENT)]
        self._records = [json.dumps(row, separators=(",", ":")).encode() for row in rows]
        self._quantities = [int(row["quantity"]) for row in rows]
        self._producer, self._topic = producer, topic

    def write(self, count: int) -> None:
        """Write `count` records and wait for them."""
        for _ in range(count // _DIFFERENT):
            for record in self._records:
                self._producer.produce(self._topic, record)
            self._producer.poll(0)
            # The client's own queue holds 100,000.
            self._producer.flush()

    def passing(self, count: int, query: int) -> int:
        """How many of `count` records pass the query of that number."""
        passing = sum(quantity > threshold(query) for quantity in self._quantities)
        return count // _DIFFERENT * passing


def _row(chance: random.Random) -> dict[str, str | float | int | bool]:
    micros = chance.randrange(1_000_000)
    return {
        "ts": f"2026-11-20T{chance.randrange(8, 17):02}:30:{chance.randrange(60):02}.{micros:06}Z",
        "symbol": chance.choice(("VOD.L", "BP.L", "HSBA.L", "SHEL.L", "AZN.L")),
        "venue": chance.choice(("XLON", "XNYS", "XPAR", "XETR")),
        "price": round(chance.uniform(1, 900), 2),
        "quantity": chance.randrange(1, _LARGEST + 1),
        "buyer": chance.random() < 0.5,
    }


class Ends:
    """How many records topics of one partition hold; it reads none of them."""

    def __init__(self, config: dict[str, object]) -> None:
        self._consumer = Consumer({**config, "group.id": "bench-ends", "log_level": 0})

    def of(self, topics: Sequence[str]) -> list[int]:
        """The offset that the next record of each topic will get."""
        places = (TopicPartition(topic, 0) for topic in topics)
        return [self._consumer.get_watermark_offsets(place, timeout=10)[1] for place in places]

    def close(self) -> None:
        """End the connection."""
        self._consumer.close()

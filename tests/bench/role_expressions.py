"""How long a record waits for its role expression: one that is known, and new ones."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from confluent_kafka import Consumer, Producer

from tests.bench.figure import Figure, middle
from tests.bench.world import PASSWORD, World, tuple_now

RUNS, KNOWN_RUNS = 5, 30
NEW_MS = 10_000.0
_PATIENCE_S = 120.0


def role_expressions(world: World) -> Iterator[Figure]:
    """From sending a record to its arrival, by what is new in its role expression.

    The reader holds all roles. A new role brings the reader another topic, a new condition brings
    the query another category, and another text of a known condition brings nothing.
    """
    roles = [f"EXPRESSED{number}" for number in range(RUNS + 1)]
    for role in roles:
        world.admin.post("/roles", name=role)
        world.admin.post("/users/admin/roles", role=role)
    reader = world.log_in("admin", PASSWORD)
    world.add_stream("expressed", label_rule="HEADER roles")
    world.add_query("allowed", "SELECT n, sent FROM expressed")
    world.grant("ADMIN", "stream", "expressed", "READ TUPLE")
    consumer = world.subscriber(reader, "allowed")
    reader.wait_until_fed()
    producer, topic = world.sender("expressed")
    sending = _Sending(producer, topic, consumer)
    sending.took_ms(roles[0])
    first = [sending.took_ms(role) for role in roles[1:]]
    clauses = [sending.took_ms(f"{roles[0]} | {role}") for role in roles[1:]]
    texts = [sending.took_ms(f"{' ' * blanks}{roles[0]}") for blanks in range(1, RUNS + 1)]
    known = [sending.took_ms(roles[0]) for _ in range(KNOWN_RUNS)]
    consumer.close()
    yield middle("an expression that names a role first", first, "ms", NEW_MS)
    yield middle("an expression with a new condition", clauses, "ms", NEW_MS)
    yield middle("an expression in other words", texts, "ms", NEW_MS)
    yield middle("an expression that is known", known, "ms")


class _Sending:
    """Sends one record after the other, and waits for each."""

    def __init__(self, producer: Producer, topic: str, consumer: Consumer) -> None:
        self._producer, self._topic, self._consumer = producer, topic, consumer
        self._number = 0

    def took_ms(self, expression: str) -> float:
        """How long a record with this expression takes. Raises TimeoutError if it does not come."""
        self._number += 1
        started = time.monotonic()
        headers: list[tuple[str, str | bytes | None]] = [("roles", expression.encode())]
        self._producer.produce(self._topic, tuple_now(self._number), headers=headers)
        self._producer.flush(10)
        while time.monotonic() < started + _PATIENCE_S:
            message = self._consumer.poll(0.05)
            if message is None or message.error() is not None or not message.value():
                continue
            if json.loads(message.value() or b"")["n"] == self._number:
                return (time.monotonic() - started) * 1000
        raise TimeoutError(f"record {self._number} did not arrive")

"""Moves the time of the outputs of one query, with ticks in lab.<output>.

Only an output that other queries read gets ticks, and only if ticks move the time of all that its
query reads (`Relation.by_ticks`). A tick T says that no result before T comes behind it. How a time
is proven depends on the query:

- A query that keeps state has a watermark. When a batch is committed, all results before the
  watermark of this batch are written, but for those that are held (`catalog.held_time`).
- A query that keeps none echoes each tick of its sources to `time.results`, as ingest does
  (`secfilter.ticker`). By then its tasks have handed on all that came before. The earliest of the
  newest echoes of all partitions of all sources is proven once all before them is in Kafka
  (`secfilter.written`).

While a side run still feeds an output, its results are not proven by those of the main run. So the
outputs get no ticks. The same holds for an output that moves (`catalog.moves`). As in
`secfilter.ticker`, a tick goes out when its proof is `SETTLED_S` old.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from confluent_kafka import Consumer, Producer
from pyspark.sql import Column
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from catalog.analysis import analyse
from catalog.errors import Unavailable
from catalog.held_time import held_ms
from catalog.plan import is_stateful, source_nodes
from catalog.runs import QueryRun
from catalog.topics import RESULT_ECHO_TOPIC
from secfilter.beside import is_side
from secfilter.echoes import heard, ignored, keep_ticking, tick_clients
from secfilter.lab import is_tick, tick_record
from secfilter.stream_time import Place, StreamTime, echo_of
from secfilter.ticker import SETTLED_S, Ticking
from secfilter.timeline import SHIFT_MS
from secfilter.written import Written

_TURN_S = 0.25
# Spark rounds the watermark of a join to milliseconds, more than once.
_ROUNDED_MS = 10
_WATERMARK = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def ticked_topics(run: QueryRun) -> list[str]:
    """The topics lab.<output> to which ticks of the query go. A side run sends none.

    An output that moves gets none either, because each of its two runs knows only its own results.
    """
    if is_side(run.name):
        return []
    alone = (o for o in run.outputs if not o.moves)
    return [o.relation.topic for o in alone if o.labelled and o.relation.by_ticks]


def echoes(run: QueryRun) -> bool:
    """Whether the query echoes the ticks of its sources."""
    return bool(ticked_topics(run)) and not is_stateful(run.plan)


def echo_column(life: str, source: int) -> Column:
    """The echo of a tick, from its record in the lab topic. `source` is its number in the plan."""
    place = (fn.col(name).cast("string") for name in ("partition", "offset"))
    time_ms = fn.col("value").cast("string")
    echo = fn.concat_ws(":", fn.lit(f"{life}:{source}"), *place, time_ms)
    return fn.when(is_tick(fn.col("headers")), echo)


class Proof(Protocol):
    """Knows how far a query has come."""

    def await_ms(self, consumer: Consumer) -> int | None:
        """The time before which all results are written, or None; waits a moment for news."""

    def holds(self) -> bool:
        """Whether what it said last is really written."""


@dataclass
class BatchProof:
    """The watermark of the newest batch of a query that keeps state."""

    query: StreamingQuery
    held_ms: int
    turn_s: float = _TURN_S
    _newest: tuple[int, int | None] = (-1, None)

    def await_ms(self, consumer: Consumer) -> int | None:
        """See `Proof`."""
        time.sleep(self.turn_s)
        return self.now_ms()

    def now_ms(self) -> int | None:
        """The time before which all results are written, or None if it is not known."""
        progress: Any = self.query._jsq.lastProgress()
        # While nothing comes, Spark reports the watermark of the batch that is to come.
        if progress is not None and progress.durationMs().containsKey("addBatch"):
            batch, watermark = progress.batchId(), progress.eventTime().get("watermark")
            if batch != self._newest[0]:
                self._newest = batch, self._proven_ms(watermark or "")
        return self._newest[1]

    def _proven_ms(self, watermark: str) -> int | None:
        if not _WATERMARK.fullmatch(watermark):
            return None
        place_ms = round(datetime.fromisoformat(watermark).timestamp() * 1_000)
        proven_ms = place_ms - SHIFT_MS - self.held_ms - _ROUNDED_MS
        return proven_ms if proven_ms > 0 else None

    def holds(self) -> bool:
        """Whether all is written: Spark commits a batch after its tasks have written all."""
        return True


def proof_of(run: QueryRun, query: StreamingQuery) -> BatchProof | None:
    """What proves that results of a query that keeps state are written; None for another one."""
    return BatchProof(query, held_ms(analyse(run.plan).root)) if is_stateful(run.plan) else None


@dataclass
class EchoProof:
    """What the echoes of a query without state say."""

    life: str
    places: tuple[Place, ...]
    written: Written
    time: StreamTime = field(default_factory=StreamTime)

    def await_ms(self, consumer: Consumer) -> int | None:
        """See `Proof`."""
        messages = heard(consumer, _TURN_S)
        found = [None if message.error() else echo_of(message.value()) for message in messages]
        own = (echo for echo in found if echo is not None and echo.life == self.life)
        for echo in self.written.counting(own):
            self.time.hear(echo)
        return self.time.time_ms(self.places)

    def holds(self) -> bool:
        """Whether all that was given to the producer is written."""
        return self.written.holds()


@dataclass(frozen=True, slots=True)
class Ticked:
    """What a ticker of outputs knows of its query.

    `topics` get the ticks. `held` says whether a side run feeds one of them. `partitions` are the
    numbers of partitions of all topics, and `proof` gives the proof of a query whose sources have
    these partitions.
    """

    name: str
    topics: Sequence[str]
    sources: Sequence[str]
    proof: Callable[[Mapping[str, int]], Proof]
    held: Callable[[], bool]
    partitions: Callable[[], Mapping[str, int]]


def ticked_of(
    run: QueryRun,
    query: StreamingQuery,
    life: str,
    *,
    written: Written,
    held: Callable[[], bool],
    partitions: Callable[[], Mapping[str, int]],
) -> Ticked:
    """The outputs of the run that `query` computes. Echoes of its own ticks have that `life`."""
    sources = [each.relation.topic for each in source_nodes(run.plan)]

    def proof(counts: Mapping[str, int]) -> Proof:
        of_batches = proof_of(run, query)
        if of_batches is not None:
            return of_batches
        places = ((n, p) for n, topic in enumerate(sources) for p in range(counts[topic]))
        return EchoProof(life, tuple(places), written)

    return Ticked(run.name, ticked_topics(run), sources, proof, held, partitions)


class OutputTicker:
    """Ticks of the outputs of one query, in one thread."""

    def __init__(self, ticked: Ticked, ticking: Ticking) -> None:
        self._ticked, self._ticking = ticked, ticking
        self._proven_ms = -1
        self._due: list[tuple[float, int]] = []
        self._next_at = 0.0

    def keep_up(self, goes_on: Callable[[], bool]) -> None:
        """Tick while the query runs."""

        def tick() -> None:
            with self._begun() as (proof, counts, producer, consumer):
                while goes_on():
                    self._turn(proof, counts, consumer)
                    self._pass_on(counts, producer, goes_on)

        keep_ticking(self._ticked.name, tick, goes_on)

    @contextmanager
    def _begun(self) -> Iterator[tuple[Proof, dict[str, int], Producer, Consumer]]:
        self._due.clear()
        with tick_clients(self._ticking.config, RESULT_ECHO_TOPIC) as (producer, consumer):
            counts = self._counts()
            yield self._ticked.proof(counts), counts, producer, consumer

    def _counts(self) -> dict[str, int]:
        found, needed = self._ticked.partitions(), {*self._ticked.topics, *self._ticked.sources}
        if missing := needed - found.keys():
            raise Unavailable(f"the topic {min(missing)} is missing")
        return {topic: found[topic] for topic in needed}

    def _turn(self, proof: Proof, counts: Mapping[str, int], consumer: Consumer) -> None:
        now_ms = proof.await_ms(consumer)
        now = time.monotonic()
        if now_ms is None or now_ms <= self._proven_ms or now < self._next_at:
            return
        if self._ticked.held() or not proof.holds():
            return
        if self._counts() != counts:
            raise Unavailable("a topic has got partitions")
        self._proven_ms, self._next_at = now_ms, now + self._ticking.every_s
        self._due.append((now + SETTLED_S, now_ms))

    def _pass_on(
        self, counts: Mapping[str, int], producer: Producer, goes_on: Callable[[], bool]
    ) -> None:
        now = time.monotonic()
        due = [time_ms for at, time_ms in self._due if at <= now]
        self._due = [each for each in self._due if each[0] > now]
        for time_ms in due if goes_on() else ():
            headers, value = tick_record(time_ms)
            for topic in self._ticked.topics:
                for partition in range(counts[topic]):
                    producer.produce(
                        topic,
                        value,
                        partition=partition,
                        headers=list(headers),
                        on_delivery=ignored,
                    )
        producer.poll(0)

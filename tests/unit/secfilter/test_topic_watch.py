"""Which topics are at fault, by what Kafka says of them; and what of the runs goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.errors import Unavailable
from catalog.label import Label
from catalog.plan import Source
from catalog.relation import Relation, RelationKind
from catalog.runs import FedOutput, IngestRun, IngestStream, QueryRun, topics_of
from catalog.schema import Attribute, Schema, Type
from secfilter.background import Task
from secfilter.topic_faults import ANEW, GONE, faults_in, spared
from secfilter.topic_watch import TopicWatch
from tests.plans import whole
from tests.senders import sent

SCHEMA = Schema((Attribute("a", Type.STRING),))


def stream(number: int, partitions: int | None = 2) -> IngestStream:
    kind = RelationKind.STREAM
    relation = Relation(number, f"s{number}", kind, SCHEMA, None, 0)
    return sent(IngestStream(relation, Label.of(0), 1, 1, partitions=partitions))


ONE, TWO = stream(1), stream(2)
GROUP = IngestRun("ingest-1", (ONE, TWO))
OUTPUT = Relation(9, "o", RelationKind.OUTPUT, SCHEMA, None, 0)
QUERY = QueryRun("query-9", whole(Source(ONE.relation)), (FedOutput(OUTPUT),), Label.of(0), {})
RUNS = (GROUP, QUERY)
ALL = dict.fromkeys(sorted(topics_of(GROUP) | topics_of(QUERY)), 2)


def test_what_is_as_the_catalog_says_is_no_fault() -> None:
    assert faults_in(RUNS, {**ALL, "quarantine.s1": 7, "of.others": 1}) == {}
    assert faults_in([IngestRun("ingest-1", (stream(1, None),))], {**ALL, "in.s1": 7}) == {}


def test_each_topic_that_is_gone_is_at_fault() -> None:
    for topic in ALL:
        there = {name: count for name, count in ALL.items() if name != topic}
        assert faults_in(RUNS, there) == {topic: GONE}


def test_other_partitions_are_a_fault_where_tuples_keep_theirs() -> None:
    for topic in ("in.s1", "lab.s1"):
        (found,) = faults_in(RUNS, {**ALL, topic: 3}).items()
        assert found[0] == topic and "3 partitions, not 2" in found[1]


def test_only_what_uses_the_topic_stands_still() -> None:
    assert spared(GROUP, {}) is GROUP
    for topic in ("in.s1", "lab.s1", "quarantine.s1"):
        assert spared(GROUP, {topic: GONE}) == IngestRun("ingest-1", (TWO,))
    assert spared(GROUP, {"in.s1": GONE, "lab.s2": GONE}) is None
    assert spared(QUERY, {"lab.s1": GONE}) is None
    assert spared(QUERY, {"lab.o": GONE}) is None
    assert spared(QUERY, {"in.s1": GONE, "lab.s2": GONE}) is QUERY


@dataclass
class Hands:
    """A watch with hands on the time and on what Kafka says."""

    there: Mapping[str, int] | Exception = field(default_factory=lambda: dict(ALL))
    now: float = 0.0
    looks: int = 0

    def __post_init__(self) -> None:
        self.watch = TopicWatch(self.ask, lambda: self.now, self.begin)

    def begin(self, name: str, task: Task[Any]) -> None:
        task.do()

    def ask(self) -> Mapping[str, int]:
        self.looks += 1
        if isinstance(self.there, Exception):
            raise self.there
        return self.there

    def faults(self, seconds: float = 2.0) -> Mapping[str, str]:
        self.now += seconds
        return self.watch.faults(RUNS)


def without(topic: str) -> dict[str, int]:
    return {name: count for name, count in ALL.items() if name != topic}


def test_a_fault_is_seen_twice_and_over_once_it_is_not_seen() -> None:
    hands = Hands(without("in.s1"))
    assert hands.faults() == {} and hands.faults() == {}, "one look may be older than the topic"
    assert hands.faults() == {"in.s1": GONE}
    hands.there = ALL
    hands.faults()
    assert hands.faults() == {}


def test_what_was_found_holds_while_kafka_does_not_answer() -> None:
    hands = Hands(without("in.s1"))
    for _ in range(3):
        hands.faults()
    hands.there = Unavailable("Kafka did not answer")
    for _ in range(3):
        assert hands.faults() == {"in.s1": GONE}


def test_kafka_is_asked_every_two_seconds() -> None:
    hands = Hands()
    for _ in range(100):
        hands.faults(0.2)
    assert 9 <= hands.looks <= 11


def test_what_was_made_anew_is_forgotten_with_its_stream() -> None:
    hands = Hands()
    hands.watch.note_anew(["in.s1"])
    assert hands.faults() == {"in.s1": ANEW}
    assert hands.watch.faults([QUERY]) == {}, "it was removed"
    assert hands.faults() == {}

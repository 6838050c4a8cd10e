"""Senders with topics of their own: origins, crashes, transactions, and topics that are drained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Message, Producer

from catalog.origin import Origin, origin_of
from catalog.run_counts import LOST
from catalog.runs import IngestRun, IngestStream, Sender
from secfilter.after_commit import Drains
from secfilter.checkpoint import Checkpoint
from secfilter.lab_notes import notes_of
from secfilter.pace import Pace
from tests.integration.secfilter.plane import Feed, Plane, headers, tuple_at
from tests.integration.secfilter.test_delivery import prices
from tests.integration.secfilter.test_retention import forget

Until = Callable[[Callable[[], Any]], None]
RUN = "ingest-1"


def run_of(*streams: IngestStream) -> IngestRun:
    return IngestRun(RUN, streams)


def origins(lab: list[Message]) -> list[Origin | None]:
    return [origin_of(message.key()) for message in lab]


def checkpoint(plane: Plane) -> Checkpoint:
    found = plane.engine.checkpoints.previous(RUN)
    assert found is not None
    return found


@contextmanager
def transactions(plane: Plane, sender: Sender) -> Iterator[Callable[[int], None]]:
    """Begins a transaction; the function writes a tuple of that price, and waits for it."""
    config = plane.broker.admin_config()
    producer = Producer({**config, "transactional.id": f"{sender.topic}.t"})
    producer.init_transactions(30)

    def write(price: int) -> None:
        plane.write(producer, sender.topic, tuple_at(1, price=price))

    producer.begin_transaction()
    try:
        yield write
    except AbandonedError:
        producer.abort_transaction(30)
    else:
        producer.commit_transaction(30)


class AbandonedError(Exception):
    """Aborts a transaction."""


def abort(plane: Plane, sender: Sender, price: int) -> None:
    with transactions(plane, sender) as write:
        write(price)
        raise AbandonedError


def test_records_of_two_senders_at_one_place_are_two_tuples(plane: Plane) -> None:
    stream = plane.with_senders(plane.stream(0), 2)
    one, other = stream.senders
    plane.start(run_of(stream))
    for sender, price in ((one, 1), (other, 2)):
        plane.write(plane.producer, sender.topic, tuple_at(1, price=price))
    plane.write(plane.producer, other.topic, b"no JSON")
    lab = plane.read(f"lab.{stream.relation.name}", 2)
    assert {(str(origin_of(m.key())), dict(headers(m))["tuple-3"]) for m in lab} == {
        (f"{one.id}:0:0", f"1;{one.id}"),
        (f"{other.id}:0:0", f"1;{other.id}"),
    }
    (refused,) = plane.read(f"quarantine.{stream.relation.name}", 1)
    said = dict(headers(refused))
    assert (said["sender"], said["offset"]) == (str(other.id), "1")


def test_a_quiet_sender_and_a_kill_put_nothing_into_lab_twice(plane: Plane) -> None:
    """Its tuple is far from lab's end, and is not committed."""
    plane.engine = replace(plane.engine, pace=Pace(ingest_ms=60_000))
    stream = plane.with_senders(plane.stream(0), 2)
    quiet, busy = stream.senders
    lab, query = f"lab.{stream.relation.name}", plane.start(run_of(stream))
    plane.write(plane.producer, quiet.topic, tuple_at(1, price=-1))
    assert prices(plane.read(lab, 1)) == [-1]
    many = range(3_000)
    plane.write(plane.producer, busy.topic, *(tuple_at(1, price=price) for price in many))
    plane.read(lab, 1 + len(many))
    plane.break_off(query)
    assert checkpoint(plane).last_commit() == -1
    plane.start(run_of(stream))
    plane.write(plane.producer, quiet.topic, tuple_at(1, price=-2))
    found = plane.read(lab, 2 + len(many))
    assert sorted(prices(found)) == [-2, -1, *many]


def test_after_commits_lab_is_not_read_from_its_beginning(plane: Plane, until: Until) -> None:
    stream = plane.with_senders(plane.stream(0), 2)
    lab, query = f"lab.{stream.relation.name}", plane.start(run_of(stream))
    feeds = [Feed(plane, stream.senders[0].topic), Feed(plane, stream.senders[1].topic, 1_000_000)]

    def noted() -> int:
        at = checkpoint(plane)
        return int(notes_of(at).lab_ends(at.committed()).get(lab, {}).get("0", 0))

    for _ in range(2):
        before = noted()
        until(partial(_is_past, noted, before))
        plane.break_off(query)
        query = plane.start(run_of(stream))
    sent = [feed.end() for feed in feeds]
    found = plane.read(lab, sum(sent))
    assert len(set(origins(found))) == len(found) == sum(sent)


def _is_past(number: Callable[[], int], before: int) -> bool:
    return number() > before


# test_new_senders.py has this under load.
@pytest.mark.long
def test_a_new_sender_is_read_and_the_others_go_on(plane: Plane) -> None:
    both = plane.with_senders(plane.stream(0), 2)
    alone = replace(both, senders=both.senders[:1])
    lab, query = f"lab.{both.relation.name}", plane.start(run_of(alone))
    for sender, price in zip(both.senders, (1, 2), strict=True):
        plane.write(plane.producer, sender.topic, tuple_at(1, price=price))
    assert prices(plane.read(lab, 1)) == [1]
    plane.end(query)
    plane.start(run_of(both))
    plane.write(plane.producer, both.senders[0].topic, tuple_at(1, price=3))
    assert sorted(prices(plane.read(lab, 3))) == [1, 2, 3]


def test_what_is_committed_is_read_and_an_open_transaction_holds_up_its_sender_alone(
    plane: Plane,
) -> None:
    stream = plane.with_senders(plane.stream(0), 2)
    sender, other = stream.senders
    lab = f"lab.{stream.relation.name}"
    plane.start(run_of(stream))
    with transactions(plane, sender) as write:
        write(1)
        write(2)
    abort(plane, sender, 3)
    with transactions(plane, sender) as write:
        write(4)
        plane.write(plane.producer, other.topic, tuple_at(1, price=5))
        assert sorted(prices(plane.read(lab, 3))) == [1, 2, 5]
    assert sorted(prices(plane.read(lab, 4))) == [1, 2, 4, 5]


def test_a_topic_is_drained_once_all_that_was_committed_is_read(plane: Plane, until: Until) -> None:
    stream = plane.with_senders(plane.stream(0), 3)
    told: set[int] = set()
    draining = {sender.id for sender in stream.senders[:2]}
    plane.engine = replace(plane.engine, drains=Drains(lambda: draining, told.update))
    aborted, is_open, stays = stream.senders
    plane.start(run_of(stream))
    for sender in stream.senders:
        plane.write(plane.producer, sender.topic, tuple_at(1, price=sender.id))
    abort(plane, aborted, -1)
    with transactions(plane, is_open) as write:
        write(-2)
        until(lambda: aborted.id in told)
        assert told == {aborted.id}, "one has a transaction open, one may still send"
    until(lambda: is_open.id in told)
    assert stays.id not in told
    lab = plane.read(f"lab.{stream.relation.name}", 4)
    assert sorted(prices(lab)) == sorted([-2, *(sender.id for sender in stream.senders)])


def test_what_retention_takes_of_transactions_is_no_loss(plane: Plane, until: Until) -> None:
    stream = plane.with_senders(plane.stream(0), 1)
    (sender,) = stream.senders
    lab, query = f"lab.{stream.relation.name}", plane.start(run_of(stream))
    with transactions(plane, sender) as write:
        write(1)
    abort(plane, sender, 2)
    plane.read(lab, 1)
    end = plane.engine.positions.raw_ends(sender.topic)[0]
    until(lambda: notes_of(checkpoint(plane)).empty.get(sender.topic) == {"0": end})
    plane.end(query)
    assert checkpoint(plane).committed()[sender.topic]["0"] < end
    forget(plane, sender.topic, end)
    again = plane.engine.running(run_of(stream), settled=False)
    plane.queries.append(again._query)
    assert again.withheld()[LOST] == 0
    plane.write(plane.producer, sender.topic, tuple_at(1, price=3))
    assert sorted(prices(plane.read(lab, 2))) == [1, 3]


@pytest.mark.parametrize("partitions", [2])
def test_each_partition_of_each_sender_has_its_newest_origin(plane: Plane, partitions: int) -> None:
    stream = plane.with_senders(plane.stream(0, partitions=partitions), 2)
    query = plane.start(run_of(stream))
    for sender in stream.senders:
        for partition in range(partitions):
            for price in range(partition + 1):
                plane.write(plane.producer, sender.topic, tuple_at(1, price=price), to=partition)
    plane.read(f"lab.{stream.relation.name}", 6)
    plane.end(query)
    newest = plane.engine.positions.newest_origins([stream.relation.name])
    assert newest == {sender.id: {0: 0, 1: 1} for sender in stream.senders}

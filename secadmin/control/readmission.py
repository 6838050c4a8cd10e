"""Readmission: parked records get their labels, or go to the quarantine with the reason.

Ingest parks a record whose role expression is not fixed. Here its expression is looked up, and
registered if it is new. Then the record is sent again, with its label, through a sender of the
stream that only the platform writes. Nothing is lost meanwhile: what is parked stays parked until
it is moved.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from sqlalchemy import orm, select

from catalog.audit import PLATFORM
from catalog.categories import source_categories
from catalog.error_places import places_of
from catalog.errors import InvalidInput, PlatformError, Unavailable
from catalog.floors import read_floor
from catalog.label import PUBLIC, Label
from catalog.label_texts import Registered, check_text, register
from catalog.models import LabelText, Object, SenderRow
from catalog.permission import ObjectKind
from catalog.sender_state import SenderState
from catalog.topics import (
    LABEL_HEADER,
    REASON_HEADER,
    SENDER_HEADER,
    TAKEN_HEADER,
    quarantine_topic,
)
from secadmin.control.platform import Platform
from secadmin.control.role_texts import settle_registered
from secadmin.control.settlement import Settlement
from secadmin.kafka.parked import Moved, Parked, ParkedTopics

log = logging.getLogger(__name__)
_WAIT_S = 0.2
_AGAIN_S = 1.0
# A role may be added meanwhile, so a refusal is not kept for longer.
_REFUSED_S = 5.0
_REFUSALS = 10_000
# All other changes wait meanwhile, revocations too. To register one text takes some milliseconds.
_IN_ONE_CHANGE = 50
_NO_FLOOR = "the floor of the sender cannot be read; an administrator can lower it"
# A record of a sender's topic has at most 1 MiB, with its headers.
_MOST_BYTES = 1024 * 1024 - 4 * 1024
# The label of each text of a stream, by the stream's id, or why it has none.
_Decided = dict[tuple[int, str], Label | str]


@dataclass(frozen=True, slots=True)
class _Stream:
    """A stream that parks records: its id, its source category, the topic for readmission."""

    id: int
    name: str
    source: Label
    topic: str


@dataclass
class Readmission:
    """Decides about parked records. `now_s` is a clock that never goes back."""

    platform: Platform
    now_s: Callable[[], float] = time.monotonic
    _refused: dict[tuple[int, str], tuple[str, float]] = field(default_factory=dict)

    def decide(self, records: Sequence[Parked]) -> Sequence[Moved]:
        """What is written for these records. Raises Unavailable where that cannot be said now."""
        names = {record.stream for record in records}
        with self.platform.catalog.read() as session:
            streams = _streams(session, names)
        wanted = {
            (streams[record.stream], record.roles, record.sender)
            for record in records
            if record.roles is not None and record.stream in streams
        }
        decided = self._decided(wanted)
        with self.platform.catalog.read() as session:
            floors = _floors(session, {sender for _, _, sender in wanted})
        return list(_moved(records, streams, decided, floors))

    def _decided(self, wanted: Collection[tuple[_Stream, str, str]]) -> _Decided:
        """The label of each of these texts, or why it has none."""
        decided: _Decided = {}
        with self.platform.catalog.read() as session:
            decided |= _known(session, wanted)
        now = self.now_s()
        for key in [key for key, (_, until) in self._refused.items() if until <= now]:
            del self._refused[key]
        new = {}
        for stream, text, sender in wanted:
            key = stream.id, text
            if key not in decided and key in self._refused:
                decided[key] = self._refused[key][0]
            elif key not in decided:
                new[stream, text] = sender
        for stream in {stream for stream, _ in new}:
            texts = {text: sender for (of, text), sender in sorted_by_text(new) if of == stream}
            refused = self._mistakes(stream, texts)
            decided |= refused
            usable = [each for each in texts.items() if (stream.id, each[0]) not in refused]
            for start in range(0, len(usable), _IN_ONE_CHANGE):
                decided |= self._registered(stream, dict(usable[start : start + _IN_ONE_CHANGE]))
        return decided

    def _mistakes(self, stream: _Stream, texts: Collection[str]) -> dict[tuple[int, str], str]:
        """Why texts cannot be registered, of those that cannot. So mistakes cost no change.

        A sender could otherwise fill the audit log.
        """
        refused = {}
        with self.platform.catalog.read() as session:
            for text in texts:
                try:
                    check_text(session, text)
                except InvalidInput as refusal:
                    refused[stream.id, text] = self._refuse((stream.id, text), refusal.detail)
        return refused

    def _registered(self, stream: _Stream, texts: dict[str, str]) -> _Decided:
        """Register the texts, each with the id of the sender that used it first."""
        found: dict[str, Registered] = {}
        refused: _Decided = {}
        with self.platform.catalog.change(PLATFORM) as change:
            users = _users(change.session, texts.values())
            for text, sender in texts.items():
                try:
                    user = users.get(sender)
                    found[text] = register(change.session, stream.id, text, user)
                except InvalidInput as refusal:
                    refused[stream.id, text] = self._refuse((stream.id, text), refusal.detail)
            settlement = Settlement(change, change.now)
            settle_registered(settlement, stream.id, found.values())
            # The texts are the senders' data, so the audit log does not have them.
            detail = {"registered": len(found), "refused": len(texts) - len(found)}
            change.audit("register role expressions", f"stream {stream.name}", detail=detail)
        self.platform.alignment.align(settlement.topics)
        return refused | {(stream.id, text): each.label for text, each in found.items()}

    def _refuse(self, key: tuple[int, str], reason: str) -> str:
        """Keep the reason for a while. It may be dropped at once, so whoever needs it takes it."""
        if len(self._refused) >= _REFUSALS:
            del self._refused[next(iter(self._refused))]
        self._refused[key] = (reason, self.now_s() + _REFUSED_S)
        return reason


def _moved(
    records: Sequence[Parked],
    streams: dict[str, _Stream],
    decided: _Decided,
    floors: dict[str, Label | None],
) -> Iterator[Moved]:
    for record in records:
        stream = streams.get(record.stream)
        # A stream that was removed takes its parked records with it.
        if stream is None:
            continue
        if record.roles is None:
            headers = ((TAKEN_HEADER, record.taken_ms.encode()),)
            yield Moved(stream.topic, record.partition, record.key, record.value, headers)
            continue
        label, floor = decided[stream.id, record.roles], floors.get(record.sender, PUBLIC)
        if isinstance(label, str):
            yield _refusal(record, stream, f"role expression: {label}")
        elif len(record.key or b"") + len(record.value or b"") > _MOST_BYTES:
            yield _refusal(record, stream, "larger than a record that is sent again may be")
        elif floor is None:
            yield _refusal(record, stream, _NO_FLOOR)
        else:
            yield _readmitted(record, stream, label | floor)


def sorted_by_text(
    new: dict[tuple[_Stream, str], str],
) -> list[tuple[tuple[_Stream, str], str]]:
    """In an order that does not depend on that of a set, so that bits do not either."""
    return sorted(new.items(), key=lambda item: (item[0][0].id, item[0][1]))


def _streams(session: orm.Session, names: Collection[str]) -> dict[str, _Stream]:
    """The live streams of these names. Raises Unavailable while one has no topic to send to."""
    sources = source_categories(session)
    query = (
        select(Object.id, Object.name, SenderRow.topic, SenderRow.opened_at)
        .join(SenderRow, SenderRow.stream_id == Object.id)
        .where(
            Object.kind == ObjectKind.STREAM,
            Object.name.in_(names),
            Object.removed_at.is_(None),
            SenderRow.readmits,
            SenderRow.state == SenderState.ACTIVE,
        )
    )
    found = {}
    for row in session.execute(query):
        if row.opened_at is None or row.id not in sources:
            raise Unavailable(f"the stream {row.name} is not ready yet; its records stay parked")
        found[row.name] = _Stream(row.id, row.name, sources[row.id], row.topic)
    return found


def _known(
    session: orm.Session, wanted: Collection[tuple[_Stream, str, str]]
) -> dict[tuple[int, str], Label]:
    query = select(LabelText).where(
        LabelText.stream_id.in_({stream.id for stream, _, _ in wanted}),
        LabelText.text.in_({text for _, text, _ in wanted}),
    )
    rows = session.scalars(query) if wanted else ()
    labels = {(row.stream_id, row.text): Label.from_wire(row.clauses) for row in rows}
    return {key: label for key, label in labels.items() if label is not None}


def _users(session: orm.Session, senders: Collection[str]) -> dict[str, int | None]:
    ids = [int(sender) for sender in senders]
    rows = session.execute(select(SenderRow.id, SenderRow.user_id).where(SenderRow.id.in_(ids)))
    return {str(row.id): row.user_id for row in rows}


def _floors(session: orm.Session, senders: Collection[str]) -> dict[str, Label | None]:
    """The floor of each of these senders, by its id. It may be gone by now.

    None is for one that cannot be read.
    """
    ids = [int(sender) for sender in senders]
    own = (SenderRow.id.in_(ids), SenderRow.floor.is_not(None), SenderRow.lowered.is_(False))
    rows = session.execute(select(SenderRow.id, SenderRow.floor).where(*own)) if ids else ()
    return {str(row.id): read_floor(row.floor) for row in rows}


def _readmitted(record: Parked, stream: _Stream, label: Label) -> Moved:
    headers = (
        (TAKEN_HEADER, record.taken_ms.encode()),
        (SENDER_HEADER, record.sender.encode()),
        (LABEL_HEADER, (stream.source | label).to_wire().encode()),
    )
    return Moved(stream.topic, record.partition, record.key, record.value, headers)


def _refusal(record: Parked, stream: _Stream, reason: str) -> Moved:
    partition, offset = record.place
    headers = (
        (REASON_HEADER, reason.encode()),
        (SENDER_HEADER, record.sender.encode()),
        ("partition", partition.encode()),
        ("offset", offset.encode()),
        (TAKEN_HEADER, record.taken_ms.encode()),
    )
    return Moved(quarantine_topic(stream.name), 0, record.key, record.value, headers)


def readmit(
    readmission: Readmission, connect: Callable[[], ParkedTopics], stop: threading.Event
) -> None:
    """Move parked records until it is time to stop. `connect` makes a connection."""
    while not stop.is_set():
        try:
            topics = connect()
        except OSError as failure:
            log.warning("parked records wait: %s", type(failure).__name__)
            stop.wait(_AGAIN_S)
            continue
        try:
            while not stop.is_set():
                topics.move(readmission.decide, _WAIT_S)
        except PlatformError as failure:
            log.warning("parked records wait: %s", failure)
        except Exception as error:
            # The thread must outlive what nobody foresaw, or records would stay parked.
            log.error("parked records wait: %s", places_of(error))
        finally:
            topics.close()
        stop.wait(_AGAIN_S)

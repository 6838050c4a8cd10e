"""What becomes of parked records: a label, a reason, or a tick that is handed on."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import select

from catalog.errors import Unavailable
from catalog.label import Label
from catalog.label_rule import ByHeader
from catalog.label_texts import texts_of
from catalog.models import AuditEntry, LabelText, Object, SenderRow, StreamRow, User
from catalog.sender_state import SenderState
from catalog.stored_form import to_stored
from secadmin.control.readmission import Readmission, readmit
from secadmin.kafka.parked import Moved, Parked
from tests.unit.catalog.world import START
from tests.unit.secadmin.control.place import IN1, Place

TOPIC = "in.in1.back"
PARKED = Parked("in1", 2, b"k", b'{"a":1}', "1700000000123", "1", ("2", "7"), "doctor")
TICK = Parked("in1", 2, None, b"tick", "1700000000999")


@dataclass
class Ward:
    """A stream that parks records, with its readmission and a clock."""

    place: Place
    told: list[set[str]] = field(default_factory=list)
    now_s: float = 0.0

    def __post_init__(self) -> None:
        platform = SimpleNamespace(
            catalog=self.place.catalog, alignment=self, clock=self.place.catalog.clock
        )
        self.readmission = Readmission(cast(Any, platform), lambda: self.now_s)

    def align(self, topics: Collection[str]) -> None:
        self.told.append(set(topics))

    def decide(self, *records: Parked) -> list[Moved]:
        return list(self.readmission.decide(records))

    def texts(self) -> dict[str, Label]:
        with self.place.catalog.read() as session:
            return dict(texts_of(session).get(self.place.world.get_object("stream in1").id, {}))


@pytest.fixture
def ward(place: Place) -> Ward:
    world = place.world
    number = world.get_object("stream in1").id
    world.edit(StreamRow, number, label_rule=to_stored(ByHeader("roles")))
    world.add(
        SenderRow(
            stream_id=number,
            topic=TOPIC,
            state=SenderState.ACTIVE,
            readmits=True,
            opened_at=START,
        )
    )
    for name in ("doctor", "nurse"):
        world.role(name)
    return Ward(place)


def test_one_floor_that_cannot_be_read_parks_no_records_of_others(ward: Ward) -> None:
    with ward.place.catalog.read() as session:
        ids = {row.topic: row.id for row in session.scalars(select(SenderRow))}
    ward.place.world.edit(SenderRow, ids["in.in1.bob"], floor="0,,")
    records = [replace(PARKED, sender=str(ids[f"in.in1.{user}"])) for user in ("bob", "joe")]
    refused, moved = ward.decide(*records)
    assert (refused.topic, moved.topic) == ("quarantine.in1", TOPIC)
    assert "floor of the sender cannot be read" in headers(refused)["reason"]


def headers(moved: Moved) -> dict[str, str]:
    return {key: value.decode() for key, value in moved.headers}


def test_a_new_expression_is_registered_and_its_record_gets_the_label(ward: Ward) -> None:
    (moved,) = ward.decide(PARKED)
    assert (moved.topic, moved.partition) == (TOPIC, 2)
    assert (moved.key, moved.value) == (PARKED.key, PARKED.value)
    label = (Label.of(IN1) | ward.texts()["doctor"]).to_wire()
    assert headers(moved) == {"timestamp": "1700000000123", "sender": "1", "label": label}
    assert [key for key, _ in moved.headers] == ["timestamp", "sender", "label"]
    # The second time nothing is written.
    ward.place.catalog.change = None  # type: ignore[assignment,method-assign]
    assert ward.decide(PARKED) == [moved]


def test_many_at_once_keep_their_order(ward: Ward) -> None:
    texts = ("doctor", "nurse", "doctor|nurse", "nurse", "nurse|doctor", "doctor&nurse")
    records = [
        replace(PARKED, roles=text, place=("2", str(number))) for number, text in enumerate(texts)
    ]
    moved = ward.decide(*records, TICK)
    labels = [headers(each).get("label") for each in moved]
    assert labels[1] == labels[3]
    assert labels[2] == labels[4]
    assert len(set(labels[:6])) == 4
    assert [each.value for each in moved] == [each.value for each in (*records, TICK)]
    assert ward.told == [set()]


def test_so_many_new_expressions_hold_up_no_other_change_for_long(ward: Ward) -> None:
    """A revocation waits for the change that registers texts, so each registers few of them."""
    texts = [f"{' ' * blanks}doctor" for blanks in range(120)]
    records = [
        replace(PARKED, roles=text, place=("2", str(number))) for number, text in enumerate(texts)
    ]
    moved = ward.decide(*records)
    assert len({headers(each)["label"] for each in moved}) == 1
    assert ward.texts().keys() == {*texts}
    with ward.place.catalog.read() as session:
        own = select(AuditEntry).where(AuditEntry.action == "register role expressions")
        counts = [each.detail["registered"] for each in session.scalars(own)]
    assert sum(counts) == len(texts) and max(counts) <= 50


def test_who_sent_it_first_is_noted(ward: Ward) -> None:
    ward.decide(PARKED)
    with ward.place.catalog.read() as session:
        (row,) = session.query(LabelText)
        sender = session.get_one(SenderRow, 1)
        assert row.user_id == sender.user_id
        assert session.get_one(User, row.user_id).name == "bob"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("surgeon", "role expression: the role expression names 'surgeon', and there is no role"),
        ("doctor &", "role expression: in the role expression, its end is not expected"),
        ("", "its end is not expected"),
    ],
)
def test_a_wrong_expression_goes_to_the_quarantine(ward: Ward, text: str, words: str) -> None:
    wrong = replace(PARKED, roles=text)
    right, refused = ward.decide(PARKED, wrong)
    assert right.topic == TOPIC
    assert (refused.topic, refused.partition) == ("quarantine.in1", 0)
    assert (refused.key, refused.value) == (PARKED.key, PARKED.value)
    found = headers(refused)
    assert words in found.pop("reason")
    assert found == {
        "sender": "1",
        "partition": "2",
        "offset": "7",
        "timestamp": "1700000000123",
    }
    assert set(ward.texts()) == {"doctor"}
    # A mistake alone costs no change of the catalog.
    ward.place.catalog.change = None  # type: ignore[assignment,method-assign]
    ward.decide(replace(wrong, roles=f"{text} "))


def test_a_refusal_is_kept_for_seconds_and_not_for_ever(ward: Ward) -> None:
    surgeon = replace(PARKED, roles="surgeon")
    ward.decide(surgeon)
    ward.place.world.role("surgeon")
    (again,) = ward.decide(surgeon)
    assert again.topic == "quarantine.in1"
    ward.now_s = 5.0
    (later,) = ward.decide(surgeon)
    assert later.topic == TOPIC


def test_a_tick_goes_the_way_of_the_records(ward: Ward) -> None:
    (moved,) = ward.decide(TICK)
    assert (moved.topic, moved.partition, moved.key, moved.value) == (TOPIC, 2, None, b"tick")
    assert headers(moved) == {"timestamp": "1700000000999"}


def test_a_stream_that_is_not_ready_waits_and_a_removed_one_is_left_out(ward: Ward) -> None:
    world = ward.place.world
    with ward.place.catalog.read() as session:
        (sender,) = [row.id for row in session.query(SenderRow) if row.topic == TOPIC]
    world.edit(SenderRow, sender, opened_at=None)
    with pytest.raises(Unavailable, match="stay parked"):
        ward.decide(PARKED)
    world.edit(Object, world.get_object("stream in1").id, removed_at=START)
    assert ward.decide(PARKED, TICK) == []


def test_a_record_that_would_not_fit_is_not_tried(ward: Ward) -> None:
    (moved,) = ward.decide(replace(PARKED, value=b"x" * (1024 * 1024)))
    assert moved.topic == "quarantine.in1"
    assert "larger than" in headers(moved)["reason"]


def test_no_expression_stands_in_the_audit_log(ward: Ward) -> None:
    ward.decide(replace(PARKED, roles="doctor & nurse"), replace(PARKED, roles="secret(text"))
    with ward.place.catalog.read() as session:
        rows = session.connection().exec_driver_sql("SELECT * FROM audit").fetchall()
    assert any("register role expressions" in str(row) for row in rows)
    assert not any("secret" in str(row) or "nurse" in str(row.detail) for row in rows[-1:])


def test_a_record_that_is_sent_again_has_the_floor_of_its_sender(ward: Ward) -> None:
    """Also if the sender is gone by then. What is lowered is not added."""
    floor = Label.of(400)
    sender = int(PARKED.sender)
    ward.place.world.edit(SenderRow, sender, floor=floor.to_wire(), state=SenderState.GONE)
    (moved,) = ward.decide(PARKED)
    without = Label.of(IN1) | ward.texts()["doctor"]
    assert headers(moved)["label"] == (without | floor).to_wire()
    ward.place.world.edit(SenderRow, sender, lowered=True)
    (moved,) = ward.decide(PARKED)
    assert headers(moved)["label"] == without.to_wire()


def test_a_batch_needs_no_refusal_that_was_kept_for_others(ward: Ward) -> None:
    """One of its own may be dropped at once for one that comes behind it in the batch."""
    wrong = [replace(PARKED, roles=f"surgeon{number}") for number in range(3)]
    ward.decide(*wrong)
    kept = ward.readmission._refused
    # The cache is full, and the oldest are those that this batch needs.
    kept |= {(0, f"other {number}"): ("bad", 5.0) for number in range(10_000 - len(kept))}
    more = [replace(PARKED, roles=f"healer{number}") for number in range(3)]
    moved = ward.decide(*wrong, *more, PARKED)
    assert [each.topic for each in moved] == ["quarantine.in1"] * 6 + [TOPIC]
    for record, each in zip((*wrong, *more), moved, strict=False):
        assert f"names '{record.roles}'" in headers(each)["reason"]
    assert len(kept) == 10_000


def test_an_error_that_nobody_foresaw_puts_no_value_into_the_log(
    ward: Ward, caplog: pytest.LogCaptureFixture
) -> None:
    stop = threading.Event()

    class Topics:
        def move(self, decide: object, wait_s: float) -> None:
            stop.set()
            raise KeyError("SENDERS SECRET")

        def close(self) -> None: ...

    readmit(ward.readmission, lambda: cast(Any, Topics()), stop)
    assert "parked records wait: KeyError < tests" in caplog.text
    assert "SECRET" not in caplog.text

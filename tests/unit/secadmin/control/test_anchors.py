"""Heads go to the anchors in the background; no call waits for one, and none is lost for good."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from catalog.audit import Outcome
from catalog.audit_head import Head, seal, unseal
from catalog.audit_key import AuditKey
from catalog.errors import InvalidInput, Unavailable
from catalog.store import Catalog
from secadmin.control import anchors
from secadmin.control.anchors import Anchors, Sender
from secadmin.control.head_file import HeadFile
from tests.audit_key import AUDIT_KEY
from tests.waiting import PATIENCE_S, wait_until

OTHER_KEY = AuditKey(b"other" * 8)


@dataclass
class Lines:
    """Keeps lines in memory; while `held` is clear it answers nothing, while `away` it refuses."""

    held: threading.Event = field(default_factory=threading.Event)
    away: bool = False
    lines: list[bytes] = field(default_factory=list)
    tried: int = 0
    place: str = "memory"

    def append(self, line: bytes) -> None:
        self.tried += 1
        assert self.held.wait(PATIENCE_S)
        if self.away:
            raise Unavailable("nobody is there")
        self.lines.append(line)

    def read(self, most: int) -> Iterable[bytes]:
        return self.lines[-most:]

    def close(self) -> None:
        """Nothing is open."""

    @property
    def numbers(self) -> list[int]:
        """The heads' numbers, in their order."""
        heads = [unseal(AUDIT_KEY, line) for line in self.lines]
        return [head.seq for head in heads if head is not None]


@contextmanager
def sending(catalog: Catalog, anchor: Lines) -> Iterator[Sender]:
    """A sender of the catalog's heads, until the block ends."""
    sender = Sender(anchor, AUDIT_KEY, catalog.clock, catalog.newest_head)
    places = Anchors([sender])
    catalog.tell_heads(places.offer)
    places.start()
    try:
        yield sender
    finally:
        anchor.held.set()
        places.close()


def act(catalog: Catalog, number: int) -> None:
    catalog.record("joe", f"act {number}", "system", Outcome.CHANGED)


def test_an_anchor_that_hangs_delays_nothing_and_gets_the_newest(catalog: Catalog) -> None:
    anchor = Lines()
    with sending(catalog, anchor) as sender:
        wait_until(lambda: anchor.tried == 1, "the first head is on its way")
        first = catalog.newest_head().seq
        began = time.monotonic()
        for number in range(20):
            act(catalog, number)
        assert time.monotonic() - began < PATIENCE_S / 2
        anchor.held.set()
        last = catalog.newest_head().seq
        wait_until(lambda: anchor.numbers[-1:] == [last], "the newest head is there")
        assert anchor.numbers == [first, last]
        assert not sender.behind


def test_an_anchor_that_is_away_is_behind_until_it_is_back(catalog: Catalog) -> None:
    anchor = Lines(away=True)
    anchor.held.set()
    with sending(catalog, anchor) as sender:
        wait_until(lambda: sender.behind, "it is behind")
        state = sender.state()
        assert (state.behind, state.problem) == (True, "is behind: nobody is there")
        act(catalog, 1)
        assert anchor.lines == []
        anchor.away = False
        wait_until(lambda: not sender.behind, "it has caught up")
        assert anchor.numbers == [catalog.newest_head().seq]
        assert sender.state().problem is None


def test_what_waits_is_sent_when_the_service_ends(catalog: Catalog) -> None:
    anchor = Lines()
    anchor.held.set()
    with sending(catalog, anchor):
        act(catalog, 1)
    assert anchor.numbers[-1] == catalog.newest_head().seq


def test_what_a_crash_left_unsent_is_sent_at_the_next_start(catalog: Catalog) -> None:
    act(catalog, 1)
    anchor = Lines()
    anchor.held.set()
    with sending(catalog, anchor):
        wait_until(lambda: anchor.numbers == [catalog.newest_head().seq], "the head is there")


def test_the_newest_head_is_sent_each_minute_too(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a change by another service, which has told only its own anchors of it."""
    assert anchors.EVERY_S == 60
    monkeypatch.setattr(anchors, "EVERY_S", 0.1)
    anchor = Lines()
    anchor.held.set()
    with sending(catalog, anchor):
        wait_until(lambda: len(anchor.lines) == 1, "the first head is there")
        catalog.tell_heads(lambda _: None)
        act(catalog, 1)
        newest = catalog.newest_head().seq
        wait_until(lambda: anchor.numbers[-1] == newest, "the newest head is there")
        assert len(anchor.lines) == 2, "what was sent is not sent again"


def test_heads_of_several_services_do_not_contradict_each_other(catalog: Catalog) -> None:
    anchor = Lines()
    anchor.held.set()
    with sending(catalog, anchor), sending(catalog, anchor) as sender:
        for number in range(10):
            act(catalog, number)
        wait_until(lambda: catalog.newest_head().seq in anchor.numbers, "the head is there")
        anchor.lines.reverse()
        assert catalog.verify_audit([sender.state().kept]).intact


def test_lines_of_others_are_counted_and_believed_by_nobody(catalog: Catalog) -> None:
    forged = Head(99, "f" * 64)
    mine = seal(AUDIT_KEY, catalog.newest_head(), catalog.clock())
    others = (
        seal(OTHER_KEY, forged, catalog.clock()),
        b"{",
        b"[]",
        b"\xff",
        mine.replace(b"1", b"2"),
    )
    anchor = Lines(lines=[mine, *others])
    state = Sender(anchor, AUDIT_KEY, catalog.clock, catalog.newest_head).state()
    assert state.kept.heads == {catalog.newest_head()}
    assert state.unreadable == len(others)


def test_a_file_keeps_the_newest_within_its_bounds(tmp_path: Path) -> None:
    path = tmp_path / "audit" / "heads"
    file, shared = HeadFile(path, limit_bytes=1_000), HeadFile(path, limit_bytes=1_000)
    lines = [f"line {number:03}".encode() for number in range(500)]
    for number, line in enumerate(lines):
        (file if number % 2 else shared).append(line)
        newest = list(file.read(200))
        assert newest == lines[number + 1 - len(newest) : number + 1]
    assert len(newest) >= 100
    assert list(file.read(3)) == lines[-3:]
    kept = list(path.parent.iterdir())
    assert sum(each.stat().st_size for each in kept) < 2_100
    assert {each.stat().st_mode & 0o777 for each in kept} == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_what_a_crash_left_of_a_line_takes_no_other_with_it(tmp_path: Path) -> None:
    path = tmp_path / "heads"
    file = HeadFile(path)
    file.append(b"one")
    with path.open("ab") as torn:
        torn.write(b"tw")
    file.append(b"three")
    assert list(file.read(10)) == [b"one", b"tw", b"three"]


def test_a_file_that_cannot_be_written_says_so(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    file = HeadFile(tmp_path / "taken" / "heads")
    sender = Sender(file, AUDIT_KEY, catalog.clock, catalog.newest_head)
    sender.start()
    try:
        wait_until(lambda: sender.behind, "it is behind")
        assert "is behind: " in (sender.state().problem or "")
    finally:
        sender.close()


@pytest.mark.parametrize(
    "text", ["", "1", "1:", "x:" + "0" * 64, "-1:" + "0" * 64, "1:" + "g" * 64]
)
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="NUMBER:HASH"):
        Head.parse(text)
    assert Head.parse(f" {Head(7, 'a' * 64)}\n") == Head(7, "a" * 64)


@pytest.mark.parametrize("content", [None, "", "zz" * 32, "ab" * 31])
def test_an_unusable_key_is_named(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "audit.key"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InvalidInput, match=r"audit\.key"):
        AuditKey.load(file)
    file.write_text("ab" * 32 + "\n")
    assert AuditKey.load(file).code("a", "b") != AuditKey.load(file).code("b", "b")

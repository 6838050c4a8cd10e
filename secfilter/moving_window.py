"""Moving windows over labelled tuples, and the stream of what changes in them (CQL; 001 §3, §4).

This module needs no Spark. It computes instant by instant. At an instant tuples arrive, or leave
the window. The changing relation, here called the relation, is a bag of rows: the tuples of the
window that pass, or one row for each group of them. What an instant adds to the bag, and what it
takes away, becomes a stream.

The labels (catalog/SPEC.md has the reasons):

- A row carries the labels of the tuples from which it is derived.
- If a tuple leaves a window of rows, it leaves because others came. So a row that depends on who
  left carries the labels of all tuples that are in the window's partition.
- If equal rows come and go in one instant, what is left of them depends on all of them.
- A row of RSTREAM is sent because something changed. So it carries the labels of all that the
  window holds, and of all that came or left at this instant.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Protocol

from catalog.plan import Change

# A label as Spark has it: its words, signed.
Words = tuple[int, ...]
_FORM = 1


@dataclass(frozen=True, slots=True)
class Arrival:
    """A tuple of the stream below the window.

    `time` is its event time (µs since 1970). Tuples of one time are in the order of `lineage`.
    `partition` is the text of the partition's attributes. `row` is the text of the values that the
    relation shows, or of the group's key; `arguments` has the texts that aggregates read. `passes`
    says whether the relation's condition is true.
    """

    time: int
    lineage: str
    label: Words
    partition: str
    passes: bool
    row: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Result:
    """A row that an instant (µs since 1970) adds or takes away. Rows of an instant are numbered."""

    instant: int
    number: int
    row: str
    label: Words


@dataclass(frozen=True, slots=True)
class Window:
    """How long a tuple stays: for a time (µs), or until `rows` newer ones are in its partition.

    With `slide_us`, tuples come and leave only at the multiples of it.
    """

    range_us: int | None
    rows: int | None
    slide_us: int | None = None

    def comes_at(self, time: int) -> int:
        """The instant at which a tuple of this time comes into the window."""
        return time if self.slide_us is None else -(-time // self.slide_us) * self.slide_us

    def leaves_at(self, time: int) -> int:
        """The instant at which a tuple of this time leaves a window of a range."""
        # A range has both its ends, so a tuple leaves a microsecond later.
        after = time + (self.range_us or 0) + 1
        return after if self.slide_us is None else -(-after // self.slide_us) * self.slide_us

    def never_holds(self, time: int) -> bool:
        """Whether the window moves over a tuple of this time without holding it."""
        return self.rows is None and self.leaves_at(time) <= self.comes_at(time)


class Summary(Protocol):
    """Makes the rows of groups."""

    def read(self, arguments: str) -> tuple[Any, ...]:
        """The values of a tuple's arguments."""

    def row(self, key: str, group: Collection[tuple[Any, ...]]) -> str:
        """The row of a group with this key, and these values of its tuples."""


@dataclass(slots=True)
class _Labels:
    """The labels of some tuples. Few of them differ, so their union costs little."""

    counts: Counter[Words] = field(default_factory=Counter)

    def add(self, label: Words) -> None:
        self.counts[label] += 1

    def remove(self, label: Words) -> None:
        self.counts[label] -= 1
        if not self.counts[label]:
            del self.counts[label]


@dataclass(slots=True)
class _Group:
    """The tuples of a group, the oldest first, and what is known of them together."""

    members: deque[Arrival] = field(default_factory=deque)
    values: deque[tuple[Any, ...]] = field(default_factory=deque)
    labels: _Labels = field(default_factory=_Labels)
    partitions: Counter[str] = field(default_factory=Counter)
    row: str = ""

    def add(self, each: Arrival, values: tuple[Any, ...]) -> None:
        self.members.append(each)
        self.values.append(values)
        self.labels.add(each.label)
        self.partitions[each.partition] += 1

    def remove(self, each: Arrival) -> None:
        # Nearly always the first one.
        place = next(n for n, member in enumerate(self.members) if member is each)
        del self.members[place]
        del self.values[place]
        self.labels.remove(each.label)
        self.partitions[each.partition] -= 1
        if not self.partitions[each.partition]:
            del self.partitions[each.partition]


@dataclass
class MovingRelation:
    """The content of a window, what still waits for its time, and the instants so far.

    `summary` is None if the relation's rows are those of its tuples. At most `limit` tuples are
    held; those beyond are not taken, and `withheld` counts them.
    """

    window: Window
    change: Change
    summary: Summary | None
    limit: int
    withheld: int = 0
    _done: int | None = None
    _waiting: list[tuple[int, int, str, Arrival]] = field(default_factory=list)
    _held: dict[str, deque[Arrival]] = field(default_factory=dict)
    # Of a window of time: what it holds, the oldest first.
    _leaving: deque[Arrival] = field(default_factory=deque)
    # Of a window of rows: the labels of each partition.
    _labels: dict[str, _Labels] = field(default_factory=lambda: defaultdict(_Labels))
    # Of an aggregate: the groups by their keys.
    _groups: dict[str, _Group] = field(default_factory=dict)
    _count: int = 0

    def take(self, arrivals: Iterable[Arrival]) -> None:
        """Take tuples, in any order. A tuple whose instant is over is withheld."""
        for each in arrivals:
            if self.window.never_holds(each.time):
                continue
            late = self._done is not None and each.time <= self._done
            if late or self._count >= self.limit:
                self.withheld += 1
                continue
            self._count += 1
            self._wait_for(each)

    def _wait_for(self, each: Arrival) -> None:
        comes = self.window.comes_at(each.time)
        heappush(self._waiting, (comes, each.time, each.lineage, each))

    def until(self, time: int) -> list[Result]:
        """The results of all instants up to and including `time`, which are complete."""
        found: list[Result] = []
        while (instant := self.next_instant()) is not None and instant <= time:
            found += self._step(instant)
        self._done = time if self._done is None else max(self._done, time)
        return found

    def next_instant(self) -> int | None:
        """The next instant at which a tuple arrives or leaves, or None."""
        times = [self._waiting[0][0]] if self._waiting else []
        if self._leaving:
            times.append(self.window.leaves_at(self._leaving[0].time))
        return min(times, default=None)

    def _step(self, instant: int) -> list[Result]:
        came, left = self._arrive(instant), self._expire(instant)
        left += self._push_out({each.partition for each in came})
        self._count -= len(left)
        gone = set(map(id, left))
        # A tuple that others push out at once was never in the relation.
        stayed = [each for each in came if id(each) not in gone]
        there = [each for each in left if self.window.comes_at(each.time) < instant]
        if self.change is Change.RSTREAM:
            return self._whole(instant, [*came, *left], stayed, there)
        if self.summary is None:
            added = [(each.row, each.label) for each in stayed if each.passes]
            taken = self._taken(there, {row for row, _ in added})
        else:
            added, taken = self._regrouped(stayed, there)
        return self._changes(instant, added, taken)

    def _arrive(self, instant: int) -> list[Arrival]:
        came = []
        while self._waiting and self._waiting[0][0] <= instant:
            came.append(heappop(self._waiting)[3])
        for each in came:
            self._hold(each)
        return came

    def _hold(self, each: Arrival) -> None:
        if self.window.rows is None:
            self._leaving.append(each)
        else:
            self._held.setdefault(each.partition, deque()).append(each)
            self._labels[each.partition].add(each.label)

    def _expire(self, instant: int) -> list[Arrival]:
        left = []
        while self._leaving and self.window.leaves_at(self._leaving[0].time) <= instant:
            left.append(self._leaving.popleft())
        return left

    def _push_out(self, partitions: Iterable[str]) -> list[Arrival]:
        left = []
        for name in sorted(partitions) if self.window.rows is not None else ():
            held = self._held[name]
            while len(held) > (self.window.rows or 0):
                gone = held.popleft()
                self._labels[name].remove(gone.label)
                left.append(gone)
        return left

    def _taken(self, left: Sequence[Arrival], added: Container[str]) -> list[tuple[str, Words]]:
        """The rows of the tuples that leave. ISTREAM asks only for rows that come as well."""
        all_of_them = self.change is Change.DSTREAM
        return [
            (each.row, self._taken_label(each))
            for each in left
            if each.passes and (all_of_them or each.row in added)
        ]

    def _taken_label(self, each: Arrival) -> Words:
        """The label of a tuple that leaves. It leaves a window of rows because newer ones came."""
        return united((each.label, *self._around((each.partition,))))

    def _regrouped(
        self, came: Sequence[Arrival], left: Sequence[Arrival]
    ) -> tuple[list[tuple[str, Words]], list[tuple[str, Words]]]:
        """The rows of the changed groups, now and before."""
        changes: dict[str, tuple[list[Arrival], list[Arrival]]] = {}
        for where, several in enumerate((came, left)):
            for each in several:
                if each.passes:
                    changes.setdefault(each.row, ([], []))[where].append(each)
        added, taken = [], []
        for key in sorted(changes):
            group = self._groups.setdefault(key, _Group())
            changed = [each.label for several in changes[key] for each in several]
            partitions = {*group.partitions, *(e.partition for s in changes[key] for e in s)}
            around = self._around(partitions)
            if group.members:
                taken.append((group.row, united((*group.labels.counts, *changed, *around))))
            self._change(key, group, *changes[key])
            if group.members:
                added.append((group.row, united((*group.labels.counts, *around))))
        return added, taken

    def _change(
        self, key: str, group: _Group, came: Sequence[Arrival], left: Sequence[Arrival]
    ) -> None:
        if self.summary is None:
            raise TypeError("a relation without groups")
        for each in left:
            group.remove(each)
        for each in came:
            group.add(each, self.summary.read(each.arguments))
        if group.members:
            group.row = self.summary.row(key, group.values)
        else:
            del self._groups[key]

    def _around(self, partitions: Iterable[str]) -> list[Words]:
        """The labels of all that decides who is in a window of rows."""
        if self.window.rows is None:
            return []
        return [label for name in partitions for label in self._labels[name].counts]

    def _whole(
        self,
        instant: int,
        changed: Sequence[Arrival],
        came: Sequence[Arrival],
        left: Sequence[Arrival],
    ) -> list[Result]:
        """The whole relation. All of its rows carry all labels, because any change sends them."""
        if self.summary is not None:
            self._regrouped(came, left)
        held = [*self._leaving, *(each for part in self._held.values() for each in part)]
        label = united(each.label for each in (*held, *changed))
        if self.summary is None:
            rows = [each.row for each in held if each.passes]
        else:
            rows = [group.row for group in self._groups.values()]
        return _numbered(instant, [(row, label) for row in sorted(rows)])

    def _changes(
        self, instant: int, added: Sequence[tuple[str, Words]], taken: Sequence[tuple[str, Words]]
    ) -> list[Result]:
        """What is left of the rows that came and went after equal ones are cancelled."""
        inserted = self.change is Change.ISTREAM
        mine, others = (added, taken) if inserted else (taken, added)
        labels, opposite = _by_row(mine), _by_row(others)
        found: list[tuple[str, Words]] = []
        for row in sorted(labels):
            cancelled = opposite.get(row, [])
            kept = labels[row][len(cancelled) :]
            if cancelled:
                all_of_them = united((*labels[row], *cancelled))
                kept = [all_of_them] * len(kept)
            found += [(row, label) for label in kept]
        return _numbered(instant, found)

    def to_text(self) -> str:
        """The state, with the version of its form."""
        waiting = [item[3] for item in sorted(self._waiting, key=lambda item: item[:3])]
        held = [*self._leaving, *(each for part in self._held.values() for each in part)]
        return json.dumps(
            {
                "form": _FORM,
                "done": self._done,
                "waiting": [_as_list(each) for each in waiting],
                "held": [_as_list(each) for each in held],
            },
            separators=(",", ":"),
        )

    def restore(self, text: str) -> None:
        """Go on with a state that `to_text` gave. Raises ValueError for another form."""
        state = json.loads(text)
        if state.get("form") != _FORM:
            raise ValueError("the state of a moving window has another form")
        self._done = state["done"]
        for each in map(_from_list, state["waiting"]):
            self._wait_for(each)
        for each in map(_from_list, state["held"]):
            self._hold(each)
            if self.summary is not None and each.passes:
                group = self._groups.setdefault(each.row, _Group())
                group.add(each, self.summary.read(each.arguments))
        for key, group in self._groups.items():
            if self.summary is not None:
                group.row = self.summary.row(key, group.values)
        self._count = len(state["waiting"]) + len(state["held"])


def united(labels: Iterable[Words]) -> Words:
    """The union of labels that have equally many words. It is empty for no label."""
    found: list[int] = []
    for label in labels:
        found = [a | b for a, b in zip(found, label, strict=True)] if found else list(label)
    return tuple(found)


def _by_row(rows: Iterable[tuple[str, Words]]) -> Mapping[str, list[Words]]:
    found: dict[str, list[Words]] = defaultdict(list)
    for row, label in rows:
        found[row].append(label)
    return found


def _numbered(instant: int, rows: Iterable[tuple[str, Words]]) -> list[Result]:
    return [Result(instant, number, row, label) for number, (row, label) in enumerate(rows)]


def _as_list(each: Arrival) -> list[object]:
    return [
        *(each.time, each.lineage, list(each.label), each.partition),
        *(each.passes, each.row, each.arguments),
    ]


def _from_list(values: Sequence[Any]) -> Arrival:
    time, lineage, label, *others = values
    return Arrival(time, lineage, tuple(label), *others)

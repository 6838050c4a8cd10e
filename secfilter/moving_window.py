"""The content of one moving window: the labelled tuples that wait for it, come and leave (CQL).

This module needs no Spark. `secfilter.moving_relation` makes rows of the content.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

from secfilter.lab import marked_reader, stands

# A label as Spark has it: its words, signed.
Words = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """A tuple of the stream below a window. Each is equal to itself alone.

    `time` is its event time (µs since 1970). Tuples of one time are in the order of `lineage`.
    `partition` is the text of the partition's attributes. `row` is the text of the values that the
    relation shows, or of a group's key, or of what a join compares. `arguments` has the texts that
    aggregates or pairs read. `passes` says whether the conditions of the tuple are true.
    """

    time: int
    lineage: str
    label: Words
    partition: str
    passes: bool
    row: str
    arguments: str

    @property
    def stands(self) -> bool:
        """Whether it repeats a row that stands (`secfilter.standing`)."""
        return stands(self.lineage)

    @property
    def characters(self) -> int:
        """How long its texts are together."""
        return len(self.partition) + len(self.row) + len(self.arguments)

    def as_list(self) -> list[object]:
        """The tuple in JSON's types."""
        return [
            *(self.time, self.lineage, list(self.label), self.partition),
            *(self.passes, self.row, self.arguments),
        ]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> Arrival:
        """The tuple that `as_list` gave."""
        time, lineage, label, *others = values
        return cls(time, lineage, tuple(label), *others)


@dataclass(frozen=True, slots=True)
class HeldLimits:
    """How many tuples a relation may hold, and as many pairs; and how long their texts may be."""

    tuples: int
    characters: int


@dataclass(frozen=True, slots=True)
class Window:
    """How long a tuple stays: for a time (µs), until `rows` newer ones are in its partition, or
    for ever if both are None.

    With `slide_us`, tuples come and leave only at the multiples of it. With `after_standing`, the
    window begins with the rows that stand of an output, and takes nothing before them. It needs the
    mark for one of its `readers`, or any such row if they are None. With `slide_rows`, the tuples
    of a partition come `rows` together at first, and then `slide_rows` together. With `of_all`, the
    window also gets tuples that its class may not see. They hold nothing, and `passes` is false.
    """

    range_us: int | None
    rows: int | None
    slide_us: int | None = None
    after_standing: bool = False
    slide_rows: int | None = None
    readers: frozenset[int] | None = None
    of_all: bool = False

    def begins_with(self, lineage: str) -> bool:
        """Whether the window begins at the instant of the tuple with this lineage.

        Of the rows for another reader, some may be before the first offset of this one.
        """
        if self.readers is None:
            return stands(lineage)
        return marked_reader(lineage) in self.readers

    @property
    def is_endless(self) -> bool:
        """Whether no tuple ever leaves."""
        return self.range_us is None and self.rows is None

    def comes_at(self, time: int) -> int:
        """The instant at which a tuple of this time comes into the window."""
        return time if self.slide_us is None else -(-time // self.slide_us) * self.slide_us

    def leaves_at(self, time: int) -> int | None:
        """The instant at which time makes a tuple of this time leave, or None."""
        if self.range_us is None:
            return None
        # A range has both its ends, so a tuple leaves a microsecond later.
        after = time + self.range_us + 1
        return after if self.slide_us is None else -(-after // self.slide_us) * self.slide_us

    def never_holds(self, time: int) -> bool:
        """Whether the window moves over a tuple of this time without holding it."""
        leaves = self.leaves_at(time)
        return leaves is not None and leaves <= self.comes_at(time)


@dataclass(slots=True)
class Labels:
    """The labels of some tuples. Few of them differ, so their union costs little."""

    counts: Counter[Words] = field(default_factory=Counter)

    def add(self, label: Words) -> None:
        self.counts[label] += 1

    def remove(self, label: Words) -> None:
        self.counts[label] -= 1
        if not self.counts[label]:
            del self.counts[label]


def united(labels: Iterable[Words]) -> Words:
    """The union of labels that have equally many words. It is empty for no label."""
    found: Words = ()
    for label in labels:
        if label != found:
            found = tuple(a | b for a, b in zip(found, label, strict=True)) if found else label
    return found


@dataclass
class CountedTuples:
    """The tuples of a window of tuples that are counted, and do not fill a window yet.

    Where a window of a partition begins depends on all tuples that were counted before. So a tuple
    that comes into the window carries the labels of all of them.
    """

    rows: int
    slide: int
    _waiting: dict[str, list[Arrival]] = field(default_factory=dict)
    # Of each partition whose first window is full: the labels of all that came into it.
    _labels: dict[str, Words] = field(default_factory=dict)

    def take(self, came: Iterable[Arrival]) -> list[Arrival]:
        """Count the tuples of an instant. Gives those over which the window moves now."""
        parts: dict[str, list[Arrival]] = {}
        for each in came:
            parts.setdefault(each.partition, []).append(each)
        return [each for name in parts for each in self._filling(name, parts[name])]

    def _filling(self, name: str, came: list[Arrival]) -> list[Arrival]:
        counted = [*self._waiting.pop(name, ()), *came]
        moves = len(counted) - len(counted) % self.slide
        if name not in self._labels:
            # The first window is full with `rows` tuples.
            beyond = len(counted) - self.rows
            moves = 0 if beyond < 0 else len(counted) - beyond % self.slide
        filling, rest = counted[:moves], counted[moves:]
        if rest:
            self._waiting[name] = rest
        if not filling:
            return []
        known = [self._labels[name]] if name in self._labels else []
        label = united([*known, *(each.label for each in filling)])
        self._labels[name] = label
        return [replace(each, label=label) for each in filling]

    def state(self) -> dict[str, Any]:
        """The counted tuples in JSON's types."""
        return {
            "waiting": [each.as_list() for part in self._waiting.values() for each in part],
            "labels": {name: list(label) for name, label in self._labels.items()},
        }

    def restore(self, state: dict[str, Any]) -> list[Arrival]:
        """Go on with a state. Gives the tuples in it."""
        counted = [Arrival.from_list(values) for values in state["waiting"]]
        for each in counted:
            self._waiting.setdefault(each.partition, []).append(each)
        self._labels = {name: tuple(label) for name, label in state["labels"].items()}
        return counted


@dataclass
class WindowContent:
    """The tuples of a window, and those that wait for their instant.

    `size` counts both, and `characters` is the length of their texts.
    """

    window: Window
    # Whether tuples are kept after they came. Totals need none of them.
    keeps: bool = True
    size: int = 0
    characters: int = 0
    begun: bool = field(init=False)
    _waiting: list[tuple[int, int, str, Arrival]] = field(default_factory=list)
    # Of a window of time, or of one that nothing leaves: what it holds, the oldest first.
    _queue: deque[Arrival] = field(default_factory=deque)
    # Of a window of rows: what each partition holds, the oldest first, and its labels.
    _parts: dict[str, deque[Arrival]] = field(default_factory=dict)
    _labels: dict[str, Labels] = field(default_factory=lambda: defaultdict(Labels))
    # Of a window of tuples: those that are counted, and do not fill a window yet.
    _counted: CountedTuples | None = None

    def __post_init__(self) -> None:
        self.begun = not self.window.after_standing
        if self.window.rows is not None and self.window.slide_rows is not None:
            self._counted = CountedTuples(self.window.rows, self.window.slide_rows)

    def wait(self, each: Arrival) -> None:
        """Take a tuple that comes at a later instant."""
        self._count(each, 1)
        comes = self.window.comes_at(each.time)
        heappush(self._waiting, (comes, each.time, each.lineage, each))

    def _count(self, each: Arrival, sign: int) -> None:
        self.size += sign
        self.characters += sign * each.characters

    def next_instant(self) -> int | None:
        """The next instant at which a tuple arrives, or leaves because time passes, or None."""
        times = [self._waiting[0][0]] if self._waiting else []
        if self._queue and (leaves := self.window.leaves_at(self._queue[0].time)) is not None:
            times.append(leaves)
        return min(times, default=None)

    def arriving(self, instant: int) -> list[Arrival]:
        """The tuples that arrive at the instant. They wait no more, and are not held yet."""
        came = []
        while self._waiting and self._waiting[0][0] <= instant:
            came.append(heappop(self._waiting)[3])
            self._count(came[-1], -1)
        self.begun = self.begun or any(self.window.begins_with(each.lineage) for each in came)
        if self._counted is not None:
            return self._filling(self._counted, came)
        return [each for each in came if self._takes(each)]

    def _filling(self, counted: CountedTuples, came: Iterable[Arrival]) -> list[Arrival]:
        """Count tuples. Gives those over which the window moves now."""
        for each in came:
            self._count(each, 1)
        filling = counted.take(came)
        for each in filling:
            self._count(each, -1)
        return filling

    def _takes(self, each: Arrival) -> bool:
        """Whether a tuple changes anything. A row that stands does not if its key is known."""
        known = each.stands and (not each.passes or self.has(each.partition))
        return self.begun and not known

    def hold(self, each: Arrival) -> None:
        """Hold a tuple that has arrived."""
        if not self.keeps:
            return
        self._count(each, 1)
        if self.window.rows is None:
            self._queue.append(each)
        else:
            self._parts.setdefault(each.partition, deque()).append(each)
            self._labels[each.partition].add(each.label)

    def leaving(self, instant: int, came: Collection[Arrival]) -> list[Arrival]:
        """Let go of the tuples that leave at the instant, also because others `came`."""
        left = self._expired(instant)
        if self.window.rows is not None:
            for name in sorted({each.partition for each in came}):
                left += self._pushed_out(name, self.window.rows)
        for each in left:
            self._count(each, -1)
        return left

    def _expired(self, instant: int) -> list[Arrival]:
        left: list[Arrival] = []
        while self._queue:
            leaves = self.window.leaves_at(self._queue[0].time)
            if leaves is None or leaves > instant:
                break
            left.append(self._queue.popleft())
        return left

    def _pushed_out(self, partition: str, rows: int) -> list[Arrival]:
        held, left = self._parts[partition], []
        while len(held) > rows:
            gone = held.popleft()
            self._labels[partition].remove(gone.label)
            left.append(gone)
        return left

    def held(self) -> list[Arrival]:
        """The tuples that the window holds now."""
        return [*self._queue, *(each for part in self._parts.values() for each in part)]

    def has(self, partition: str) -> bool:
        """Whether a partition of a window of rows holds a tuple."""
        return bool(self._parts.get(partition))

    def forget(self, partition: str) -> None:
        """Let go of the one tuple of a partition if it is in no row."""
        held = self._parts.get(partition)
        if held and not held[-1].passes:
            self._count(held[-1], -1)
            del self._parts[partition], self._labels[partition]

    def deciding(self, partition: str) -> Collection[Words]:
        """The labels of all that decides who is in a partition. Time alone decides for a range."""
        return () if self.window.rows is None else self._labels[partition].counts

    def stayed(self, each: Arrival, instant: int) -> bool:
        """Whether a tuple came before an instant."""
        return self.window.comes_at(each.time) < instant

    def state(self) -> dict[str, Any]:
        """The content in JSON's types."""
        waiting = [item[3] for item in sorted(self._waiting, key=lambda item: item[:3])]
        state: dict[str, Any] = {
            "waiting": [each.as_list() for each in waiting],
            "held": [each.as_list() for each in self.held()],
        }
        state |= {"begun": self.begun} if self.window.after_standing else {}
        return state | ({} if self._counted is None else {"counted": self._counted.state()})

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with a content that `state` gave."""
        for values in state["waiting"]:
            self.wait(Arrival.from_list(values))
        for values in state["held"]:
            self.hold(Arrival.from_list(values))
        self.begun = state.get("begun", self.begun)
        if self._counted is not None:
            for each in self._counted.restore(state["counted"]):
                self._count(each, 1)

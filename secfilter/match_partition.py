"""The matches of one partition: its rows, the attempts to begin a match, and which matches count.

An attempt begins at every row. Which matches count when rows are skipped behind a match is decided
afterwards, in the order of the first rows. So it is known on which earlier rows a match depends.

The pattern is tried at a row when the rows behind it that NEXT may read are there, or cannot come
any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from catalog.pattern import Skip, SkipTo
from secfilter.match_attempt import Around, Attempt, Conditions, Here, PatternRow, variables_of
from secfilter.moving_window import Labels, Words, united


@dataclass(frozen=True, slots=True)
class Found:
    """A match that counts: the number of its first row, its rows, the variable of each, its label.

    `around` gives the rows near one of them while nothing else is asked of the partition.
    """

    start: int
    rows: Sequence[PatternRow]
    variables: Sequence[int]
    label: Words
    around: Around


@dataclass(frozen=True, slots=True)
class PatternRules:
    """What all partitions share.

    `back` is how many rows PREV goes back at most, `ahead` how many NEXT goes on, and `ways` how
    many ways are open.
    """

    conditions: Conditions
    within_us: int
    skip: Skip
    back: int
    ahead: int
    ways: int

    @property
    def skips(self) -> bool:
        """Whether a match decides where the next one may begin."""
        return self.skip.to is not SkipTo.NEXT_ROW


@dataclass(slots=True)
class Partition:
    """The rows of a partition that a match may still need, and the attempts over them.

    Rows are numbered, and `base` is the number of the first row that is kept. `tried` is that of
    the first row at which the pattern has not been tried. `ended` has attempts that are not made
    again after a restart: the number of the first row, and that of the last row which they looked
    at. `next_start` is where a match may begin. `around` has the labels on which the next match
    depends, and `reached` is the last row of which it has the label. `given_up` counts the attempts
    that had too many ways, and `characters` those of the rows' texts.
    """

    rules: PatternRules
    rows: list[PatternRow] = field(default_factory=list)
    base: int = 0
    tried: int = 0
    ended: dict[int, int] = field(default_factory=dict)
    next_start: int = 0
    around: Words = ()
    reached: int = -1
    given_up: int = 0
    characters: int = 0
    # The attempts that are open, the oldest first, and those that are over and not decided yet.
    _open: list[Attempt] = field(default_factory=list)
    _closed: list[Attempt] = field(default_factory=list)
    # Those of the rows. Nearly always all have one.
    _labels: Labels = field(default_factory=Labels)
    # If matches decide where others may begin: all attempts since the first open one.
    _waiting: deque[Attempt] = field(default_factory=deque)
    # Where to begin again after a restart, or None if the attempts are known.
    _asleep: int | None = None
    _deadline: int | None = None

    @property
    def deadline(self) -> int | None:
        """The time (µs) that changes something if no row comes before, or None."""
        if self._asleep is not None:
            return self._deadline
        if self.tried < self._end_of_rows:
            return self._row(self.tried).arrival.time + self.rules.within_us
        if self._open:
            return self._open[0].deadline
        # Rows that only PREV may read.
        return self.rows[-1].arrival.time + self.rules.within_us + 1 if self.rows else None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return not self.rows

    @property
    def ways(self) -> int:
        """How many ways to read the rows its attempts have. It counts an attempt as one more."""
        known = self._waiting if self.rules.skips else (*self._open, *self._closed)
        return sum(1 + len(each.ways) for each in known)

    @property
    def _end_of_rows(self) -> int:
        """The number that the next row gets."""
        return self.base + len(self.rows)

    def add(self, row: PatternRow) -> Iterator[Found]:
        """Take the next row, in the order of time. Gives the matches that are certain now.

        Matches may be long, so each is given before the next one is made.
        """
        self._wake()
        self.rows.append(row)
        self.characters += row.arrival.characters
        self._labels.add(row.arrival.label)
        yield from self._go_on(row.arrival.time - 1)
        self._forget(row.arrival.time)

    def pass_time(self, until: int) -> Iterator[Found]:
        """No row up to this time comes any more. Gives the matches that are certain now."""
        self._wake()
        yield from self._go_on(until)
        self._forget(until)

    def _go_on(self, until: int) -> Iterator[Found]:
        """Try the pattern at all rows of which enough is known."""
        while self._is_ready(until):
            number = self.tried
            self._end(self._row(number).arrival.time - 1)
            yield from self._decided()
            self._look(number)
            self.tried += 1
        if self.tried < self._end_of_rows:
            # A row may wait for others, and an attempt for it.
            until = min(until, self._row(self.tried).arrival.time - 1)
        self._end(until)
        yield from self._decided()

    def _is_ready(self, until: int) -> bool:
        """Whether there is a row to try, and all that NEXT may read behind it is known."""
        if self.tried + self.rules.ahead < self._end_of_rows:
            return True
        if self.tried >= self._end_of_rows:
            return False
        return self._row(self.tried).arrival.time + self.rules.within_us <= until

    def _end(self, until: int) -> None:
        """End the attempts to which no row can come in time."""
        ended = 0
        for attempt in self._open:
            if attempt.deadline > until:
                break
            attempt.end()
            ended += 1
        if ended:
            self._closed += self._open[:ended]
            del self._open[:ended]

    def _look(self, number: int) -> None:
        """Let all open attempts look at a row, the oldest first, and begin one there."""
        row, rules, conditions = self._row(number), self.rules, self.rules.conditions
        here = Here(number, row, self._around, [None] * len(conditions.by_variable))
        ways, still_open = 0, list[Attempt]()
        for attempt in (*self._open, self._begun(number)):
            attempt.look(here, conditions)
            if ways + len(attempt.ways) > rules.ways:
                attempt.give_up()
                self.given_up += 1
                self.ended[attempt.start] = number
            ways += len(attempt.ways)
            if attempt.start == number:
                if not attempt.is_open and not attempt.found:
                    # One that fails at its first row tells nothing that others do not tell.
                    continue
                if rules.skips:
                    self._waiting.append(attempt)
            (still_open if attempt.is_open else self._closed).append(attempt)
        self._open = still_open

    def _begun(self, number: int) -> Attempt:
        """The attempt that begins at a row. After a restart it may be over."""
        ways = [] if number in self.ended else [self.rules.conditions.start]
        deadline = self._row(number).arrival.time + self.rules.within_us
        return Attempt(number, deadline, ways)

    def _row(self, number: int) -> PatternRow:
        return self.rows[number - self.base]

    def _around(self, number: int, moved: int) -> PatternRow | None:
        """The row `moved` rows behind a row (before it, if negative), at most WITHIN away."""
        other = number + moved
        if not self.base <= other < self._end_of_rows:
            return None
        row = self._row(other)
        apart = abs(row.arrival.time - self._row(number).arrival.time)
        return row if apart <= self.rules.within_us else None

    def _decided(self) -> Iterator[Found]:
        if not self._closed:
            return
        over, self._closed = sorted(self._closed, key=lambda each: each.start), []
        yield from self._in_order() if self.rules.skips else self._each_by_itself(over)

    def _each_by_itself(self, over: Sequence[Attempt]) -> Iterator[Found]:
        """The matches of the attempts that are over. No attempt depends on another."""
        for attempt in over:
            self.ended[attempt.start] = attempt.looked
            if attempt.found:
                yield self._found(attempt, self._label(attempt))

    def _in_order(self) -> Iterator[Found]:
        """The matches of attempts that are over, until an open one comes."""
        while self._waiting and not self._waiting[0].is_open:
            attempt = self._waiting.popleft()
            own = self._label(attempt)
            # If no earlier attempt looked at its first row, none could have taken the row.
            depends = attempt.start <= self.reached
            self.around = united((self.around, own)) if depends else own
            self.reached = max(self.reached, attempt.looked)
            if attempt.found and attempt.start >= self.next_start:
                found = self._found(attempt, self.around)
                self.next_start = self._behind(attempt, found)
                yield found

    def _label(self, attempt: Attempt) -> Words:
        """The labels of all rows that the attempt looked at, and that PREV and NEXT may read."""
        if len(self._labels.counts) == 1:
            return self.rows[0].arrival.label
        first = max(self.base, attempt.start - self.rules.back)
        earliest = self._row(attempt.start).arrival.time - self.rules.within_us
        latest = self._row(attempt.looked).arrival.time + self.rules.within_us
        rows = self.rows[first - self.base : attempt.looked + self.rules.ahead - self.base + 1]
        return united(
            each.arrival.label for each in rows if earliest <= each.arrival.time <= latest
        )

    def _found(self, attempt: Attempt, label: Words) -> Found:
        start = attempt.start - self.base
        rows = self.rows[start : start + attempt.length]
        return Found(attempt.start, rows, variables_of(attempt.found), label, self._around)

    def _behind(self, attempt: Attempt, found: Found) -> int:
        """The row at which the next match may begin."""
        skip = self.rules.skip
        if skip.to is SkipTo.PAST_LAST_ROW:
            return attempt.start + attempt.length
        wanted = self.rules.conditions.automaton.variables.index(skip.variable or "")
        rows = [n for n, variable in enumerate(found.variables) if variable == wanted]
        offset = (rows[0] if skip.to is SkipTo.FIRST else rows[-1]) if rows else 0
        # A match that begins at the same row again would be found for ever.
        return attempt.start + max(1, offset)

    def _first_needed(self) -> int:
        """The number of the first row that an attempt needs, or of the first one not tried."""
        needed = self._waiting if self.rules.skips else self._open
        return needed[0].start if needed else self.tried

    def _forget(self, until: int) -> None:
        """Let go of the rows that no attempt needs."""
        needed = self._first_needed()
        if needed == self.base:
            return
        first = max(self.base, needed - self.rules.back)
        now = self._row(needed).arrival.time if needed < self._end_of_rows else until
        while first < needed and self._row(first).arrival.time < now - self.rules.within_us:
            first += 1
        if first > self.base:
            for row in self.rows[: first - self.base]:
                self.characters -= row.arrival.characters
                self._labels.remove(row.arrival.label)
            del self.rows[: first - self.base]
            self.base = first
            if self.ended:
                self.ended = {start: last for start, last in self.ended.items() if start >= first}

    def state(self) -> list[Any]:
        """What is kept, in JSON's types. Rows are numbered from 0."""
        start = self._first_needed() if self._asleep is None else self._asleep
        return [
            start - self.base,
            sorted([each - self.base, last - self.base] for each, last in self.ended.items()),
            max(0, self.next_start - self.base),
            *(list(self.around), max(-1, self.reached - self.base), self.deadline),
            self.tried - self.base,
        ]

    def restore(self, rows: list[PatternRow], state: list[Any]) -> None:
        """Go on with what `state` gave. The attempts are made again when they are needed."""
        self.rows = rows
        self.characters = sum(row.arrival.characters for row in rows)
        for row in rows:
            self._labels.add(row.arrival.label)
        self._asleep, ended, self.next_start, around, self.reached, self._deadline, self.tried = (
            state
        )
        self.ended = dict(ended)
        self.around = tuple(around)

    def _wake(self) -> None:
        """Make the attempts again that were open, over the same rows."""
        start, self._asleep = self._asleep, None
        if start is None:
            return
        for number in range(start, self.tried):
            if number in self.ended and self.rules.skips:
                self._waiting.append(self._over(number))
            self._end(self._row(number).arrival.time - 1)
            self._look(number)
            # They were decided before.
            self._closed.clear()

    def _over(self, number: int) -> Attempt:
        """An attempt that was given up. Others depend on what it looked at."""
        return Attempt(number, 0, [], looked=self.ended[number])

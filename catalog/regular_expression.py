"""Regular expressions whose time is at most the text's length times their own size.

They are a subset of RE2's syntax. An engine that tries all threads of a match at once reads them
(`secfilter.regular_expression`), so no pattern and no text can make it try again. This module says
which patterns belong to the subset, and it needs no engine for that:

    pattern  := ["(?i)"] branches
    branches := branch { "|" branch }
    branch   := { atom [ ("*" | "+" | "?" | "{n}" | "{n,}" | "{n,m}") ["?"] ] }
    atom     := "^" | "$" | "." | "(" branches ")" | "(?:" branches ")" | class | escape | character
    class    := "[" ["^"] { character ["-" character] | escape } "]"
    escape   := "\\" ("d" | "D" | "w" | "W" | "s" | "S" | "t" | "n" | "r" | a mark such as "." )

`^` and `$` are the beginning and the end of the whole text. `.` is any character but a new line.
`\\d`, `\\w` and `\\s` know ASCII only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from catalog.errors import InvalidInput, Position

# Each character of a text costs at most so many steps.
MAX_STATES = 128
MAX_GROUP = 9
_NESTED = 20
_CLASSES, _CONTROLS = frozenset("dDwWsS"), frozenset("tnr")
_MARKS = frozenset(r"\.^$|?*+()[]{}-/_#&~,:;=<>!@%'\"` ")
_COUNT = re.compile(r"\{(\d{1,4})(,(\d{1,4})?)?\}")


def check_pattern(pattern: str, position: Position | None = None) -> int:
    """The number of groups of a pattern.

    Raises InvalidInput, with the place in the pattern, for what is outside the subset, and for a
    pattern of more than MAX_STATES steps.

    >>> check_pattern("(&|^)channel_id=([^&]*)")
    2
    """
    reader = _Reader(pattern, position)
    reader.take("(?i)")
    states = reader.branches(0)
    if not reader.at_end():
        raise reader.error("closes no group; write \\)")
    if states > MAX_STATES:
        raise InvalidInput(
            f"a regular expression has at most {MAX_STATES} steps, and this one has {states}; a "
            "count such as {3} repeats the steps before it",
            position,
        )
    return reader.groups


def check_group(pattern: str, group: int, position: Position | None = None) -> None:
    """Raise InvalidInput if the pattern is wrong or has no group of this number."""
    groups = check_pattern(pattern, position)
    if group > groups:
        raise InvalidInput(
            f"the regular expression has no group {group}: a group is in parentheses, and there "
            f"are {groups} of them; group 0 is the whole match",
            position,
        )


@dataclass(slots=True)
class _Reader:
    """Reads a pattern from left to right. Most methods give the steps of the part they read."""

    pattern: str
    position: Position | None
    at: int = 0
    groups: int = field(default=0)

    def at_end(self) -> bool:
        return self.at >= len(self.pattern)

    def take(self, text: str) -> bool:
        if not self.pattern.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def error(self, what: str, at: int | None = None) -> InvalidInput:
        place = self.at if at is None else at
        found = self.pattern[place : place + 1]
        return InvalidInput(
            f"in the regular expression, '{found}' at character {place + 1} {what}"
            if found
            else f"the regular expression ends where it {what}",
            self.position,
        )

    def branches(self, depth: int) -> int:
        if depth > _NESTED:
            raise self.error(f"is more than {_NESTED} groups deep")
        states = self.branch(depth)
        while self.take("|"):
            states += 1 + self.branch(depth)
        return states

    def branch(self, depth: int) -> int:
        states = 0
        while not self.at_end() and self.pattern[self.at] not in "|)":
            begin = self.at
            atom = self.atom(depth)
            states += self.repeated(atom, anchor=self.pattern[begin] in "^$")
        return states

    def repeated(self, states: int, *, anchor: bool) -> int:
        begin = self.at
        counted = _COUNT.match(self.pattern, self.at)
        if counted:
            self.at = counted.end()
            states = self.times(states, counted, begin)
        elif self.take("*") or self.take("+") or self.take("?"):
            states += 1
        else:
            return states
        if anchor:
            raise self.error("repeats ^ or $, which has no meaning; leave it out", begin)
        self.take("?")
        if not self.at_end() and self.pattern[self.at] in "*+?{":
            raise self.error("repeats a repetition; put the first one into (?:...)")
        return states

    def times(self, states: int, counted: re.Match[str], begin: int) -> int:
        least, most = int(counted[1]), counted[3]
        if most is not None and int(most) < least:
            raise self.error("begins a count whose end is below its beginning", begin)
        if counted[2] is None:
            return max(states * least, 1)
        return max(states * (int(most) if most else least + 1), 1) + 1

    def atom(self, depth: int) -> int:
        begin = self.at
        character = self.pattern[begin]
        self.at += 1
        match character:
            case "(":
                return self.group(depth, begin)
            case "[":
                return self.one_of(begin)
            case "\\":
                self.escape(begin)
            case "*" | "+" | "?" | "{":
                raise self.error(f"has nothing to repeat; write \\{character}", begin)
            case "]" | "}":
                raise self.error(f"opens nothing; write \\{character}", begin)
        return 1

    def group(self, depth: int, begin: int) -> int:
        if not self.take("?:"):
            if self.pattern.startswith(("?", "*"), self.at):
                raise self.error(
                    "begins what does not exist here: there are (...) and (?:...), and (?i) at the "
                    "beginning; nothing looks ahead or behind",
                    begin,
                )
            self.groups += 1
        states = self.branches(depth + 1)
        if not self.take(")"):
            raise self.error("needs a closing parenthesis")
        return states + 2

    def escape(self, begin: int) -> str:
        """Read what comes after a backslash."""
        if self.at_end():
            raise self.error("needs a character after the backslash")
        named = self.pattern[self.at]
        self.at += 1
        if named in _CLASSES | _CONTROLS | _MARKS:
            return named
        raise self.error(
            f"begins \\{named}, which does not exist here; there are \\d, \\w, \\s, \\D, \\W, \\S, "
            "\\t, \\n, \\r and marks such as \\.",
            begin,
        )

    def one_of(self, begin: int) -> int:
        self.take("^")
        first = self.at
        while not self.at_end() and self.pattern[self.at] != "]":
            low = self.member()
            follows = self.pattern[self.at : self.at + 2]
            if len(follows) == 2 and follows[0] == "-" and follows[1] != "]":
                self.at += 1
                place = self.at
                high = self.member()
                if low is None or high is None or high < low:
                    raise self.error("ends a range that does not begin before it", place)
        if self.at_end():
            raise self.error("needs ] for the [ at character " + str(begin + 1))
        if self.at == first:
            raise self.error("closes an empty set; for ] itself write \\]")
        self.at += 1
        return 1

    def member(self) -> str | None:
        """A character of a set, or None for a class such as \\d."""
        begin = self.at
        character = self.pattern[begin]
        self.at += 1
        if character == "[":
            raise self.error("is a mark within a set; write \\[", begin)
        if character != "\\":
            return character
        named = self.escape(begin)
        if named in _CLASSES:
            return None
        return {"t": "\t", "n": "\n", "r": "\r"}.get(named, named)

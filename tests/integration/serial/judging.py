"""What each access must have, may have and must not have, by a serial history and by clocks.

The audit log says in which order the changes came about. Each came about between the begin and the
return of its call. All times are in seconds of one clock.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.integration.serial.model import MARKS, Entry, Mark, Model, mark_of
from tests.integration.service.revocations.ledger import Reception

_TOLERANCE_S = 0.05
# A client's library has records that it has fetched and not given out yet.
_BUFFERED_S = 10.0


@dataclass(frozen=True)
class Call:
    """A call, also one that was refused.

    `token` is the one that it was made with, or that a login gave. `principal` is what it gave.
    """

    actor: str
    action: str
    began: float
    returned: float
    token: str = ""
    principal: str = ""


@dataclass(frozen=True)
class Span:
    """A time in which an access covers records with a mark.

    The call that gave it began at `began` and returned at `given`. The one that took it began at
    `ends` and returned at `taken`.
    """

    began: float
    given: float
    ends: float = math.inf
    taken: float = math.inf


Spans = Mapping[tuple[str, Mark], Sequence[Span]]
"""By principal and mark, in the order of time."""


def call_of(entry: Entry, calls: Iterable[Call]) -> Call:
    """The call that the entry is of.

    If several calls of one user may have made it, the times are those that allow the most. An entry
    of nobody's call was made while the platform was prepared. (A call that is repeated, because the
    platform is busy, may have given a principal that its caller never saw.)
    """
    fitting = [
        call
        for call in calls
        if (call.actor, call.action) == (entry.actor, entry.action)
        and call.began - _TOLERANCE_S <= entry.at <= call.returned + _TOLERANCE_S
    ]
    given = entry.detail.get("principal", "")
    fitting = [call for call in fitting if call.principal == given] or fitting
    if not fitting:
        return Call(entry.actor, entry.action, entry.at, entry.at)
    began, returned = min(c.began for c in fitting), max(c.returned for c in fitting)
    return replace(fitting[0], began=began, returned=returned)


def spans_of(entries: Iterable[Entry], calls: Sequence[Call]) -> tuple[Spans, Model]:
    """When each access covered what, and who holds what in the end. Raises NotSerial."""
    model, principals = Model(), set[str]()
    found: defaultdict[tuple[str, Mark], list[Span]] = defaultdict(list)
    for entry in entries:
        call = call_of(entry, calls)
        model.play(entry, call.token)
        principals |= model.accesses.keys()
        for principal in principals:
            shown = model.shown(principal)
            for mark in MARKS:
                spans = found[principal, mark]
                before = bool(spans) and spans[-1].ends == math.inf
                if mark in shown and not before:
                    spans.append(Span(call.began, call.returned))
                elif before and mark not in shown:
                    spans[-1] = replace(spans[-1], ends=call.began, taken=call.returned)
        principals &= model.accesses.keys()
    return found, model


def leaks(
    spans: Spans, principal: str, received: Iterable[Reception], sent: Sequence[float]
) -> list[Reception]:
    """What came to the principal that it must not have.

    A record may come in a span that covers it. If it was sent before the call that took the right
    had returned, a client may also give it out a moment later.
    """

    def may_have(one: Reception, span: Span) -> bool:
        in_time = span.began <= one.at <= span.taken + _BUFFERED_S
        return in_time and sent[one.number] <= span.taken

    return [
        one
        for one in received
        if not any(may_have(one, each) for each in spans.get((principal, mark_of(one.number)), ()))
    ]


def due(
    spans: Spans,
    principal: str,
    fed: Sequence[tuple[float, float]],
    sent: Sequence[float],
    came: Mapping[int, float],
    slack_s: float,
) -> set[int]:
    """The numbers of the records that must have come to the principal.

    They were sent when the access had been told to be fed: `fed` has when this was asked and when
    it was answered. And the right was not being taken until `slack_s` after the record had come to
    a reader that keeps all rights: `came` says when.
    """
    found: set[int] = set()
    for first, mark in enumerate(MARKS):
        for span in spans.get((principal, mark), ()):
            told = [at for asked, at in fed if span.given <= asked and at < span.ends]
            if told:
                found |= {
                    number
                    for number in range(first, len(sent), len(MARKS))
                    if min(told) <= sent[number]
                    and number in came
                    and came[number] + slack_s <= span.ends
                }
    return found

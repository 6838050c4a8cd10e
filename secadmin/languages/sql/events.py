"""PATTERN SEQ, AND and OR: an event pattern over several streams, as a Match over their union."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.pattern import (
    Pattern,
    PatternChoice,
    PatternRepeat,
    PatternSequence,
    PatternVariable,
)
from catalog.plan import Column, Project, Source, Union
from catalog.schema import Attribute, AttributeType, Schema, Type
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.event_words import Event, EventWords, Kind

# A user's name has no dot, so these names are always new.
EVENT_TYPE, EVENT_TIME = "event.type", "event.time"
# AND tries the events in each order.
MAX_EVENTS, MAX_IN_ANY_ORDER = 20, 4


def streams_of(
    words: EventWords, environment: Environment, position: Position
) -> tuple[Built, dict[str, Schema]]:
    """All events in one stream, and the schema of each variable. Raises InvalidInput.

    The event of a stream has NULL for the attributes that only other streams have.
    """
    _check(words, environment)
    streams: dict[str, Built] = {}
    for event in words.events:
        name, place = event.stream.text, environment.place(event.stream.start)
        if name not in streams:
            streams[name] = build(Source(environment.relation(name, place)), (), place)
    types = _types(streams, position)
    branches = [_branch(name, built, types, position) for name, built in streams.items()]
    schemas = {each.variable.text: streams[each.stream.text].schema for each in words.events}
    if len(branches) == 1:
        return branches[0], schemas
    union = Union(tuple(branch.node for branch in branches))
    return build(union, tuple(branches), position), schemas


def _check(words: EventWords, environment: Environment) -> None:
    names = [each.variable.text.lower() for each in words.events]
    for event in words.events:
        if names.count(event.variable.text.lower()) > 1:
            place = environment.place(event.variable.start)
            raise InvalidInput(f"{event.variable.text[:80]!r} is the name of two events", place)
    first, last = words.events[0], words.events[-1]
    absent = next((each for each in words.events if each.absent), None)
    wrong = first if first.absent else last if last.absent else None
    if absent is not None and words.kind is not Kind.SEQ:
        wrong = absent
    if wrong is not None:
        raise InvalidInput(
            "NOT goes between two events of PATTERN SEQ: it says what does not come between them",
            environment.place(wrong.stream.start),
        )
    most = MAX_IN_ANY_ORDER if words.kind is Kind.AND else MAX_EVENTS
    if len(words.events) > most:
        raise InvalidInput(
            f"PATTERN {words.kind} has at most {most} events", environment.place(first.stream.start)
        )


def _types(streams: dict[str, Built], position: Position) -> dict[str, AttributeType]:
    """The type of each attribute that some stream has."""
    found: dict[str, AttributeType] = {}
    for name, built in streams.items():
        if built.event_time is None:
            raise InvalidInput(f"a pattern goes by event time, and {name} has none", position)
        for attribute in built.schema.attributes:
            kind = found.setdefault(attribute.name, attribute.type)
            if kind is not attribute.type:
                raise InvalidInput(
                    f"{attribute.name!r} is a {kind} in one stream and a {attribute.type} in "
                    f"{name}; give it another name in a query of WITH, or use MATCH_RECOGNIZE",
                    position,
                )
    return found


def _branch(name: str, built: Built, types: dict[str, AttributeType], position: Position) -> Built:
    def value(attribute: Attribute) -> Expression:
        known = built.schema.get(attribute.name) is not None
        return AttributeRef(attribute.name) if known else Literal(None, attribute.type)

    columns = (
        Column(EVENT_TYPE, Literal(name, Type.STRING)),
        Column(EVENT_TIME, AttributeRef(built.event_time or "")),
        *(Column(each, value(Attribute(each, kind))) for each, kind in types.items()),
    )
    return build(Project(built.node, columns), (built,), position)


def pattern_of(words: EventWords) -> Pattern:
    """The pattern: the events, and between two of them any others that may be skipped."""
    present = [each for each in words.events if not each.absent]
    match words.kind:
        case Kind.OR:
            return _either([PatternVariable(each.variable.text) for each in present])
        case Kind.AND:
            return _either([_in_order(order) for order in permutations(present)])
        case Kind.SEQ:
            return _in_order(words.events)


def _either(parts: Sequence[Pattern]) -> Pattern:
    return parts[0] if len(parts) == 1 else PatternChoice(tuple(parts))


def _in_order(events: Sequence[Event]) -> Pattern:
    parts: list[Pattern] = []
    behind = ""
    for event in events:
        if event.absent:
            continue
        if parts:
            # As few as possible: the next fitting event is taken.
            skipped = PatternVariable(between(behind))
            parts.append(PatternRepeat(skipped, 0, None, greedy=False))
        parts.append(PatternVariable(event.variable.text))
        behind = event.variable.text
    return _sequence(parts)


def _sequence(parts: list[Pattern]) -> Pattern:
    return parts[0] if len(parts) == 1 else PatternSequence(tuple(parts))


def between(variable: str) -> str:
    """The variable of the events that are skipped behind an event."""
    return f"behind.{variable}"


def is_of(event: Event, condition: Expression | None) -> Expression:
    """Whether the current row is the event: of its stream, and with its condition."""
    of_stream = Call("=", (AttributeRef(EVENT_TYPE), Literal(event.stream.text, Type.STRING)))
    return of_stream if condition is None else Call("and", (of_stream, condition))


def is_none_of(events: Sequence[Expression]) -> Expression:
    """Whether the current row is none of these. What is unknown is not one."""
    false = Literal(False, Type.BOOLEAN)
    none = [Call("not", (Call("coalesce", (each, false)),)) for each in events]
    return none[0] if len(none) == 1 else Call("and", tuple(none))

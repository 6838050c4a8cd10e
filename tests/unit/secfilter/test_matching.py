"""Matches of event patterns, against an oracle that tries all ways one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from catalog.analysis import analyse, analyse_node
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Expression, Literal, attributes_of
from catalog.held_time import held_ms
from catalog.label import Label
from catalog.match_expressions import MatchExpressions
from catalog.pattern import (
    NEXT_ROW,
    PAST_LAST_ROW,
    Definition,
    Pattern,
    PatternChoice,
    PatternRepeat,
    PatternSequence,
    PatternVariable,
    Reading,
    Skip,
    SkipTo,
    may_be_empty,
)
from catalog.plan import Match, Plan, Source
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from secfilter.lab import NULL_MARK, SEPARATOR
from secfilter.match_rules import match_rules
from secfilter.matching import Matching, MatchResult
from secfilter.moving_values import text_of
from secfilter.moving_window import Arrival, HeldLimits
from secfilter.remembered import Remembered
from tests.lanes import number_of
from tests.oracle.expressions import evaluate
from tests.oracle.plans import run
from tests.oracle.values import Row, Tuple, Value, microseconds, timestamp

SCHEMA = Schema(
    (
        Attribute("at", Type.TIMESTAMP, required=True),
        Attribute("key", Type.BIGINT),
        Attribute("price", Type.BIGINT),
        Attribute("rate", Type.DOUBLE),
    )
)
STREAM = Relation(1, "a", RelationKind.STREAM, SCHEMA, "at", 0)
SOURCE = Source(STREAM)
KEY, PRICE, RATE = map(AttributeRef, ("key", "price", "rate"))
A, B, C = map(PatternVariable, "abc")
# A tuple: time (ms), key, price, the category of its label.
Given = tuple[int, int | None, int | None, int]
GIVENS = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.sampled_from([0, 0, 0, 1, None]),
        st.integers(0, 3) | st.none(),
        st.integers(0, 7),
    ),
    min_size=3,
    max_size=14,
)
WAYS = 10_000


def number(value: int) -> Literal:
    return Literal(value, Type.BIGINT)


READINGS = (
    Reading("row.0", "last", None, PRICE, moved=-1),
    Reading("row.1", "last", None, PRICE, moved=-2),
    Reading("row.2", "last", "a", PRICE),
    Reading("row.3", "first", "b", PRICE),
    Reading("row.4", "sum", "b", PRICE),
    Reading("row.5", "count", None, None),
    Reading("row.6", "avg", "a", RATE),
    Reading("row.7", "max", None, PRICE),
    Reading("row.8", "sum", "c", RATE),
    Reading("row.9", "count", "a", PRICE),
    Reading("row.10", "last", None, PRICE, moved=1),
    Reading("row.11", "last", None, PRICE, moved=2),
    Reading("row.12", "first", "a", PRICE, offset=1, moved=1),
    Reading("row.13", "last", "b", PRICE, offset=1),
    Reading("row.14", "last", None, PRICE, offset=2, moved=-1),
)
MEASURES = (
    Reading("first_price", "first", None, PRICE),
    Reading("last_b", "last", "b", RATE),
    Reading("n", "count", None, None),
    Reading("total", "sum", "a", PRICE),
    Reading("mean", "avg", "b", RATE),
    Reading("low", "min", None, RATE),
    Reading("until", "last", "c", AttributeRef("at")),
    Reading("part", "classifier", None, None),
    Reading("second", "first", None, PRICE, offset=1),
    Reading("before_last", "last", "a", RATE, offset=1),
    Reading("before", "first", "b", PRICE, moved=-2),
)
AHEAD = (
    Reading("behind", "last", None, PRICE, moved=1),
    Reading("far", "first", "a", RATE, offset=1, moved=2),
)
FINAL = (
    Reading("all", "count", None, None, final=True),
    Reading("highest", "max", "a", RATE, final=True),
    Reading("end", "last", None, AttributeRef("at"), final=True),
    Reading("beyond", "last", "b", PRICE, moved=1, final=True),
)
OPERANDS: st.SearchStrategy[Expression] = st.sampled_from(
    [*(AttributeRef(each.name) for each in READINGS), PRICE, number(1), number(2)]
)
CONDITIONS = st.one_of(
    st.builds(Call, st.sampled_from(["<", ">", "=", "<>"]), st.tuples(OPERANDS, OPERANDS)),
    st.builds(lambda a: Call(">", (PRICE, a)), st.sampled_from([number(0), number(1)])),
    st.builds(lambda a: Call("is_null", (a,)), OPERANDS),
)


EASY = st.builds(
    lambda function, a: Call(function, (PRICE, a)),
    st.sampled_from(["<", ">", "=", "<>"]),
    st.sampled_from([number(1), number(2)]),
)


def repeated(part: Pattern, least: int, more: int | None, greedy: bool) -> PatternRepeat:
    most = None if more is None else max(1, least + more)
    return PatternRepeat(part, least, most, greedy)


PATTERNS: st.SearchStrategy[Pattern] = st.recursive(
    st.sampled_from([A, B, C]),
    lambda inner: st.one_of(
        st.builds(PatternSequence, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(PatternChoice, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(repeated, inner, st.integers(0, 2), st.none() | st.integers(0, 2), st.booleans()),
    ),
    max_leaves=5,
)
SKIPS = st.sampled_from(
    [NEXT_ROW, PAST_LAST_ROW, *(Skip(to, v) for to in (SkipTo.FIRST, SkipTo.LAST) for v in "ab")]
)


@st.composite
def nodes(draw: st.DrawFn) -> Match:
    definitions = tuple(
        Definition(name, condition)
        for name in "abc"
        if (condition := draw(st.none() | EASY | CONDITIONS)) is not None
    )
    used = {ref.name for each in definitions for ref in attributes_of(each.condition)}
    per_row = draw(st.booleans())
    measures = (*MEASURES, *(AHEAD if draw(st.integers(0, 3)) == 0 else ()))
    return Match(
        SOURCE,
        draw(st.sampled_from([(), (KEY,)])),
        (*measures, *FINAL) if per_row else measures,
        draw(PATTERNS.filter(lambda each: not may_be_empty(each))),
        draw(st.integers(1, 6)),
        definitions,
        tuple(each for each in READINGS if each.name in used),
        draw(SKIPS),
        draw(st.sampled_from([(), ("a",)])),
        per_row,
    )


def is_right(node: Match) -> bool:
    try:
        analyse_node(node)
    except InvalidInput:
        return False
    return True


def all_variables(node: Match) -> Match:
    """The pattern with each variable somewhere, so that readings may name it."""
    never = PatternRepeat(PatternSequence((A, B, C, C, C, C, C, C)), 1, 1)
    return replace(node, pattern=PatternChoice((node.pattern, never)))


def engine(node: Match, ways: int = WAYS, limits: HeldLimits | None = None) -> Matching:
    absent = (255,) if node.absent else ()
    held = limits or HeldLimits(999, 100_000)
    return match_rules(node, SCHEMA, absent, held, ways).empty()


def table(rows: Sequence[Given]) -> list[Tuple]:
    return [
        Tuple(
            (timestamp(time * 1_000), key, price, None if price is None else price / 4),
            Label.of(category),
        )
        for time, key, price, category in rows
    ]


def arrivals(node: Match, tuples: Sequence[Tuple]) -> list[Arrival]:
    """What Spark computes of each tuple."""
    values = MatchExpressions(node, SCHEMA).values
    found = []
    for place, each in enumerate(tuples):
        row = Row(SCHEMA, each.values)
        time, label = row["at"], each.label
        assert isinstance(time, datetime)
        assert label is not None
        texts = (
            SEPARATOR.join(text(evaluate(v, row)) for v in several)
            for several in (node.partition, values)
        )
        part, arguments = texts
        found.append(
            Arrival(microseconds(time), f"{place:05}", (label.bits,), part, True, "", arguments)
        )
    return found


def text(value: Value) -> str:
    return text_of(microseconds(value) if hasattr(value, "tzinfo") else value)  # type: ignore[arg-type]


def expected(node: Match, tuples: list[Tuple]) -> Counter[tuple[object, ...]]:
    found = run(node, {"a": tuples}, lambda _relation: Label.of(*range(8)))
    return Counter((*map(text, each.values), each.label) for each in found)


def seen(node: Match, results: Sequence[MatchResult]) -> Counter[tuple[object, ...]]:
    return Counter(
        (str(each.time), *each.row.split(SEPARATOR), Label(each.label[0])) for each in results
    )


@settings(max_examples=number_of("PATTERN_EXAMPLES", sample=300, long=5_000), deadline=None)
@given(node=nodes().map(all_variables), rows=GIVENS, data=st.data())
def test_an_engine_finds_what_trying_all_ways_finds(
    node: Match, rows: list[Given], data: st.DataObject
) -> None:
    assume(is_right(node))
    tuples = table(rows)
    # Batches in any order within a lateness of two milliseconds. Each goes to one of two processes.
    processes, stored = [Remembered(10**6), Remembered(10**6)], None
    order = sorted(
        arrivals(node, tuples), key=lambda each: each.time + data.draw(st.integers(0, 2)) * 1_000
    )
    results: list[MatchResult] = []
    newest = -(10**9)
    while order:
        size = data.draw(st.integers(1, len(order)))
        batch, order = order[:size], order[size:]
        process = data.draw(st.sampled_from(processes))
        matching = process.go_on("matching", stored, lambda: engine(node))
        matching.take(batch)
        newest = max(newest, *(each.time for each in batch))
        results += matching.until(newest - 2_000 - 1 if order else 10**9)
        assert matching.withheld == 0
        stored = process.keep("matching", matching)
        again = engine(node)
        again.restore(stored)
        assert again.to_text() == stored
    assert seen(node, results) == expected(node, tuples)
    assert len({each.lineage for each in results}) == len(results)
    assert stored in {None, EMPTY}


@settings(max_examples=number_of("PATTERN_EXAMPLES", sample=60, long=2_000), deadline=None)
@given(node=nodes().map(all_variables), rows=GIVENS, data=st.data())
def test_what_comes_too_late_is_left_out_as_if_it_were_not_there(
    node: Match, rows: list[Given], data: st.DataObject
) -> None:
    assume(is_right(node))
    tuples = table(rows)
    matching, withheld, done = engine(node), 0, -(10**9)
    results: list[MatchResult] = []
    in_time: list[int] = []
    # Rows come in any order, and time goes on between them.
    order = data.draw(st.permutations([*enumerate(arrivals(node, tuples))]))
    for place, each in order:
        if each.time > done:
            in_time.append(place)
        matching.take([each])
        if data.draw(st.integers(0, 3)) == 0:
            done = max(done, data.draw(st.integers(-1, 12)) * 1_000)
            results += matching.until(done)
            stored, withheld = matching.to_text(), withheld + matching.withheld
            matching = engine(node)
            matching.restore(stored)
    results += matching.until(10**9)
    assert withheld + matching.withheld == len(tuples) - len(in_time)
    assert seen(node, results) == expected(node, [tuples[place] for place in sorted(in_time)])


@settings(max_examples=number_of("PATTERN_EXAMPLES", sample=60, long=2_000), deadline=None)
@given(node=nodes().map(all_variables), rows=GIVENS)
def test_no_match_is_held_for_longer_than_the_plan_says(node: Match, rows: list[Given]) -> None:
    assume(is_right(node))
    check_held(node, table(rows))


def check_held(node: Match, tuples: list[Tuple]) -> int:
    """Check the times of results, millisecond by millisecond. Gives how long one was held (ms)."""
    matching, longest = engine(node), 0
    matching.take(arrivals(node, tuples))
    for now_ms in range(30):
        behind = [now_ms - each.time // 1_000 for each in matching.until(now_ms * 1_000)]
        longest = max(longest, *behind, 0)
    assert longest <= held_ms(analyse_node(node))
    return longest


def test_next_holds_a_match_for_up_to_twice_its_length() -> None:
    """The row that ends the match waits for its own next row before the pattern is tried at it."""
    cheap = Definition("a", Call("=", (PRICE, number(1))))
    behind = (Reading("behind", "last", "a", PRICE, moved=1),)
    node = Match(SOURCE, (), behind, PatternRepeat(A, 1, None), 10, (cheap,), skip=NEXT_ROW)
    rows = [(0, None, 1, 0), (9, None, 2, 0)]
    assert check_held(node, table(rows)) == 19
    assert check_held(replace(node, measures=MEASURES[2:3]), table(rows)) == 9


# The state when all is over.
EMPTY = f'{{"form":2,"done":{10**9},"waiting":[],"partitions":[]}}'


def simple(pattern: Pattern, skip: Skip = NEXT_ROW, *, within_ms: int = 10) -> Match:
    return Match(SOURCE, (), MEASURES[2:3], pattern, within_ms, skip=skip)


def row(time: int, arguments: str = "") -> Arrival:
    return Arrival(time * 1_000, f"{time:03}", (1,), "", True, "", arguments)


MANY = PatternSequence((PatternRepeat(A, 1, None), PatternRepeat(B, 1, None), C, C, C, C))


@pytest.mark.parametrize("skip", [NEXT_ROW, PAST_LAST_ROW])
def test_an_attempt_with_too_many_ways_is_given_up_and_counted(skip: Skip) -> None:
    """The oldest attempts go on. What was given up is not tried again after a restart."""
    node = simple(MANY, skip, within_ms=99)
    whole, few = engine(node), engine(node, ways=12)
    for matching in (whole, few):
        matching.take(row(n) for n in range(8))
    assert [each.time for each in whole.until(7_000)] == []
    assert [each.time for each in few.until(7_000)] == []
    assert (whole.withheld, few.withheld > 0) == (0, True)
    given_up = few.withheld
    again = engine(node, ways=12)
    again.restore(few.to_text())
    results = [*again.until(10**9)]
    assert [each.lineage for each in results][:1] == ["000"]
    assert len(results) <= len([*whole.until(10**9)])
    assert again.withheld == 0 < given_up


def test_rows_beyond_the_limit_are_withheld_and_counted() -> None:
    matching = engine(simple(A), limits=HeldLimits(2, 100))
    matching.take(row(n) for n in range(3))
    assert [each.time for each in matching.until(5_000)] == [0, 1_000]
    assert matching.withheld == 1
    # There is room again. A row whose time is over is withheld too.
    matching.take([row(6), row(5)])
    assert [each.time for each in matching.until(9_000)] == [6_000]
    assert matching.withheld == 2


def test_long_rows_are_withheld() -> None:
    matching = engine(simple(A), limits=HeldLimits(9, 4))
    matching.take([row(1, "abc"), row(2, "de"), row(3, "f")])
    assert matching.withheld == 1


def test_rows_wait_until_their_match_is_certain_and_are_then_let_go() -> None:
    matching = engine(simple(PatternRepeat(A, 1, 2), PAST_LAST_ROW), limits=HeldLimits(3, 9))
    matching.take([row(1), row(2)])
    assert [each.row for each in matching.until(2_000)] == ["2"]
    # A match could still begin at the second row, so it is kept. The first one is not.
    matching.take([row(13), row(14)])
    assert [each.row for each in matching.until(20_000)] == ["2"]
    assert matching.withheld == 0


def test_a_state_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="another form"):
        engine(simple(A)).restore('{"form":3}')


RISING = Match(
    SOURCE,
    (KEY,),
    (
        Reading("low", "first", "a", PRICE),
        Reading("high", "last", "b", PRICE),
        Reading("n", "count", None, None),
        Reading("behind", "last", None, PRICE, moved=1),
    ),
    PatternSequence((A, PatternRepeat(B, 1, None))),
    10,
    (Definition("b", Call(">", (PRICE, AttributeRef("row.0")))),),
    (Reading("row.0", "last", None, PRICE, moved=-1),),
)


def test_a_match_goes_on_from_a_state_that_an_older_program_kept() -> None:
    """It was kept in the middle of two matches, while rows wait for their time and for others."""
    matching = engine(RISING)
    matching.restore((Path(__file__).parent / "match_state.json").read_text())
    ids = [f"{number:05}" for number in (5, 6)]
    further = arrivals(RISING, table([(4, 1, 7, 5), (5, 0, 1, 6)]))
    matching.take(replace(each, lineage=name) for each, name in zip(further, ids, strict=True))
    results = [*matching.until(10**9)]
    assert [(each.lineage, *each.row.split(SEPARATOR), each.label) for each in results] == [
        ("00000", "0", "1", "3", "3", "2", (0b1010111,)),
        ("00003", "1", "5", "7", "2", NULL_MARK, (0b101000,)),
    ]
    assert matching.withheld == 0


def before_next(per_row: bool = False) -> Match:
    """Rows that are cheaper than the next one, which comes within 10 ms."""
    cheaper = Definition("a", Call("<", (PRICE, AttributeRef("row.0"))))
    ahead = (Reading("row.0", "last", None, PRICE, moved=1),)
    measures = (Reading("price_now", "last", None, PRICE), Reading("n", "count", None, None))
    one_or_more = PatternRepeat(A, 1, None)
    return Match(SOURCE, (), measures, one_or_more, 10, (cheaper,), ahead, per_row=per_row)


def priced(node: Match, *rows: tuple[int, int]) -> list[Arrival]:
    """Rows of a time (ms) and a price, each with a category of its own."""
    return arrivals(node, table([(at, None, price, n) for n, (at, price) in enumerate(rows)]))


def test_a_row_waits_for_the_row_that_next_reads() -> None:
    node = before_next()
    matching = engine(node)
    rows = priced(node, (1, 1), (2, 5), (3, 4))
    matching.take(rows[:2])
    # The first row fits. Whether the second one does depends on a row that has not come.
    assert [*matching.until(2_500)] == []
    matching.take(rows[2:])
    (result,) = matching.until(3_000)
    assert (result.row, result.label) == (f"1{SEPARATOR}1", (0b111,))
    # The last row waits until no row can come that is within 10 ms.
    assert matching.next_time() == 13_000
    assert [*matching.until(13_000)] == []
    assert matching.to_text() == EMPTY.replace(str(10**9), "13000")


def test_the_results_of_next_may_come_so_much_later() -> None:
    """The last row of a match may be at its end, and then NEXT may wait as long again."""
    node = before_next()
    back = replace(node, readings=(replace(node.readings[0], moved=-1),))
    assert [analyse(Plan(each)).delay_ms for each in (back, node)] == [10, 20]


def test_what_comes_later_than_within_is_no_next_row() -> None:
    node = before_next()
    matching = engine(node)
    matching.take(priced(node, (1, 1), (12, 5)))
    assert [*matching.until(10**9)] == []


def test_each_row_of_a_match_is_a_result_with_the_label_of_all() -> None:
    node = before_next(per_row=True)
    matching = engine(node)
    matching.take(priced(node, (1, 1), (2, 5), (3, 6), (4, 0)))
    results = [*matching.until(10**9)]
    assert [each.row.split(SEPARATOR) for each in results] == [
        ["1000", NULL_MARK, "1", "0.25", "1", "1"],
        ["2000", NULL_MARK, "5", "1.25", "5", "2"],
    ]
    assert [(each.time, each.label) for each in results] == [(2_000, (0b1111,))] * 2
    assert [each.lineage for each in results] == ["00000+0", "00000+1"]


def test_nested_choices_of_optional_parts_take_no_time() -> None:
    """Without a memory, this automaton would be made in 2 to the power of 40 steps."""
    either = PatternChoice((PatternRepeat(A, 0, 1), PatternRepeat(B, 0, 1)))
    matching = engine(simple(PatternSequence((*[either] * 40, C))))
    matching.take(row(n) for n in range(3))
    assert len([*matching.until(10**9)]) == 3

"""Queries at levels against the semantics of paper 001 (§4), which knows of no category.

There a level is a vector. A query at level l reads what l dominates (the stream shepherd), and a
result has the least upper bound of the levels of all that it comes from. The oracle of plans says
what that is: here each record has a label of its own, so the label of a result names its records.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice

import pytest
from pyspark.sql import SparkSession

from catalog.clearance import Clearance
from catalog.conflict_class import dominated, level_of, read_level
from catalog.label import Label
from catalog.plan import Plan, Source, at_sources, source_nodes
from secadmin.languages import Unsayable, parse_sql, sql_statement, sql_text, xml_text
from tests.differential.case import Case, Class, Outcome, Record
from tests.differential.conftest import interpreting
from tests.differential.engine import run_cases
from tests.differential.message_log import (
    CLASSES,
    CLAUSES,
    COMPANIES,
    LEVELS,
    LOG,
    NOON,
    SOURCE,
    Log,
    records,
)
from tests.lanes import is_long, number_of
from tests.oracle import levels as vectors
from tests.oracle.plans import run
from tests.oracle.values import Tuple, Value

NUMBER = number_of("LEVEL_CASES", sample=6, long=500)
SEED = number_of("LEVEL_SEED", sample=1, long=1)
PAIRS = number_of("LEVEL_PAIRS", sample=3, long=6)
# Q1 to Q7, Qi, Qj and Q'j of the paper, at its levels. It gives COUNT no argument, and its last
# query has a quotation mark too many.
_SENT = 'msgType = "send" AND outcome'
_COUNTING = {"Qi": ("[1, ⊥]", ""), "Qj": ("[T, ⊥]", ""), "Q'j": ("[T, ⊥]", " AND level = [1, ⊥]")}
PAPER = {
    "Q1": f'AT LEVEL [1, _] SELECT timestamp FROM MessageLog WHERE {_SENT} = "success" '
    'AND receiver = "B"',
    "Q2": f'AT LEVEL [1, _] SELECT timestamp FROM MessageLog WHERE {_SENT} = "failure" '
    'AND receiver = "B"',
    "Q3": f'AT LEVEL [⊥, B] SELECT timestamp FROM MessageLog WHERE {_SENT} = "failure" '
    'AND receiver = "B"',
    "Q4": f'AT LEVEL [⊥, T] SELECT timestamp FROM MessageLog WHERE {_SENT} = "failure" '
    'AND receiver = "B" OR receiver = "A" OR receiver = "C"',
    "Q5": "AT LEVEL [1, B] SELECT MIN(timestamp), MAX(timestamp) FROM MessageLog [ROWS 100] "
    'WHERE outcome = "success" AND serviceId = "5"',
    "Q6": "AT LEVEL [1, B] SELECT R.timestamp AS received, S.timestamp AS sent "
    "FROM MessageLog R [ROWS 100], MessageLog S [ROWS 100] "
    'WHERE S.msgType = "send" AND S.outcome = "success" AND R.msgType = "receive" '
    'AND R.outcome = "success" AND R.receiver = "1" AND R.sender = "B" AND S.receiver = "B" '
    'AND S.sender = "1" AND S.serviceId = R.serviceId',
    "Q7": "AT LEVEL [T, T] SELECT serviceId, MIN(timestamp), MAX(timestamp) "
    'FROM MessageLog [ROWS 100] WHERE outcome = "success" GROUP BY serviceId',
    **{
        name: f"AT LEVEL {level} SELECT COUNT(*) FROM MessageLog [ROWS 3] WHERE {_SENT} = "
        f'"success" AND receiver = "B"{more}'
        for name, (level, more) in _COUNTING.items()
    },
}


_B = vectors.BOTTOM


def _sent_by(companies: str) -> Sequence[tuple[tuple[Value, ...], vectors.Level]]:
    """Records that these companies send to company B, a second after each other."""
    return [
        (("5", "send", company, "B", NOON + timedelta(seconds=second), "success"), (company, _B))
        for second, company in enumerate(companies)
    ]


# Company 1 has sent the first record and the last one, and company 2 those between them.
_TWO_COMPANIES = _sent_by("12221")
# The windows of the paper hold a hundred tuples. Each company has sent more than that.
_HUNDRED = {f"{name} of 100": PAPER[name].replace("ROWS 3", "ROWS 100") for name in _COUNTING}
_MANY = _sent_by("12" * 120)


@dataclass(frozen=True, slots=True)
class Given:
    """A query text, and records with their levels."""

    text: str
    records: Sequence[tuple[tuple[Value, ...], vectors.Level]]


def query(chance: random.Random) -> str:
    """A query of SIF-CQL: a window, perhaps with a condition, and what is made of its relation."""
    level = vectors.printed(chance.choice(LEVELS))
    window = chance.choice(["ROWS 2", "ROWS 5", "RANGE 3 SECONDS", "NOW", "UNBOUNDED"])
    window = chance.choice([window, "PARTITION BY serviceId ROWS 2"])
    stream = chance.choice(["ISTREAM", "DSTREAM", "RSTREAM"])
    conditions = [
        *('outcome = "success"', 'receiver <> "B"', "level <> [1, ⊥]"),
        *("level IN ([1, A], [⊥, ⊥], [⊥, B])", "level = '[T, T]'"),
    ]
    where = chance.choice(["", f" WHERE {chance.choice(conditions)}"])
    selected = chance.choice(
        [
            ("serviceId, receiver, level", ""),
            ("*", ""),
            ("COUNT(*)", ""),
            ("level, COUNT(*), MAX(timestamp)", " GROUP BY level"),
            ("serviceId, MIN(receiver)", " GROUP BY serviceId"),
        ]
    )
    if chance.random() < 0.2:
        return (
            f"AT LEVEL {level} SELECT a.receiver, b.level AS of_b FROM MessageLog a [{window}], "
            "MessageLog b [ROWS 3] WHERE a.serviceId = b.serviceId AND a.level = b.level"
        )
    body = f"SELECT {selected[0]} FROM MessageLog [{window}]{where}{selected[1]}"
    if chance.random() < 0.2:
        return f"AT LEVEL {level} SELECT serviceId, level, timestamp FROM MessageLog{where}"
    return f"AT LEVEL {level} {stream}({body})"


def made(given: Given, name: str) -> tuple[Case, Plan, Label]:
    plan = parse_sql(given.text, Log()).plan
    level = read_level(sql_statement(given.text).level or "", CLASSES)
    reach = dominated(SOURCE | COMPANIES, level, CLAUSES, COMPANIES)
    held = [read_level(vectors.printed(each), CLASSES) for each in LEVELS]
    classes = [Class(CLAUSES.cleared(Clearance((SOURCE | each).bits))) for each in held]
    wired = [
        Record(values, (SOURCE | read_level(vectors.printed(own), CLASSES)).to_wire())
        for values, own in given.records
    ]
    case = Case(
        *(name, plan, {LOG.name: wired}, {LOG.object_id: reach}, tuple(classes)),
        conflict_classes=CLASSES,
        floor=level,
    )
    return case, plan, level


Found = Counter[tuple[tuple[Value, ...], str]]


def at_level(
    given: Given, plan: Plan, level: vectors.Level, floor: Sequence[vectors.Level]
) -> list[tuple[tuple[Value, ...], vectors.Level]]:
    """The results over what the level dominates, each with its level, by the paper."""
    numbered = [((number, values), own) for number, (values, own) in enumerate(given.records)]
    read = vectors.shepherd(numbered, level)
    shows = any(source.shows_level for source in source_nodes(plan))
    table = [
        Tuple((*values, vectors.printed(own)) if shows else values, Label.of(number))
        for (number, values), own in read
    ]
    everything = Label.of(*range(len(given.records)))
    found = []
    for each in run(plan.root, {LOG.name: table}, lambda _: everything):
        used = (each.label or Label()).categories()
        of_inputs = [given.records[number][1] for number in used]
        found.append((each.values, vectors.lub([*of_inputs, *floor], len(CLASSES))))
    return found


def expected(given: Given, plan: Plan, level: vectors.Level) -> tuple[Found, list[Found]]:
    """The results with their levels, and those that each of `LEVELS` may see, by the paper."""
    found = at_level(given, plan, level, [level])
    return (
        _counted(found),
        [
            _counted([each for each in found if vectors.dominated(each[1], reader)])
            for reader in LEVELS
        ],
    )


def _counted(found: Sequence[tuple[tuple[Value, ...], vectors.Level]]) -> Found:
    return Counter((values, vectors.printed(own)) for values, own in found)


def as_read(tuples: Sequence[Tuple]) -> Found:
    return Counter((each.values, level_of(each.label or Label(), CLASSES)) for each in tuples)


def all_given() -> dict[str, Given]:
    chance = random.Random(SEED)
    usual = [("1", _B), ("1", _B), (_B, "B"), ("1", "B"), (_B, "A"), ("2", _B), (_B, _B)]
    given = {name: Given(text, records(chance, 60, usual)) for name, text in PAPER.items()}
    given |= {name: Given(PAPER[name], _TWO_COMPANIES) for name in ("Qi", "Q'j")}
    for number in range(NUMBER):
        given[f"{SEED}-{number}"] = Given(query(chance), records(chance, chance.randint(3, 12)))
    return given | {name: Given(text, _MANY) for name, text in _HUNDRED.items()}


GIVEN = all_given()
READERS = LEVELS if is_long() else LEVELS[::6]
VIEWED = GIVEN if is_long() else dict(islice(GIVEN.items(), len(PAPER) + 1))


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> dict[str, Outcome]:
    """What all queries give, from one job."""
    cases = [made(each, name)[0] for name, each in GIVEN.items()]
    found: list[Outcome] = []
    with interpreting(spark):
        for start in range(0, len(cases), 60):
            found += run_cases(spark, cases[start : start + 60])
    return dict(zip(GIVEN, found, strict=True))


@pytest.mark.parametrize("name", GIVEN)
def test_a_query_at_a_level_gives_what_the_paper_says(
    outcomes: dict[str, Outcome], name: str
) -> None:
    given = GIVEN[name]
    _, plan, label = made(given, name)
    text = level_of(label, CLASSES)
    level = next(each for each in LEVELS if vectors.printed(each) == text)
    results, seen = expected(given, plan, level)
    assert as_read(outcomes[name].results) == results, given
    for reader, wanted, got in zip(LEVELS, seen, outcomes[name].delivered, strict=True):
        assert as_read(got) == wanted, (reader, given)


@pytest.fixture(scope="module")
def views(spark: SparkSession) -> dict[str, tuple[Given, Plan, Outcome]]:
    """What each level gets of queries without a level, with semantics `view`."""
    given = {
        name: replace(each, text=each.text[each.text.index("]") + 2 :])
        for name, each in VIEWED.items()
    }
    plans = {name: parse_sql(each.text, Log()).plan for name, each in given.items()}
    cases = [_view_case(name, given[name], plans[name]) for name in given]
    found: list[Outcome] = []
    with interpreting(spark):
        for start in range(0, len(cases), 30):
            found += run_cases(spark, cases[start : start + 30])
    return {
        name: (given[name], plans[name], outcome)
        for name, outcome in zip(given, found, strict=True)
    }


def _view_case(name: str, given: Given, plan: Plan) -> Case:
    at_top = Given(f"AT LEVEL [T, T] {given.text}", given.records)
    case, _, _ = made(at_top, name)
    classes = tuple(each for each, of in zip(case.classes, LEVELS, strict=True) if of in READERS)
    return replace(case, plan=plan, floor=Label(), classes=classes, view=True)


@pytest.mark.parametrize("name", VIEWED)
def test_a_view_is_the_query_at_the_level_of_its_reader(
    views: dict[str, tuple[Given, Plan, Outcome]], name: str
) -> None:
    """The stream shepherd of §4.1 for each reader, in one query."""
    given, plan, outcome = views[name]
    for reader, got in zip(READERS, outcome.delivered, strict=True):
        assert as_read(got) == _counted(at_level(given, plan, reader, [])), (reader, given)


def test_every_query_of_the_paper_has_results(outcomes: dict[str, Outcome]) -> None:
    assert [name for name in PAPER if not outcomes[name].results] == []


def test_no_filter_turns_one_query_of_the_paper_into_the_other(
    outcomes: dict[str, Outcome],
) -> None:
    """001 §3: Qi counts the newest three of its company, Q'j its own among the newest three."""
    counts = {name: {row.values[-1] for row in outcomes[name].results} for name in ("Qi", "Q'j")}
    assert counts == {"Qi": {1, 2}, "Q'j": {1}}


def test_a_window_of_a_hundred_rows_holds_a_hundred_tuples_that_its_level_dominates(
    outcomes: dict[str, Outcome],
) -> None:
    """The paper's own windows. Half of the newest hundred tuples are of company 1."""
    most = {
        name: max(int(str(row.values[-1])) for row in outcomes[name].results) for name in _HUNDRED
    }
    assert most == {"Qi of 100": 100, "Qj of 100": 100, "Q'j of 100": 50}


def test_what_a_level_may_not_see_changes_nothing(spark: SparkSession) -> None:
    """Records above the level are replaced, added and removed, and the results stay (001 §3)."""
    chance = random.Random(SEED)
    pairs: list[Given] = []
    for number in range(PAIRS):
        text, own = query(chance), records(chance, 10)
        _, _, label = made(Given(text, own), str(number))
        shown = level_of(label, CLASSES)
        level = next(each for each in LEVELS if vectors.printed(each) == shown)
        below = [each for each in own if vectors.dominated(each[1], level)]
        others = [each for each in records(chance, 10) if not vectors.dominated(each[1], level)]
        mixed = sorted([*below, *others], key=lambda each: str(each[0][4]))
        pairs += [Given(text, own), Given(text, mixed), Given(text, below)]
    with interpreting(spark):
        found = run_cases(spark, [made(each, str(n))[0] for n, each in enumerate(pairs)])
    for first, second, third in zip(found[::3], found[1::3], found[2::3], strict=True):
        assert as_read(first.results) == as_read(second.results) == as_read(third.results)


def test_the_level_is_only_there_for_who_names_it() -> None:
    plain = parse_sql("SELECT * FROM MessageLog", Log())
    assert plain.schema == LOG.schema
    assert not any(source.shows_level for source in source_nodes(plain.plan))
    shown = parse_sql("SELECT *, level FROM MessageLog WHERE level = [1,_]", Log())
    assert shown.schema.names == (*LOG.schema.names, "level")
    assert at_sources(shown.plan, lambda source: Source(source.relation)) != shown.plan


@pytest.mark.parametrize(
    "text",
    [
        "SELECT *, level FROM MessageLog WHERE level <> '[1, ⊥]'",
        "SELECT level, serviceId FROM MessageLog WHERE outcome = 'failure'",
        "SELECT level FROM MessageLog UNION ALL SELECT level FROM MessageLog WHERE sender = '1'",
        "ISTREAM(SELECT level, COUNT(*) AS many FROM MessageLog [ROWS 5] GROUP BY level)",
    ],
)
def test_a_plan_with_levels_is_written_as_sql_that_means_the_same(text: str) -> None:
    plan = parse_sql(text, Log()).plan
    assert parse_sql(sql_text(plan), Log()).plan == plan
    with pytest.raises(Unsayable, match=r"levels|moving windows"):
        xml_text({"result": plan})

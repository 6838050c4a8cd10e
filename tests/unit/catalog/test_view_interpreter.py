"""A second, naive interpreter of both papers' rules, against the plans that views rewrite.

It has policies, records and queries of its own form, and goes through the records one by one: it
knows no plan and no view of the product. Each case is random: the policies of one or two roles, and
a query in SQL. Both must refuse it, or give the same results.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from catalog.errors import InvalidInput
from catalog.label import Label
from catalog.relation import Relation
from catalog.role_view import AttributeRight, RoleView, SmallestWindow, TupleWindow, checked_view
from catalog.view_merging import all_of, one_of
from catalog.view_plan import ViewedStream, through_views
from secadmin.languages import parse_sql
from tests.lanes import number_of
from tests.oracle.plans import run
from tests.oracle.values import EPOCH, Tuple
from tests.unit.catalog.views import STREAM, condition

CASES = number_of("NAIVE_VIEW_CASES", sample=500, long=2_000)
NAMES = STREAM.schema.names
LABEL = Label.of(0)
Value = float | int | str | None
Record = Mapping[str, Value]
Row = tuple[Value, ...]
_CONSTANTS: Mapping[str, Value] = {"symbol": "A", "price": 1.5, "volume": 1}
_FUNCTIONS = ("avg", "count", "max", "min", "sum")


def _records() -> list[Record]:
    chance = random.Random(7)
    return [
        {
            "ts": 7 * number,
            "symbol": chance.choice("AB"),
            "price": chance.choice((None, 0.5, 1.5, 2.5, 3.5)),
            "volume": chance.choice((None, 0, 1, 2, 3)),
            # Of the independent senders. None: nobody who counts.
            "sender": chance.choice((None, 0, 1, 2)),
        }
        for number in range(40)
    ]


RECORDS = _records()


@dataclass(frozen=True)
class Check:
    """A condition: a comparison of an attribute with a constant, or several of them joined."""

    text: str
    of: tuple[Check, ...] = ()
    name: str = ""
    sign: str = ""
    than: Value = None

    def of_names(self) -> frozenset[str]:
        return frozenset({self.name} - {""}).union(*(each.of_names() for each in self.of))

    def holds(self, record: Record) -> bool | None:
        """True, false, or None for unknown: the three values of SQL."""
        found = [each.holds(record) for each in self.of]
        if self.sign == "not":
            return None if found[0] is None else not found[0]
        if self.sign in ("and", "or"):
            decides = self.sign == "or"
            return decides if decides in found else (None if None in found else not decides)
        value = record[self.name]
        if self.sign == "null":
            return value is None
        return None if value is None else _compared(value, self.sign, self.than)


def _compared(value: Value, sign: str, than: Value) -> bool:
    less, more = value < than, value > than  # type: ignore[operator]
    return {"<": less, ">": more, "=": value == than, "<>": value != than, ">=": not less}[sign]


def check_of(chance: random.Random, deep: int = 2) -> Check:
    """A random condition."""
    if deep and chance.random() < 0.4:
        sign = chance.choice(("and", "or", "not"))
        of = tuple(check_of(chance, deep - 1) for _ in range(1 if sign == "not" else 2))
        texts = [f"({each.text})" for each in of]
        text = f"NOT {texts[0]}" if sign == "not" else f" {sign.upper()} ".join(texts)
        return Check(text, of, sign=sign)
    name = chance.choice(("symbol", "price", "volume"))
    if chance.random() < 0.15:
        return Check(f"{name} IS NULL", name=name, sign="null")
    sign = chance.choice(("<", ">", "=", "<>", ">="))
    than = _CONSTANTS[name]
    said = f"'{than}'" if name == "symbol" else than
    return Check(f"{name} {sign} {said}", name=name, sign=sign, than=than)


@dataclass(frozen=True)
class Right:
    """The right to an attribute: under all these conditions, or only inside functions."""

    when: tuple[Check, ...] = ()
    functions: frozenset[str] | None = None


@dataclass(frozen=True)
class Policy:
    """What one policy shows, or several that hold together."""

    rows: tuple[Check, ...]
    rights: Mapping[str, Right] | None
    window: tuple[int, int] | None
    tumbling: bool
    minimum: int
    # What the numbers of the window are: seconds, or tuples. None: there is no such window.
    unit: str = "seconds"

    @property
    def aggregates(self) -> bool:
        """Whether something may only be aggregated."""
        rights = (self.rights or {}).values()
        return self.window is not None or any(each.functions is not None for each in rights)

    @property
    def must_tumble(self) -> bool:
        return self.tumbling if self.window else self.aggregates

    def right(self, name: str) -> Right | None:
        return Right() if self.rights is None else self.rights.get(name)

    def and_also(self, other: Policy) -> Policy:
        """Both together: conditions by AND, attributes by intersection, windows as coarse."""
        pairs = {name: (self.right(name), other.right(name)) for name in NAMES}
        rights = {name: _both(*pair) for name, pair in pairs.items() if None not in pair}
        several = [each.window for each in (self, other) if each.window]
        units = {each.unit for each in (self, other) if each.window}
        size, slide = (max((each[n] for each in several), default=0) for n in range(2))
        return Policy(
            self.rows + other.rows,
            None if (self.rights, other.rights) == (None, None) else rights,
            (size, slide) if several else None,
            self.must_tumble or other.must_tumble,
            max(self.minimum, other.minimum),
            "nothing"
            if len(units | ({"nothing"} & {self.unit, other.unit})) > 1
            else min(units or {"seconds"}),
        )

    def sees(self, record: Record) -> Record | None:
        """What is seen of a record. None: nothing."""
        if self.unit == "nothing":
            # No window is of both types.
            return None
        if not all(check.holds(record) is True for check in self.rows):
            return None
        if self.rights is None:
            return record
        shown = {
            name: not right.when or all(check.holds(record) is True for check in right.when)
            for name, right in self.rights.items()
        }
        if not any(shown.values()):
            return None
        seen = {name: record[name] if shown[name] else None for name in shown}
        return {**seen, "sender": record["sender"]}


def _both(first: Right | None, second: Right | None) -> Right:
    assert first is not None and second is not None
    functions = [each.functions for each in (first, second) if each.functions is not None]
    common = frozenset.intersection(*functions) if functions else None
    return Right(first.when + second.when, common)


def policy_of(chance: random.Random) -> Policy:
    """A random policy that the platform takes."""
    rights: dict[str, Right] | None = None
    if chance.random() < 0.8:
        rights = {}
        for name in NAMES:
            kind = chance.choice(("shown", "shown", "when", "aggregated", "hidden"))
            if kind == "shown" or (name == "ts" and kind in ("when", "aggregated")):
                rights[name] = Right()
            elif kind == "when" or (name == "symbol" and kind == "aggregated"):
                rights[name] = Right((check_of(chance, 1),))
            elif kind == "aggregated":
                rights[name] = Right((), frozenset(chance.sample(_FUNCTIONS, 3)))
        rights = rights or {"symbol": Right()}
    made = Policy((), rights, None, False, 1)
    if made.aggregates and chance.random() < 0.5:
        window = chance.choice(((30, 30), (60, 30), (60, 60)))
        made = replace(made, window=window, tumbling=chance.random() < 0.3)
    if made.aggregates:
        # The event time serves windows alone, unless it is shown.
        made = replace(made, rights={"ts": Right((), frozenset()), **(rights or {})})
        made = replace(made, minimum=chance.choice((1, 2, 3)))
        if chance.random() < 0.3:
            made = _in_tuples(chance, made)
    if made.rights is None or chance.random() < 0.6:
        made = replace(made, rows=(check_of(chance),))
    return made


def _in_tuples(chance: random.Random, policy: Policy) -> Policy:
    """The policy with a window of tuples, which shows the time of its last tuple."""
    window = chance.choice(((3, 1), (3, 2), (4, 4)))
    rights = {**(policy.rights or {}), "ts": Right((), frozenset({"max"}))}
    rights.setdefault("volume", Right((), frozenset({"sum"})))
    made = replace(policy, window=window, minimum=1, rights=rights, unit="tuples")
    return replace(made, tumbling=chance.random() < 0.3)


def view_of(policy: Policy) -> RoleView:
    """The same policy for the platform."""
    rights = None
    if policy.rights is not None:
        rights = tuple(
            AttributeRight(
                name,
                condition(right.when[0].text) if right.when else None,
                None if right.functions is None else tuple(right.functions),
            )
            for name, right in policy.rights.items()
            if name != "ts" or right.functions != frozenset()
        )
    window: SmallestWindow | TupleWindow | None = None
    if policy.window is not None:
        size, slide = policy.window
        window = (
            TupleWindow(size, slide, policy.tumbling)
            if policy.unit == "tuples"
            else SmallestWindow(size * 1000, slide * 1000, policy.tumbling)
        )
    rows = condition(policy.rows[0].text) if policy.rows else None
    return checked_view(RoleView(rows, rights, window, policy.minimum), STREAM)


@dataclass(frozen=True)
class Query:
    """A query of one of five kinds; `used` are its aggregates: function and attribute."""

    kind: str
    names: tuple[str, ...] = ()
    where: Check | None = None
    used: tuple[tuple[str, str], ...] = ()
    window: tuple[int, int] = (60, 60)

    @property
    def text(self) -> str:
        where = f" WHERE {self.where.text}" if self.where else ""
        if self.kind == "select":
            return f"SELECT {', '.join(self.names)} FROM trades{where}"
        if self.kind == "group":
            given = [f"{function}({name}) AS a{n}" for n, (function, name) in enumerate(self.used)]
            size, slide = self.window
            window = f"HOP(ts, INTERVAL '{slide}' SECOND, INTERVAL '{size}' SECOND)"
            shown = ", ".join(["window_start", *self.names, *given])
            return f"SELECT {shown} FROM trades{where} GROUP BY {', '.join([window, *self.names])}"
        if self.kind == "counted":
            given = [f"{function}({name}) AS a{n}" for n, (function, name) in enumerate(self.used)]
            parts = f"PARTITION BY {self.names[0]} " if self.names else ""
            grouping = f" GROUP BY {self.names[0]}" if self.names else ""
            below = f"WITH t AS (SELECT * FROM trades{where}) " if where else ""
            size, slide = self.window
            return (
                f"{below}SELECT ISTREAM {', '.join([*self.names, *given])} FROM "
                f"{'t' if where else 'trades'} [{parts}ROWS {size} SLIDE {slide}]{grouping}"
            )
        (name,) = {name for _, name in self.used} or self.names
        if self.kind == "rising":
            measures, pattern = f"a.{name} AS low, b.{name} AS high", "(a b)"
            shown, define = "low, high", f" DEFINE b AS {name} > a.{name}"
        else:
            measures, pattern = f"{self.used[0][0]}(a.{name}) AS a0", "(a{2})"
            shown, define = "a0", ""
        return (
            f"SELECT symbol, {shown} FROM trades MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts "
            f"MEASURES {measures} AFTER MATCH SKIP PAST LAST ROW PATTERN {pattern} "
            f"WITHIN INTERVAL '1' HOUR{define})"
        )

    def refused_by(self, policy: Policy) -> bool:
        """Whether it asks for more than the policy shows (003, algorithm 1; 002 §3.1)."""
        plain = {*self.names, *(self.where.of_names() if self.where else ())}
        if self.kind != "select":
            plain |= {"symbol"} if self.kind in ("rising", "means") else set()
        named = (
            plain | {name for _, name in self.used} | ({"ts"} if self.kind != "select" else set())
        )
        if any(policy.right(name) is None for name in named):
            return True
        if any(_functions(policy, name) is not None for name in plain):
            return True
        limited = [(f, _functions(policy, name)) for f, name in self.used]
        if any(allowed is not None and function not in allowed for function, allowed in limited):
            return True
        if self.kind == "means" and limited[0][1] is not None and policy.minimum > 1:
            return True
        if self.kind == "counted":
            # A moving window holds tuples with all of their attributes.
            return policy.aggregates and self._is_fine(policy)
        if self.kind != "group":
            return policy.window is not None
        counted = any(allowed is not None for _, allowed in limited)
        return (counted or policy.window is not None) and self._is_fine(policy)

    def _is_fine(self, policy: Policy) -> bool:
        """Whether its windows are finer than those of the policy, or of another type."""
        if self.kind == "counted":
            if policy.window is None or policy.unit == "seconds" or policy.minimum > 1:
                return True
            if not (_functions(policy, "ts") is None or "max" in (_functions(policy, "ts") or ())):
                return True
        elif policy.window is not None and policy.unit == "tuples":
            return True
        size, slide = self.window
        finer = policy.window is not None and (size < policy.window[0] or slide < policy.window[1])
        return finer or (slide < size and policy.must_tumble)

    def results(self, policy: Policy) -> list[Row]:
        """What it gives over what the policy shows."""
        seen = [each for record in RECORDS if (each := policy.sees(record)) is not None]
        seen = [each for each in seen if self.where is None or self.where.holds(each) is True]
        if self.kind == "select":
            return [tuple(each[name] for name in self.names) for each in seen]
        if self.kind == "group":
            return self._groups(policy, seen)
        if self.kind == "counted":
            return self._full(seen)
        parts = ([each for each in seen if each["symbol"] == symbol] for symbol in ("A", "B", None))
        found = self._rises if self.kind == "rising" else self._means
        return [row for part in parts for row in found(policy, part)]

    def _groups(self, policy: Policy, seen: Sequence[Record]) -> list[Row]:
        size, slide = self.window
        groups: dict[Row, list[Record]] = {}
        for each in seen:
            for start in range(-size, 400, slide):
                if start % slide == 0 and start <= int(str(each["ts"])) < start + size:
                    key = (start, *(each[name] for name in self.names))
                    groups.setdefault(key, []).append(each)
        return [
            (*key, *(_aggregate(function, group, name) for function, name in self.used))
            for key, group in groups.items()
            if self._is_enough(policy, group)
        ]

    def _full(self, seen: Sequence[Record]) -> list[Row]:
        """The windows that are full: a row that equals the one before it is not given again."""
        size, slide = self.window
        found: list[Row] = []
        for value in dict.fromkeys(each[self.names[0]] if self.names else None for each in seen):
            part = [e for e in seen if not self.names or e[self.names[0]] == value]
            before: Row | None = None
            for last in range(size, len(part) + 1, slide):
                group = part[last - size : last]
                row = tuple(_aggregate(function, group, name) for function, name in self.used)
                if row != before:
                    key = (value,) if self.names else ()
                    found.append((int(str(group[-1]["ts"])), *key, *row))
                before = row
        return found

    def _is_enough(self, policy: Policy, group: Sequence[Record]) -> bool:
        """Whether enough senders sent values of each attribute that is only aggregated."""
        counted = {name for _, name in self.used if _functions(policy, name) is not None}
        if policy.minimum == 1 or not (counted or policy.window):
            return True
        sent = [each for each in group if each["sender"] is not None]
        known = [[each for each in sent if each[name] is not None] for name in counted] or [sent]
        return all(len({each["sender"] for each in of}) >= policy.minimum for of in known)

    def _rises(self, _policy: Policy, rows: Sequence[Record]) -> list[Row]:
        (name,), place = self.names, 0
        found: list[Row] = []
        while place + 1 < len(rows):
            low, high = rows[place][name], rows[place + 1][name]
            if low is not None and high is not None and high > low:  # type: ignore[operator]
                found.append((rows[place]["symbol"], low, high))
                place += 1
            place += 1
        return found

    def _means(self, policy: Policy, rows: Sequence[Record]) -> list[Row]:
        ((function, name),) = self.used
        pairs = [rows[place : place + 2] for place in range(0, len(rows) - 1, 2)]
        return [(pair[0]["symbol"], _aggregate(function, pair, name)) for pair in pairs]


def _functions(policy: Policy, name: str) -> frozenset[str] | None:
    right = policy.right(name)
    return None if right is None else right.functions


def _aggregate(function: str, group: Sequence[Record], name: str) -> Value:
    values = [each[name] for each in group if each[name] is not None]
    if function == "count":
        return len(values)
    if not values:
        return None
    if function in ("max", "min"):
        return max(values) if function == "max" else min(values)  # type: ignore[type-var]
    total: float = sum(values)  # type: ignore[arg-type]
    return total / len(values) if function == "avg" else total


def query_of(chance: random.Random) -> Query:
    """A random query."""
    kind = chance.choice(("select", "group", "group", "rising", "means", "counted"))
    where = check_of(chance, 1) if chance.random() < 0.4 else None
    used = [(chance.choice(_FUNCTIONS), chance.choice(("price", "volume"))) for _ in range(2)]
    if kind == "select":
        return Query(kind, tuple(chance.sample(NAMES, chance.randint(1, 3))), where)
    if kind == "rising":
        return Query(kind, (chance.choice(("price", "volume")),))
    if kind == "means":
        return Query(kind, used=(used[0],))
    window = chance.choice(((30, 30), (60, 30), (60, 60), (120, 60)))
    keys = ("symbol",) if chance.random() < 0.5 else ()
    if kind == "counted":
        window = chance.choice(((3, 1), (3, 3), (4, 2), (4, 4), (5, 2)))
    return Query(kind, keys, where, tuple(dict.fromkeys(used)), window)


def answer_of(view: RoleView, query: Query) -> list[Row] | None:
    """What the platform gives through the view. None: it refuses the query."""
    seen = ViewedStream(STREAM, view)

    class Seen:
        def relation(self, _name: str) -> Relation:
            return seen.relation

    try:
        plan = through_views(parse_sql(query.text, Seen()).plan, {STREAM.object_id: seen})
    except InvalidInput:
        return None
    table = [
        Tuple(
            (EPOCH + timedelta(seconds=int(str(each["ts"]))), *map(each.get, NAMES[1:])),
            LABEL,
            None if each["sender"] is None else int(str(each["sender"])),
        )
        for each in RECORDS
    ]
    found = run(plan.root, {"trades": table}, lambda _: LABEL)
    return [tuple(map(_plain, each.values)) for each in found]


def _plain(value: object) -> Value:
    """A time in seconds, and all else as it is."""
    if hasattr(value, "tzinfo"):
        return int((value - EPOCH).total_seconds())  # type: ignore[operator]
    return value  # type: ignore[return-value]


def _counted(rows: Sequence[Row]) -> Counter[Row]:
    return Counter(tuple(round(v, 6) if isinstance(v, float) else v for v in row) for row in rows)


def test_each_query_gives_what_the_rules_of_the_papers_say() -> None:
    chance = random.Random(2_003)
    outcomes: Counter[str] = Counter()
    for case in range(CASES):
        policies = [policy_of(chance) for _ in range(chance.randint(1, 2))]
        together = policies[0] if len(policies) == 1 else policies[0].and_also(policies[1])
        view, query = all_of(map(view_of, policies)), query_of(chance)
        wanted = None if query.refused_by(together) else query.results(together)
        got = answer_of(view, query)
        said = f"case {case}: {query.text} through {policies}"
        assert (got is None) == (wanted is None), said
        if wanted is None or got is None:
            outcomes["refused"] += 1
            continue
        assert _counted(got) == _counted(wanted), said
        outcomes[query.kind] += bool(wanted)
        outcomes["less"] += _counted(got) != _counted(query.results(_WHOLE))
    least = {
        "refused": 5,
        "select": 40,
        "group": 40,
        "rising": 40,
        "means": 40,
        "less": 8,
        "counted": 50,
    }
    assert all(outcomes[name] > CASES // part for name, part in least.items()), outcomes


_WHOLE = Policy((), None, None, False, 1)


def test_the_rows_of_two_roles_add_up() -> None:
    """What either role sees, where both see the same attributes and windows of it (issue 24)."""
    chance = random.Random(24)
    added = 0
    for _ in range(CASES // 5):
        one = policy_of(chance)
        other = replace(one, rows=(check_of(chance),))
        view, query = one_of([view_of(one), view_of(other)]), query_of(chance)
        assert view is not None
        if query.refused_by(one):
            assert answer_of(view, query) is None
            continue
        either = replace(one, rows=(_either(one, other),) if one.rows else ())
        got = answer_of(view, query)
        assert got is not None and _counted(got) == _counted(query.results(either))
        added += 1
    assert added > CASES // 25


def _either(one: Policy, other: Policy) -> Check:
    return Check("", (one.rows[0], other.rows[0]), sign="or")

"""One policy more never shows more, and neither does one role less: on generated views."""

from __future__ import annotations

import random
from collections.abc import Iterator

from catalog.role_view import RoleView, TupleWindow
from catalog.view_merging import all_of, covers, one_of
from catalog.view_trial import Sight, Value, sight_of
from tests.lanes import number_of
from tests.unit.catalog.views import STREAM, view

VIEWS = number_of("VIEW_CASES", sample=500, long=2_000)
_CONDITIONS = (
    *(f"volume {sign} {value}" for sign in ("<", ">=", "=", "<>") for value in (1, 2)),
    *("price > 1", "price <= 2.5", "symbol = 'A'", "volume IS NULL", "NOT (price > 1)"),
)


def condition(chance: random.Random) -> str:
    """A condition of one or two parts."""
    first, second = chance.sample(_CONDITIONS, 2)
    return chance.choice((first, f"({first}) AND ({second})", f"({first}) OR ({second})"))


def made(chance: random.Random) -> RoleView:
    """A view of any kind."""
    rights = []
    for name in ("ts", "symbol", "price", "volume"):
        form = chance.choice(("", "{}", "{} when " + condition(chance), "{}: count, max"))
        if form and not (name == "ts" and "when" in form):
            rights.append(form.format(name))
    tuples = TupleWindow(chance.choice((2, 4)), chance.choice((1, 2)))
    window = chance.choice((None, None, (60, 60), (120, 60), tuples))
    # Some show nothing: such a policy denies.
    rows = condition(chance) if chance.random() < 0.7 else chance.choice((None, None, "FALSE"))
    minimum = chance.choice((1, 1, 3))
    return view(rows, *(rights if chance.random() < 0.7 else ()), window=window, minimum=minimum)


def records() -> Iterator[dict[str, Value]]:
    for symbol in ("A", "B"):
        for price in (None, 0.5, 2.0, 3.0):
            for volume in (None, 0, 1, 2):
                yield {"ts": 0, "symbol": symbol, "price": price, "volume": volume}


def shows_nothing(seen: RoleView) -> bool:
    """Whether the view shows no record, as if two types of windows exclude each other."""
    return not any(sight_of(seen, STREAM.schema, each).seen for each in records())


def shows_no_more(less: RoleView, more: RoleView) -> bool:
    """Whether the first view shows no more than the second one, of any record."""
    return all(
        _within(sight_of(less, STREAM.schema, each), sight_of(more, STREAM.schema, each))
        for each in records()
    )


def _within(less: Sight, more: Sight) -> bool:
    if not less.seen:
        return True
    values = all(
        name in more.values and value in (None, more.values[name])
        for name, value in less.values.items()
    )
    aggregated = all(
        name in more.values or set(functions) <= set(more.aggregated.get(name, ("?",)))
        for name, functions in less.aggregated.items()
        if functions
    )
    return more.seen and values and aggregated


def test_one_policy_more_never_shows_more() -> None:
    chance = random.Random(24)
    narrowed = 0
    for _ in range(VIEWS):
        policies = [made(chance) for _ in range(chance.randrange(1, 4))]
        before, after = all_of(policies[:-1]), all_of(policies)
        assert shows_no_more(after, before) and shows_no_more(after, policies[-1])
        assert covers(before, after), "and the platform knows it"
        for wide in (before, policies[-1]):
            assert after.minimum >= wide.minimum
            if wide.window is not None:
                assert after.window is not None
                assert after.window.is_as_coarse_as(wide.window) or shows_nothing(after)
        narrowed += not shows_no_more(before, after)
    assert narrowed > VIEWS // 4, "most policies hide something"


def test_one_role_less_never_shows_more() -> None:
    chance = random.Random(25)
    added = 0
    for _ in range(VIEWS):
        base = made(chance)
        roles = [base] + [
            RoleView(made(chance).rows, base.attributes, base.window, base.minimum)
            for _ in range(chance.randrange(1, 3))
        ]
        if chance.random() < 0.2:
            roles[-1] = made(chance)
        together = one_of(roles)
        if together is None:
            continue
        added += 1
        for left_out in range(len(roles)):
            fewer = one_of([*roles[:left_out], *roles[left_out + 1 :]])
            # Views that do not add up show nothing together.
            assert fewer is None or shows_no_more(fewer, together)
    assert added > VIEWS // 2


def test_what_a_view_covers_it_shows() -> None:
    chance = random.Random(26)
    said = 0
    for _ in range(VIEWS * 4):
        wide, narrow = made(chance), made(chance)
        if covers(wide, narrow):
            said += 1
            assert shows_no_more(narrow, wide)
    assert said > VIEWS // 20

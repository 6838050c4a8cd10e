"""What a plan becomes in the engine is counted before it gets there."""

import pytest

from catalog.errors import InvalidInput
from catalog.expression import Expression
from catalog.plan import Aggregation, Column, Filter, Node, Project, Union
from catalog.plan_size import MAX_EXPRESSION, size_of
from tests.plans import checked, grouped
from tests.unit.catalog.plans import MINUTE, PLACE, SOURCE, call, column, joined, ref

FULL = "has more than 10000 parts if each computed column is written in full"


def levels(count: int, fold: int = 8) -> Node:
    """A column that is put together from itself, level by level."""
    plan: Node = SOURCE
    for _ in range(count):
        together = call("concat", *(ref("symbol") for _ in range(fold)))
        plan = Project(plan, (column("at"), Column("symbol", together)))
    return plan


def test_a_column_that_is_used_again_and_again_is_refused_with_its_place() -> None:
    checked(levels(3))
    with pytest.raises(InvalidInput, match=FULL) as refusal:
        checked(levels(9))
    assert refusal.value.position == PLACE


def nested(name: str, *others: Expression, depth: int) -> Expression:
    expression: Expression = ref("price" if name in "%/" else "symbol")
    for _ in range(depth):
        expression = call(name, expression, *others)
    return expression


@pytest.mark.parametrize("name", ["upper", "/"])
def test_calls_that_hold_their_argument_twice_multiply(name: str) -> None:
    others = (ref("price"),) if name == "/" else ()
    for depth, fits in ((8, True), (40, False)):
        plan = Project(SOURCE, (Column("x", nested(name, *others, depth=depth)),))
        if fits:
            checked(plan)
        else:
            with pytest.raises(InvalidInput, match=FULL):
                checked(plan)


def test_a_chain_counts_once() -> None:
    chain: Expression = ref("price")
    for _ in range(40):
        chain = call("+", chain, ref("price"))
    assert size_of(chain, {"price": 1}) == 2 * 81


BELOW = levels(3)
THROUGH: dict[str, Node] = {
    "filter": Filter(BELOW, call("is_null", ref("symbol"))),
    "union": Union((BELOW, BELOW)),
    "join": joined(left=BELOW),
}


@pytest.mark.parametrize("name", THROUGH)
def test_sizes_go_through_every_node(name: str) -> None:
    checked(THROUGH[name])
    again = call("concat", *(ref("symbol") for _ in range(8)))
    with pytest.raises(InvalidInput, match=FULL):
        checked(Project(THROUGH[name], (Column("x", again),)))


def test_a_window_keeps_keys_in_full_and_results_as_values() -> None:
    inner = levels(3)
    highest = Aggregation("highest", "max", ref("symbol"))
    window = grouped(inner, MINUTE, (column("symbol"),), (highest,))
    again = call("concat", *(ref("highest") for _ in range(8)))
    checked(Project(window, (Column("x", again),)))
    keys = call("concat", *(ref("symbol") for _ in range(8)))
    with pytest.raises(InvalidInput, match=FULL):
        checked(Project(window, (Column("x", keys),)))


def test_all_expressions_count_together() -> None:
    large = call("coalesce", *(ref("symbol") for _ in range(MAX_EXPRESSION - 10)))
    columns = tuple(Column(f"c{i}", large) for i in range(11))
    with pytest.raises(InvalidInput, match="the query has more than 100000 parts"):
        checked(Project(SOURCE, columns))

"""What one view shows more than another one: cases, and random views against single records."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.role_view import RoleView, SmallestWindow, TupleWindow
from catalog.view_trial import Sight, sight_of
from secadmin.solving.view_comparison import Change, compared
from tests.lanes import number_of
from tests.unit.catalog.views import STREAM, view

SAME, MORE, LESS, OTHER = Change.SAME, Change.MORE, Change.LESS, Change.OTHER
CASES: dict[str, tuple[RoleView, RoleView, dict[str, Change]]] = {
    "more rows": (view("price > 5"), view("price > 4"), {"rows": MORE, "price": MORE}),
    "fewer rows": (view(), view("price > 4"), {"rows": LESS, "symbol": LESS}),
    "other rows": (view("price > 5"), view("price < 7"), {"rows": OTHER, "symbol": OTHER}),
    "the same rows in other words": (
        view("price > 5 AND symbol = 'A'"),
        view("NOT (price <= 5 OR symbol <> 'A')"),
        {"rows": SAME, "symbol": SAME},
    ),
    "a further attribute": (view(None, "ts"), view(None, "ts", "price"), {"price": MORE}),
    "a hidden attribute": (view(), view(None, "ts", "symbol"), {"price": LESS, "symbol": SAME}),
    "a condition of an attribute": (
        view(None, "ts", "price"),
        view(None, "ts", "price when price > 5"),
        {"price": LESS, "ts": SAME},
    ),
    "a condition that the rows have anyway": (
        view("price > 5", "ts", "price"),
        view("price > 5", "ts", "price when price > 4"),
        {"price": SAME},
    ),
    "aggregates alone": (view(None, "ts", "price"), view(None, "price: avg"), {"price": LESS}),
    "another function": (
        view(None, "price: avg"),
        view(None, "price: max"),
        {"price": OTHER, "symbol": SAME},
    ),
    "one function more": (view(None, "price: avg"), view(None, "price: avg, max"), {"price": MORE}),
    "coarser windows": (
        view(None, "price: avg", window=(60, 60)),
        view(None, "price: avg", window=(120, 60)),
        {"windows": LESS, "price": SAME},
    ),
    "coarser windows of tuples": (
        view(None, "price: avg", window=TupleWindow(3, 2)),
        view(None, "price: avg", window=TupleWindow(4, 2)),
        {"windows": LESS, "price": SAME},
    ),
    "windows of another type": (
        view(None, "price: avg", window=TupleWindow(3, 2)),
        view(None, "price: avg", window=(60, 60)),
        {"windows": OTHER, "price": SAME},
    ),
    "windows that may overlap": (
        view(None, "price: avg", window=SmallestWindow(60_000, 60_000, tumbling=True)),
        view(None, "price: avg", window=SmallestWindow(60_000, 60_000)),
        {"windows": MORE},
    ),
    "smaller groups": (
        view(None, "price: avg", minimum=5),
        view(None, "price: avg", minimum=3),
        {"groups": MORE, "price": SAME},
    ),
}


def changes(old: RoleView, new: RoleView) -> dict[str, Change]:
    """The change of each part and of each attribute."""
    found = compared(old, new, STREAM.schema)
    parts = {"rows": found.rows, "windows": found.windows, "groups": found.groups}
    return parts | {each.attribute: each.change for each in found.attributes}


@pytest.mark.parametrize("name", CASES)
def test_what_changes(name: str) -> None:
    old, new, wanted = CASES[name]
    found = changes(old, new)
    assert {part: found[part] for part in wanted} == wanted
    turned = {MORE: LESS, LESS: MORE, SAME: SAME, OTHER: OTHER}
    back = changes(new, old)
    assert {part: turned[back[part]] for part in wanted} == wanted
    assert {*changes(old, old).values()} == {SAME}


CONDITIONS = st.sampled_from(
    [None, "price > 1", "price < 3", "symbol = 'A'", "NOT symbol = 'A'", "price IS NULL"]
)
RIGHTS = st.lists(
    st.sampled_from(["symbol", "price", "price when symbol = 'A'", "symbol when price > 1"]),
    unique_by=lambda text: text.split()[0],
)
VIEWS = st.builds(lambda rows, rights: view(rows, *rights), CONDITIONS, RIGHTS)
RECORDS = st.fixed_dictionaries(
    {"ts": st.just(0), "symbol": st.sampled_from(["A", "B"])}
    | {"price": st.sampled_from([None, 0.0, 1.0, 2.0, 3.0]), "volume": st.just(1)}
)


@settings(max_examples=number_of("COMPARED_VIEWS", sample=60, long=2_000), deadline=None)
@given(old=VIEWS, new=VIEWS, records=st.lists(RECORDS, min_size=5, max_size=20))
def test_no_record_shows_what_the_comparison_denies(
    old: RoleView, new: RoleView, records: list[dict[str, object]]
) -> None:
    found = changes(old, new)
    for record in records:
        before, after = (sight_of(each, STREAM.schema, record) for each in (old, new))  # type: ignore[arg-type]
        for name in STREAM.schema.names:
            if shows(after, name) and not shows(before, name):
                assert found[name] in (MORE, OTHER), record
            if shows(before, name) and not shows(after, name):
                assert found[name] in (LESS, OTHER), record


def shows(sight: Sight, name: str) -> bool:
    """Whether the value of an attribute is seen."""
    return sight.values.get(name) is not None

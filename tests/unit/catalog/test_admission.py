"""What one query may take, and what the engine has left."""

import pytest

from catalog.admission import require_admissible, slots_of, view_classes
from catalog.errors import InvalidInput
from catalog.limits import MAX_RATE, Limits, read_limits
from catalog.plan import Node, Project, Union
from tests.plans import checked, whole
from tests.unit.catalog.plans import JOINED, SOURCE, WINDOWED, column, windowed

LIMITS = Limits()


def test_sources_are_counted_as_often_as_they_are_read() -> None:
    require_admissible(checked(Union((SOURCE,) * LIMITS.sources)), LIMITS)
    with pytest.raises(InvalidInput, match="65 times, and may 64 times"):
        require_admissible(checked(Union((SOURCE,) * (LIMITS.sources + 1))), LIMITS)


def plain(node: Node) -> Project:
    """Its count alone, so that several make a union."""
    return Project(node, (column("n"),))


def test_windows_are_counted_together() -> None:
    require_admissible(checked(windowed(LIMITS.window_copies, 1)), LIMITS)
    half = plain(windowed(LIMITS.window_copies, 2))
    require_admissible(checked(Union((half, half))), LIMITS)
    for plan in (windowed(LIMITS.window_copies + 1, 1), Union((half, half, plain(WINDOWED)))):
        with pytest.raises(InvalidInput, match="in 61 windows at once, and may be in 60"):
            require_admissible(checked(plan), LIMITS)


def test_each_source_takes_a_slot_for_each_partition() -> None:
    partitions = {"lab.in1": {"0": 1, "1": 1}, "lab.in2": {"0": 1}}
    assert slots_of(whole(JOINED), partitions) == 3
    assert slots_of(whole(Union((SOURCE, SOURCE))), partitions) == 4


def test_settings_change_limits() -> None:
    assert read_limits(Limits, {}, "limits") == LIMITS
    assert read_limits(Limits, {"sources": 3}, "limits") == Limits(sources=3)
    for wrong in ({"source": 3}, {"sources": 0}, {"sources": "3"}, {"sources": True}):
        with pytest.raises(InvalidInput, match="limit"):
            read_limits(Limits, wrong, "limits")


USUAL = LIMITS.stream_rate


def test_classes_with_views_of_their_own_are_counted_with_their_windows() -> None:
    assert view_classes(checked(SOURCE), LIMITS, USUAL) == LIMITS.classes
    assert view_classes(checked(windowed(1, 1)), LIMITS, USUAL) == LIMITS.classes
    assert view_classes(checked(windowed(LIMITS.window_copies, 1)), LIMITS, USUAL) == 4
    assert view_classes(checked(JOINED), LIMITS, USUAL) == 16
    few = Limits(view_copies=1)
    assert view_classes(checked(windowed(60, 1)), few, USUAL) == 1, "no less than one"


@pytest.mark.parametrize(
    ("node", "rate", "most"),
    [
        (SOURCE, 7_500, 64),
        (SOURCE, 7_501, 63),
        (SOURCE, 20_000, 24),
        (windowed(10, 1), 2_000, 24),
        (windowed(10, 1), 4_000, 12),
        (windowed(10, 1), 4_001, 11),
        (JOINED, 2 * 1_000, 16),
        (JOINED, 2 * 2_000, 8),
        (SOURCE, MAX_RATE, 1),
    ],
)
def test_they_are_counted_with_the_rate_of_what_is_read(node: Node, rate: int, most: int) -> None:
    assert view_classes(checked(node), LIMITS, rate) == most


def test_too_low_a_rate_gains_nothing() -> None:
    for node in (SOURCE, windowed(10, 1), windowed(60, 1), JOINED):
        usual = view_classes(checked(node), LIMITS, USUAL)
        assert view_classes(checked(node), LIMITS, 1) == usual

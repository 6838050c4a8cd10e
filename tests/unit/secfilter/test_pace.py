"""How long batches last, and the options that say so."""

import pytest

from catalog.errors import InvalidInput
from secfilter.__main__ import pace_of
from secfilter.queries import Pace


def test_options_of_ours_make_the_pace_and_sparks_do_not() -> None:
    options = {"secfilter.shortest_ms": "500", "spark.driver.memory": "1g"}
    assert pace_of(options) == Pace(shortest_ms=500)
    assert pace_of({}) == Pace()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"secfilter.shortest": "500"}, "there is no option 'secfilter.shortest'; there are"),
        ({"secfilter.": "500"}, "there is no option 'secfilter.'"),
        ({"secfilter.shortest_ms": "5 s"}, "is '5 s', and not a number of milliseconds"),
        ({"secfilter.shortest_ms": "-1"}, "not a number of milliseconds"),
        ({"secfilter.shortest_ms": ""}, "not a number of milliseconds"),
        ({"secfilter.longest_ms": "٣"}, "not a number of milliseconds"),
    ],
)
def test_other_options_are_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        pace_of(options)
    assert said in refusal.value.detail


def test_batches_are_never_shorter_and_differ_from_run_to_run() -> None:
    pace = Pace()
    lengths = {pace.real_time_ms(f"query-{number}", 10) for number in range(50)}
    assert min(lengths) >= pace.shortest_ms and max(lengths) <= pace.longest_ms * 5 // 4
    assert len(lengths) > 10

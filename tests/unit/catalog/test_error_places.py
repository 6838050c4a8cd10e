"""What a log says of an error that nobody foresaw: its kind and its places, and no value."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from catalog.error_places import KindsAlone, places_of

ROOT = Path(__file__).parents[3]


def failed() -> ValueError:
    try:
        try:
            raise KeyError("SECRET")
        except KeyError as cause:
            raise ValueError("SECRET of a sender") from cause
    except ValueError as error:
        return error


def test_an_error_has_its_kind_its_places_and_its_causes() -> None:
    said = places_of(failed())
    place = r"tests\.unit\.catalog\.test_error_places:\d+"
    assert re.fullmatch(f"ValueError < {place}; because of KeyError < {place}", said)


def test_a_cause_that_is_hidden_is_not_named() -> None:
    try:
        try:
            raise KeyError("SECRET")
        except KeyError:
            raise ValueError("SECRET") from None
    except ValueError as error:
        assert "KeyError" not in places_of(error)


def test_an_error_that_causes_itself_ends() -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert places_of(first).count("ValueError") == 4


def test_another_logger_writes_no_text_of_an_error(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("another")
    only = KindsAlone()
    log.addFilter(only)
    try:
        log.error("Exception in %s\n", "it", exc_info=failed())
        log.error("a line")
    finally:
        log.removeFilter(only)
    first, second = caplog.records
    assert first.getMessage().startswith("Exception in it: ValueError < ")
    assert second.getMessage() == "a line"
    assert "SECRET" not in caplog.text


@pytest.mark.parametrize("package", ["catalog", "secadmin", "secfilter"])
def test_no_log_of_the_platform_has_the_text_of_an_error_that_nobody_foresaw(package: str) -> None:
    own = ROOT / "catalog" / "error_places.py"
    wrong = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for line in file.read_text().splitlines()
        if file != own and re.search(r"log\.exception\(|exc_info", line)
    ]
    assert wrong == []

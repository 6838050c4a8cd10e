"""The packages' arrows: catalog ← secfilter, catalog ← secadmin, and no others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAY_IMPORT = {
    "catalog": {"catalog"},
    "secadmin": {"catalog", "secadmin"},
    "secfilter": {"catalog", "secfilter"},
    "deploy": {"catalog", "secadmin", "secfilter", "deploy"},
}
# Inside SecAdmin: what is on the left knows nothing of what is not named on its right.
INSIDE_SECADMIN = {
    "secadmin.languages": {"secadmin.languages"},
    "secadmin.kafka": {"secadmin.kafka"},
    "secadmin.cli": {"secadmin.cli"},
    "secadmin.control": {"secadmin.control", "secadmin.kafka", "secadmin.languages"},
    "secadmin.service": {"secadmin.service", "secadmin.control"},
}


# Inside the languages: neither knows the other, and what both share knows neither.
APART = {
    "expressions": {"secadmin.languages.sql", "secadmin.languages.borealis"},
    "sql": {"secadmin.languages.borealis"},
    "borealis": {"secadmin.languages.sql"},
}
# Values of the catalog and pure rules on them: no storage is behind them.
VALUES = (
    *("label", "clearance", "schema", "expression", "functions", "relation", "record_format"),
    *("plan", "plan_check", "plan_size", "checked_plan", "analysis", "reach", "output_relation"),
    *("plan_json", "stored_form", "stored_upgrades", "runs", "limits", "decision"),
)


def imports_of(file: Path) -> Iterator[str]:
    """The modules that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            yield node.module or ""


def ours(module: str) -> bool:
    """Whether the module is one of the project's packages."""
    return module.split(".", maxsplit=1)[0] in {*MAY_IMPORT, "tests"}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_one_way(package: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in (ROOT / package).rglob("*.py")
        for module in imports_of(file)
        if ours(module) and module.split(".")[0] not in MAY_IMPORT[package]
    ]
    assert wrong == []


@pytest.mark.parametrize("package", INSIDE_SECADMIN)
def test_imports_inside_secadmin_go_one_way(package: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in (ROOT / package.replace(".", "/")).rglob("*.py")
        for module in imports_of(file)
        if module.startswith("secadmin.")
        and ".".join(module.split(".")[:2]) not in INSIDE_SECADMIN[package]
    ]
    assert wrong == []


def test_the_product_knows_nothing_of_pyspark_outside_the_data_plane() -> None:
    wrong = [
        str(file.relative_to(ROOT))
        for package in ("catalog", "secadmin")
        for file in (ROOT / package).rglob("*.py")
        if any(module.split(".")[0] == "pyspark" for module in imports_of(file))
    ]
    assert wrong == []


@pytest.mark.parametrize("language", APART)
def test_the_languages_are_apart(language: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in (ROOT / "secadmin" / "languages" / language).rglob("*.py")
        for module in imports_of(file)
        if any(f"{module}.".startswith(f"{other}.") for other in APART[language])
    ]
    assert wrong == []


@pytest.mark.parametrize("value", VALUES)
def test_a_value_of_the_catalog_knows_no_storage(value: str) -> None:
    waiting, seen = [f"catalog.{value}"], set[str]()
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            if module.startswith("catalog."):
                waiting += imports_of(ROOT / f"{module.replace('.', '/')}.py")
    assert not {module.split(".")[0] for module in seen} & {"sqlalchemy", "alembic"}

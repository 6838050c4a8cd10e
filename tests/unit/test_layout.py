"""The packages' arrows: catalog ← secfilter, catalog ← secadmin, and no others."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from graphlib import TopologicalSorter
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
    "secadmin.control": {
        *("secadmin.control", "secadmin.kafka", "secadmin.languages"),
        *("secadmin.solving", "secadmin.xacml"),
    },
    "secadmin.service": {"secadmin.service", "secadmin.control"},
    "secadmin.solving": {"secadmin.solving"},
    "secadmin.xacml": {"secadmin.xacml"},
}

# Values and pure rules of the catalog. The other modules of the catalog read or write its database.
VALUES = {
    f"catalog.{name}"
    for name in (
        *(
            "access_kind",
            "aggregates",
            "analysis",
            "audit_head",
            "audit_key",
            "balance",
            "broker_patience",
            "canonical",
            "category_kind",
        ),
        "changing_parts",
        *("checked_plan", "match_check", "match_expressions", "moving_check"),
        *("pair_expressions", "pattern", "plan_rules"),
        *("clearance", "clock", "decision", "delivery", "engines", "error_places"),
        *("errors", "expression"),
        *(
            "form_version",
            "functions",
            "held_time",
            "label",
            "label_layout",
            "label_rule",
            "limits",
            "moments",
            "names",
            "namespace",
            "operator_limits",
            "origin",
            "output_relation",
            "passwords",
        ),
        *(
            "permission",
            "placement",
            "plan",
            "plan_check",
            "plan_json",
            "plan_memory",
            "plan_size",
            "private_file",
            "probation",
            "reach",
        ),
        *("regular_expression", "role_clauses", "role_expression"),
        *("conflict_class", "level_rule"),
        *("record_format", "relation", "run_counts", "run_names", "runs", "schema", "settings"),
        *("role_view", "view_aggregates", "view_merging", "view_plan", "view_trial"),
        "view_windows",
        *(
            "single_tuples",
            "spaces",
            "stable_names",
            "stored_form",
            "stored_upgrades",
            "time_source",
            "topic_sharing",
            "topics",
            "upserts",
            "user_limits",
        ),
    )
}
# What the repository has at its top. A test that writes a file where it runs would add another.
AT_THE_TOP = {
    *(*MAY_IMPORT, "docs", "tests", ".ci"),
    *("README.md", "Makefile", "pyproject.toml", "constraints.txt"),
    *(".gitignore", ".dockerignore"),
}
# Inside the languages: neither knows the other, and what both share knows neither.
APART = {
    "expressions": {"secadmin.languages.sql", "secadmin.languages.borealis"},
    "sql": {"secadmin.languages.borealis"},
    "borealis": {"secadmin.languages.sql"},
}


def imports_of(file: Path) -> Iterator[str]:
    """The modules that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            module = node.module or ""
            yield module
            # A name that is a module of its own: `from secfilter import texts`.
            yield from (f"{module}.{alias.name}" for alias in node.names)


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


@pytest.mark.parametrize("language", APART)
def test_the_languages_are_apart(language: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in (ROOT / "secadmin" / "languages" / language).rglob("*.py")
        for module in imports_of(file)
        if any(f"{module}.".startswith(f"{other}.") for other in APART[language])
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


def test_no_engine_gets_the_audit_key() -> None:
    """The settings name its file, and only SecAdmin opens it."""
    wrong = [
        str(file.relative_to(ROOT))
        for file in (ROOT / "secfilter").rglob("*.py")
        if "catalog.audit_key" in set(imports_of(file))
        or any(
            isinstance(node, ast.Attribute) and node.attr in ("audit_key_file", "secadmin")
            for node in ast.walk(ast.parse(file.read_text()))
        )
    ]
    assert wrong == []


def modules() -> dict[str, Path]:
    """Every module of the product, by its name."""
    files = [file for package in MAY_IMPORT for file in (ROOT / package).rglob("*.py")]
    return {_module(file): file for file in files}


def _module(file: Path) -> str:
    """The name of the module of a file. `catalog.models` is a package that gives what is in it."""
    name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    return "catalog.models" if name == "catalog.models.__init__" else name


def test_no_modules_import_each_other_in_a_circle() -> None:
    files = modules()
    graph = {name: set(imports_of(file)) & files.keys() for name, file in files.items()}
    with_circle = TopologicalSorter(graph)
    # Raises CycleError, which names the modules of the circle.
    with_circle.prepare()


def test_values_of_the_catalog_import_no_storage() -> None:
    files = modules()
    assert files.keys() >= VALUES
    wrong = [
        f"{name} imports {module}"
        for name in VALUES
        for module in imports_of(files[name])
        if module.split(".")[0] == "sqlalchemy" or (module in files and module not in VALUES)
    ]
    assert wrong == []


def test_what_is_no_value_of_the_catalog_needs_the_storage() -> None:
    """So a new value is written down as one."""
    files = {name: file for name, file in modules().items() if name.startswith("catalog.")}
    storage = {"sqlalchemy", *(files.keys() - VALUES)}
    others = files.keys() - VALUES
    needless = [
        name
        for name in others
        if "migrations" not in name
        and name.split(".")[-1] != "__init__"
        and not any(
            m in storage or m.split(".")[0] == "sqlalchemy" for m in imports_of(files[name])
        )
    ]
    assert needless == []


def test_the_repository_has_only_what_is_named_at_its_top() -> None:
    """Neither what git keeps, nor what a test has left for the next commit."""
    options = ("--cached", "--others", "--exclude-standard", "-z")
    listed = subprocess.run(
        ("git", "ls-files", *options), cwd=ROOT, capture_output=True, check=True
    )
    names = {Path(each).parts[0] for each in listed.stdout.decode().split("\0") if each}
    assert names == AT_THE_TOP

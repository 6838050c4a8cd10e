"""The documents name modules, and names in them, that exist; their links lead to files."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY, PAPERS = ROOT / "docs" / "glossary.md", ROOT / "docs" / "papers.md"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]+)`")
# A file or a folder of the project, and nothing like `lab.*` or `GET /grants`.
_PATH = re.compile(r"[\w.-]+(/[\w.-]+)+/?|[\w-]+\.(py|md|xml|toml)")
# A module, and names that it defines: `catalog/label.py`: `Label`, `combine`.
_NAMED = re.compile(r"`([\w./-]+\.py)`: ((?:`[\w.]+`(?:, )?)+)")
_TERM = re.compile(r"\*\*(.+?)\*\*")


def name_of(document: Path) -> str:
    """How a test's id names the document."""
    return document.relative_to(ROOT).as_posix()


def rows_of(text: str) -> Iterator[list[str]]:
    """The cells of each row of the text's tables, those of headings aside."""
    lines = text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("|") and not line.startswith("|---") and not below.startswith("|---"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def paths_in(text: str) -> list[str]:
    """The paths of the project that a text names as code, from the project's root."""
    return [code for code in _CODE.findall(text) if _PATH.fullmatch(code)]


@cache
def defined_in(module: Path) -> frozenset[str]:
    """The classes, functions and variables that a module defines, wherever in it."""
    tree = list(ast.walk(ast.parse(module.read_text())))
    named = {n.name for n in tree if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    stored = {n.id for n in tree if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return frozenset(named | stored)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_relative_links_lead_to_files(document: Path) -> None:
    links = [link for link in _LINK.findall(document.read_text()) if ":" not in link]
    targets = [link.partition("#")[0] for link in links]
    assert [t for t in targets if t and not (document.parent / t).is_file()] == []


@pytest.mark.parametrize("document", [GLOSSARY, PAPERS], ids=name_of)
def test_named_modules_exist(document: Path) -> None:
    paths = paths_in(document.read_text())
    assert paths
    assert sorted({path for path in paths if not (ROOT / path).exists()}) == []


@pytest.mark.parametrize("document", [GLOSSARY, PAPERS], ids=name_of)
def test_modules_define_the_names_beside_them(document: Path) -> None:
    found = _NAMED.findall(document.read_text())
    assert found
    wrong = [
        f"{path} defines no {part}"
        for path, names in found
        for name in _CODE.findall(names)
        for part in name.split(".")
        if part not in defined_in(ROOT / path)
    ]
    assert wrong == []


def test_each_term_is_in_the_glossary_once() -> None:
    firsts = [row[0] for row in rows_of(GLOSSARY.read_text())]
    terms = Counter(term.casefold() for first in firsts for term in _TERM.findall(first))
    assert terms
    assert [term for term, count in terms.items() if count > 1] == []


def test_each_section_of_a_paper_has_a_module_or_is_not_yet() -> None:
    rows = list(rows_of(PAPERS.read_text()))
    assert rows
    assert [row for row in rows if "not yet" not in row[-1] and not paths_in(row[-1])] == []

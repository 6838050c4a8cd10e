"""The oracle shares no rule with the product: it takes values from it, and computes by itself."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from catalog.clearance import Clearance
from catalog.label import Label

ORACLE = Path(__file__).parents[2] / "oracle"
PRODUCT = ("catalog", "secadmin", "secfilter", "deploy")
# How a set of categories is written down and read is not a rule; all else of a label is.
PLAIN = frozenset({"of", "categories", "bits"})
RULES = {n for cls in (Label, Clearance) for n in vars(cls) if n[0] != "_"} - PLAIN
FILES = sorted(ORACLE.glob("*.py"))


def _is_product(module: str | None) -> bool:
    return (module or "").split(".")[0] in PRODUCT


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_oracle_imports_values_only(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            assert not any(_is_product(alias.name) for alias in node.names), "import values by name"
        elif isinstance(node, ast.ImportFrom) and _is_product(node.module):
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                value = getattr(module, alias.name)
                unions = {"AttributeType", "Expression", "Node", "Pattern"}
                assert isinstance(value, type) or alias.name in unions, alias.name


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_oracle_asks_no_label_and_no_clearance_for_its_rule(file: Path) -> None:
    tree = ast.parse(file.read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not used & RULES
    unions = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp)]
    assert not any(isinstance(node.op, ast.BitOr) and _is_label(node) for node in unions)


def _is_label(node: ast.BinOp) -> bool:
    """Whether an operand is a label by its name: `|` on labels is the product's rule."""
    return any(
        isinstance(side, ast.Attribute) and side.attr in {"label", "reach"}
        for side in (node.left, node.right)
    )


def test_there_are_rules_to_leave_alone() -> None:
    assert {"within", "covers", "cut_to", "from_wire"} <= RULES
    assert len(FILES) > 8

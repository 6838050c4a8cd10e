"""The mutants of a module, made by Cosmic Ray."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module's source with one change.

    Attributes:
        name: What stood there and what stands there now, by which a mutant is listed.
        source: The whole mutated source.
    """

    name: str
    source: str


def mutants(original: str) -> Iterator[Mutant]:
    """Every mutant of the source that compiles and is another program, each once."""
    seen = {_program(original)}
    for operator_name in sorted(operator_names()):
        operator_class = get_operator(operator_name)
        if operator_class.arguments():
            continue  # such an operator needs to be told what to put where
        for occurrence in count():
            source = mutate_code(original, operator_class(), occurrence)
            if source is None:
                break
            program = _program(source)
            if program is not None and program not in seen:
                seen.add(program)
                yield Mutant(_change(original, source), source)


def _program(source: str) -> str | None:
    """What the source does: its syntax tree without annotations, which are never evaluated."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    return ast.dump(_WithoutAnnotations().visit(tree))


class _WithoutAnnotations(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        node.annotation = ast.Constant(None)
        return node


def _change(before: str, after: str) -> str:
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    old = " ".join(line[2:].strip() for line in lines if line.startswith("- "))
    new = " ".join(line[2:].strip() for line in lines if line.startswith("+ "))
    return f"{old} -> {new}"

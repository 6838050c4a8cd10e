"""The mutants of a module, made by Cosmic Ray."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count, takewhile

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module's source with one change.

    Attributes:
        name: What was there and what is there now, by which a mutant is listed.
        source: The whole mutated source.
    """

    name: str
    source: str


def mutants(original: str, only: Collection[str] = ()) -> Iterator[Mutant]:
    """Every mutant of the source that compiles and is another program, each once.

    `only` names the functions and classes of the module that are mutated; without it all is.
    """
    seen = {_program(original)}
    for piece in _pieces(original):
        if only and piece.name not in only:
            continue
        for source in piece.mutated(original):
            program = _program(source)
            if program is not None and program not in seen:
                seen.add(program)
                yield Mutant(_change(original, source), source)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Lines of a module that are mutated by themselves: the larger a text, the longer that takes.

    `before` and `after` are around them, so that they are a module.
    """

    name: str | None
    first: int
    last: int
    before: str = ""
    after: str = ""

    def mutated(self, original: str) -> Iterator[str]:
        """The whole module's source, with each change of these lines."""
        lines = original.splitlines(keepends=True)
        above, below = "".join(lines[: self.first - 1]), "".join(lines[self.last :])
        text = self.before + "".join(lines[self.first - 1 : self.last]) + self.after
        for operator_name in sorted(operator_names()):
            operator_class = get_operator(operator_name)
            if operator_class.arguments():
                continue  # such an operator needs to be told what to put where
            for occurrence in count():
                changed = mutate_code(text, operator_class(), occurrence)
                if changed is None:
                    break
                inner = changed.removeprefix(self.before).removesuffix(self.after)
                yield above + inner + below


def _pieces(source: str) -> Iterator[_Piece]:
    """The module's statements, and of a class its head and each statement in it."""
    for node in ast.parse(source).body:
        name = node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else None
        if not isinstance(node, ast.ClassDef):
            yield _Piece(name, _first_line(node), _last_line(node))
            continue
        inside = " " * node.body[0].col_offset
        yield _Piece(
            name, _first_line(node), _first_line(node.body[0]) - 1, after=f"{inside}pass\n"
        )
        for inner in node.body:
            yield _Piece(name, _first_line(inner), _last_line(inner), before="class _:\n")


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min((each.lineno for each in decorators), default=node.lineno)


def _last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


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
    old_lines, new_lines = before.splitlines(), after.splitlines()
    # Comparing takes long: only what lies between what is the same at both ends is compared.
    same = _in_common(old_lines, new_lines)
    old_lines, new_lines = old_lines[same:], new_lines[same:]
    ending = _in_common(old_lines[::-1], new_lines[::-1])
    lines = list(
        difflib.ndiff(old_lines[: len(old_lines) - ending], new_lines[: len(new_lines) - ending])
    )
    old = " ".join(line[2:].strip() for line in lines if line.startswith("- "))
    new = " ".join(line[2:].strip() for line in lines if line.startswith("+ "))
    return f"{old} -> {new}"


def _in_common(some: list[str], others: list[str]) -> int:
    """With how many equal lines both begin."""
    pairs = zip(some, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

"""Docs, comments and messages use plain words: none of an older English, which few readers know."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("catalog", "secadmin", "secfilter", "deploy")
# What is not used, and what is written in its place. Time, a run and a process stand still, a text
# stands for a value, and rows that stand are a term of the glossary.
AVOIDED = {
    re.compile(r"\b(tell|tells|told|telling) of\b"): "reveals, says, reports, or learns of",
    re.compile(r"(?<!that )\bstands?\b(?!:| still\b| for\b| in for\b)"): "is",
    re.compile(r"\bstood\b(?! still\b| for\b)"): "was",
    re.compile(r"\b(hence|henceforth|thence|thereby|thereof|therein|wherein|whereby)\b"): "so",
    re.compile(r"\b(hitherto|heretofore|upon|whilst|lest|shall|ought|albeit)\b"): "a plain word",
}
# Code and names of files in a document are no English.
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
# What is around the words of a comment or a string.
_MARKS = re.compile(r"""^[rbfu]{0,2}["']+|["']+$|^\#+""", re.IGNORECASE)
_TEXTS = {"COMMENT", "STRING", "FSTRING_MIDDLE"}
_BETWEEN = {"NL", "NEWLINE", "FSTRING_START", "FSTRING_END"}


def avoided_in(text: str) -> list[str]:
    """Each avoided word of the text, with a few words around it and what to write instead."""
    plain = " ".join(_CODE.sub(" ", text).split())
    return [
        f"{plain[max(0, found.start() - 30) : found.end() + 30]!r}: write {instead}"
        for words, instead in AVOIDED.items()
        for found in words.finditer(plain.lower())
    ]


def texts_of(module: Path) -> Iterator[str]:
    """The comments and strings of a module, those together that follow each other."""
    together: list[str] = []
    with module.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            kind = tokenize.tok_name[token.type]
            if kind in _TEXTS:
                together.append(_MARKS.sub("", token.string))
            elif kind not in _BETWEEN:
                yield " ".join(together)
                together = []


@pytest.mark.parametrize("text", ["it tells\nof others", "Nobody was told of it", "it stood there"])
def test_an_avoided_word_is_found(text: str) -> None:
    assert avoided_in(text)


@pytest.mark.parametrize(
    "text", ["time stands still", "a text that stands for it", "the rows that stand", "`stands`"]
)
def test_what_the_project_says_is_not_avoided(text: str) -> None:
    assert avoided_in(text) == []


def test_documents_have_no_avoided_words() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    documents += [each for package in PACKAGES for each in (ROOT / package).rglob("*.md")]
    assert len(documents) > len(PACKAGES)
    found = {d.relative_to(ROOT).as_posix(): avoided_in(d.read_text()) for d in documents}
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_comments_and_messages_have_no_avoided_words(package: str) -> None:
    modules = sorted((ROOT / package).rglob("*.py"))
    assert modules
    found = {
        module.relative_to(ROOT).as_posix(): [w for t in texts_of(module) for w in avoided_in(t)]
        for module in modules
    }
    assert {name: words for name, words in found.items() if words} == {}

"""Whatever the text: a checked plan, or InvalidInput that says where."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.tokens import Tokenizer

from catalog.analysis import analyse
from catalog.errors import InvalidInput
from secadmin.languages import parse_sql
from tests.lanes import number_of
from tests.unit.secadmin.languages.streams import Streams

_VALID = [
    case["text"] for case in json.loads(Path(__file__).with_name("sql_plans.json").read_text())
]
_WORDS = sorted({word for text in _VALID for word in text.split()} | set(Tokenizer.KEYWORDS))
EXAMPLES = number_of("LANGUAGE_EXAMPLES", sample=100, long=1_000)


def _answer(text: str) -> None:
    try:
        plan = parse_sql(text, Streams())
    except InvalidInput as error:
        # The backstop behind sqlglot is no excuse for what the allow-list should have refused.
        assert error.position is not None
        return
    assert analyse(plan.plan) == plan


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text())
def test_any_text(text: str) -> None:
    _answer(text)


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(st.lists(st.sampled_from(_WORDS), max_size=25))
def test_any_words(words: list[str]) -> None:
    _answer(" ".join(words))


@settings(max_examples=3 * EXAMPLES, deadline=None)
@given(st.data())
def test_valid_queries_with_words_changed(data: st.DataObject) -> None:
    words = data.draw(st.sampled_from(_VALID)).split()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(words)))
        until = data.draw(st.integers(at, min(at + 2, len(words))))
        words[at:until] = data.draw(st.lists(st.sampled_from(_WORDS), max_size=2))
    _answer(" ".join(words))


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(st.data())
def test_valid_queries_with_characters_changed(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(_VALID))
    at = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(at, min(at + 3, len(text))))
    _answer(text[:at] + data.draw(st.text(max_size=3)) + text[until:])

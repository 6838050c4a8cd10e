"""Label layouts only grow, and a label is the same after it was moved in and out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.label import WORD_BITS, Label
from catalog.label_layout import RESERVED, LabelLayout, Move
from catalog.stored_form import from_stored, to_stored

categories = st.integers(0, 300)
labels = st.frozensets(categories, max_size=80).map(lambda held: Label.of(*held))


def moved(label: Label, moves: tuple[Move, ...]) -> Label:
    """The label with its bits moved, one by one."""
    bits = 0
    for move in moves:
        mask = move.mask & (1 << WORD_BITS) - 1
        part = label.bits >> WORD_BITS * move.source & mask
        part = part << move.shift if move.shift >= 0 else part >> -move.shift
        assert part < 1 << WORD_BITS
        bits |= part << WORD_BITS * move.target
    return Label(bits)


@given(labels)
def test_a_new_layout_has_free_bits_in_as_few_words_as_can_be(reach: Label) -> None:
    layout = LabelLayout.of(reach)
    free = WORD_BITS * layout.words - len(layout.categories)
    assert RESERVED <= free < RESERVED + WORD_BITS
    assert layout.holds(reach)


@given(labels, st.lists(labels, max_size=4))
def test_no_category_changes_its_place_while_a_layout_grows(
    reach: Label, more: list[Label]
) -> None:
    layout = LabelLayout.of(reach)
    for new in more:
        grown = layout.grown(new)
        count = len({*layout.categories, *new.categories()})
        assert (grown is None) == (count > WORD_BITS * layout.words)
        if grown is None:
            return
        assert grown.words == layout.words
        assert grown.categories[: len(layout.categories)] == layout.categories
        assert grown.holds(new) and grown.grown(new) == grown
        assert len(grown.categories) == count, "what is there already takes no bit again"
        layout = grown


@given(labels, labels, st.data())
def test_a_label_is_moved_in_and_out(reach: Label, later: Label, data: st.DataObject) -> None:
    layout = LabelLayout.of(reach).grown(later) or LabelLayout.of(reach)
    held = st.frozensets(st.sampled_from(layout.categories)) if layout.categories else st.just(())
    label = Label.of(*data.draw(held))
    inside = moved(label, layout.packing(label))
    assert inside == layout.packed(label)
    assert inside.bits < 1 << WORD_BITS * layout.words
    assert moved(inside, layout.unpacking()) == label


@given(labels, labels, labels)
def test_layouts_decide_as_labels_do(reach: Label, one: Label, other: Label) -> None:
    layout = LabelLayout.of(reach)
    inside = Label(one.bits & reach.bits)
    assert layout.packed(inside).within(layout.packed(other)) == inside.within(other)
    assert layout.packed(inside | other) == layout.packed(inside) | layout.packed(other)
    assert layout.holds(other) == other.within(reach)


@given(labels)
def test_a_layout_is_stored(reach: Label) -> None:
    layout = LabelLayout.of(reach)
    assert from_stored(LabelLayout, to_stored(layout)) == layout


@pytest.mark.parametrize(("held", "words"), [((1, 1), 1), (tuple(range(65)), 1), ((1,), 0)])
def test_what_is_no_layout_is_refused(held: tuple[int, ...], words: int) -> None:
    with pytest.raises(ValueError):
        LabelLayout(held, words)


def test_neighbours_are_moved_together() -> None:
    reach = Label.of(*range(60, 70), 200)
    assert len(LabelLayout.of(reach).packing(reach)) == 3
    assert len(LabelLayout.of(reach).unpacking()) == 3

"""Labels and clearances: sets of categories, any number of them (DESIGN, the one rule)."""

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.clearance import Clearance, covers_weakly
from catalog.label import MAX_CATEGORIES, PUBLIC, Label, combine

bits = st.one_of(st.integers(0, 70), st.integers(0, 3_000))
labels = st.frozensets(bits, max_size=12).map(lambda chosen: Label.of(*chosen))
clearances = st.frozensets(bits, max_size=12).map(lambda chosen: Clearance.of(*chosen))


@given(labels, labels)
def test_combine_is_commutative(a: Label, b: Label) -> None:
    assert a | b == b | a


@given(labels, labels, labels)
def test_combine_is_associative(a: Label, b: Label, c: Label) -> None:
    assert (a | b) | c == a | (b | c) == combine([a, b, c])


@given(labels)
def test_combine_is_idempotent_with_public_as_its_neutral_label(a: Label) -> None:
    assert a | a == a == a | PUBLIC


@given(labels, labels, clearances)
def test_a_combination_is_visible_iff_all_its_parts_are(
    a: Label, b: Label, clearance: Clearance
) -> None:
    assert clearance.covers(a | b) == (clearance.covers(a) and clearance.covers(b))


@given(labels, clearances)
def test_visible_means_subset(label: Label, clearance: Clearance) -> None:
    held = set(Label(clearance.bits).categories())
    assert clearance.covers(label) == (set(label.categories()) <= held)


@given(clearances)
def test_no_label_is_never_visible(clearance: Clearance) -> None:
    assert not clearance.covers(None)
    assert not covers_weakly(clearance, None, PUBLIC)
    assert not covers_weakly(clearance, None, Label(clearance.bits))


@given(labels, clearances, st.integers(3_001, 5_000))
def test_an_unknown_bit_denies(label: Label, clearance: Clearance, unknown: int) -> None:
    assert not clearance.covers(label | Label.of(unknown))


@given(labels, labels, clearances)
def test_a_class_clearance_decides_as_the_whole_one_within_the_reach(
    label: Label, rest: Label, clearance: Clearance
) -> None:
    assert clearance.cut_to(label | rest).covers(label) == clearance.covers(label)


@given(labels, clearances, labels)
def test_weak_lets_in_what_strong_does_and_needs_one_source(
    label: Label, clearance: Clearance, sources: Label
) -> None:
    weak = covers_weakly(clearance, label, sources)
    own = set(label.categories()) & set(sources.categories())
    others = set(label.categories()) - own
    held = set(Label(clearance.bits).categories())
    assert weak == (others <= held and (not own or bool(own & held)))
    assert weak or not clearance.covers(label)


@given(labels)
def test_wire_round_trip(label: Label) -> None:
    text = label.to_wire()
    assert Label.from_wire(text) == label == Label.from_wire(text.encode())
    words = [label.word(index) for index in range(len(text.split(",")))]
    assert text == ",".join(map(str, words))
    assert all(-(2**63) <= word < 2**63 for word in words)
    assert label.word_indexes() == tuple(i for i, word in enumerate(words) if word)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 128, 1_000, 1_200, 5_000])
def test_more_sources_than_a_word_holds(count: int) -> None:
    everything = Label.of(*range(count))
    assert everything.categories() == tuple(range(count))
    assert Label.from_wire(everything.to_wire()) == everything
    assert Clearance.of(*range(count)).covers(everything)
    assert not Clearance.of(*range(count - 1)).covers(everything)
    assert not Clearance.of(*range(1, count)).covers(everything)


ON_THE_WIRE = {
    "0": (),
    "1": (0,),
    "-9223372036854775808": (63,),
    "-9223372036854775807": (0, 63),
    "0,1": (64,),
    "1,1": (0, 64),
    "0,-9223372036854775808": (127,),
    "0,0,1": (128,),
}


@pytest.mark.parametrize(("text", "categories"), ON_THE_WIRE.items())
def test_the_wire_has_words_of_64_bits_lowest_first(text: str, categories: tuple[int, ...]) -> None:
    label = Label.of(*categories)
    assert (label.to_wire(), Label.from_wire(text)) == (text, label)


def test_labels_and_clearances_stay_what_they_are() -> None:
    for value in (Label.of(1), Clearance.of(1)):
        with pytest.raises(FrozenInstanceError):
            value.bits = 2  # type: ignore[misc]


def test_as_many_words_as_a_label_may_have() -> None:
    highest = Label.of(64 * 1_024 - 1)
    assert Label.from_wire(highest.to_wire()) == highest
    with pytest.raises(ValueError, match="no category above 65535"):
        Label.of(64 * 1_024).to_wire()


@given(st.frozensets(st.integers(0, MAX_CATEGORIES + 200), max_size=5))
def test_what_is_written_is_read_again(categories: frozenset[int]) -> None:
    label = Label.of(*categories)
    if max(categories, default=0) < MAX_CATEGORIES:
        assert Label.from_wire(label.to_wire()) == label
    else:
        with pytest.raises(ValueError, match="no category above"):
            label.to_wire()


def test_a_category_that_is_named_twice_is_there_once() -> None:
    assert Label.of(3, 3) == Label.of(3)


def test_who_is_given_nothing_sees_what_is_public_alone() -> None:
    assert Label() == PUBLIC == Label.of()
    assert Clearance().covers(PUBLIC)
    assert Clearance() == Clearance.of()
    assert not any(Clearance().covers(Label.of(category)) for category in (0, 1, 63, 64))


GARBAGE = {
    "absent": None,
    "empty": "",
    "empty bytes": b"",
    "a word": "public",
    "hexadecimal": "0x1",
    "plus": "+1",
    "space": " 1",
    "space behind": "1 ",
    "newline": "1\n",
    "underscore": "1_0",
    "float": "1.0",
    "only a sign": "-",
    "two signs": "--1",
    "comma alone": ",",
    "comma behind": "1,",
    "comma before": ",1",
    "semicolon": "1;2",
    "a leading zero": "01",
    "zeros": "00",
    "a negative number's leading zero": "-01",
    "minus zero": "-0",
    "too large": "9223372036854775808",
    "much too large": "9999999999999999999",
    "too small": "-9223372036854775809",
    "many digits": "1" * 5_000,
    "other digits": "\u0661",
    "other digits in UTF-8": "\u0661".encode(),
    "not ASCII": b"\xff",
    "NUL": "1\0",
    "too many words": ",".join(["0"] * 1_025),
    "one bad word of many": "1,2,x",
}


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_on_the_wire_is_no_label(text: str | bytes | None) -> None:
    assert Label.from_wire(text) is None


@given(st.one_of(st.text(), st.binary()))
def test_what_is_read_from_the_wire_is_nothing_or_words(text: str | bytes) -> None:
    label = Label.from_wire(text)
    plain = text if isinstance(text, str) else text.decode("latin-1")
    if label is not None:
        assert set(plain) <= set("-0123456789,")
        assert Label.from_wire(label.to_wire()) == label


def test_a_label_has_no_negative_bits() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        Label(-1)


@given(labels, labels)
def test_within_is_subset(a: Label, b: Label) -> None:
    assert a.within(b) == (a | b == b)

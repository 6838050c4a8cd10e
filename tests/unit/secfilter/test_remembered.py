"""What a process keeps of its last batches."""

from __future__ import annotations

from dataclasses import dataclass

from secfilter.remembered import Remembered


@dataclass
class Counter:
    """An operator whose state is a text of this length."""

    length: int = 0
    more_characters: int = 0
    read: int = 0
    withheld: int = 0

    def restore(self, text: str) -> None:
        self.length, self.read = len(text), self.read + 1

    def to_text(self) -> str:
        return "x" * self.length

    def begin_batch(self) -> None:
        self.withheld = 0


def kept(process: Remembered, length: int, operator: str = "a") -> Counter:
    made = Counter(length)
    assert process.keep(operator, made) == "x" * length
    return made


def test_an_object_goes_on_without_being_read_and_counts_anew() -> None:
    process = Remembered(100)
    made = kept(process, 7)
    made.withheld = 3
    again = process.go_on("a", "x" * 7, Counter)
    assert again is made and (again.read, again.withheld) == (0, 0)


def test_an_object_goes_on_once() -> None:
    """Its batch may fail. Then the state is the old one, and the object has gone on."""
    process = Remembered(100)
    made = kept(process, 7)
    process.go_on("a", "x" * 7, Counter)
    again = process.go_on("a", "x" * 7, Counter)
    assert again is not made and (again.length, again.read) == (7, 1)


def test_another_state_and_another_operator_are_read() -> None:
    process = Remembered(100)
    made = kept(process, 7)
    assert process.go_on("a", "x" * 8, Counter) is not made
    assert process.go_on("b", "x" * 7, Counter) is not made
    assert process.go_on("a", "x" * 7, Counter) is made


def test_without_a_state_all_begins_empty() -> None:
    process = Remembered(100)
    made = kept(process, 0)
    begun = process.go_on("a", None, Counter)
    assert begun is not made and begun.read == 0


def test_what_is_kept_is_bounded_and_the_oldest_is_forgotten() -> None:
    process = Remembered(10)
    first, second, third = (kept(process, length) for length in (4, 5, 3))
    kept(process, 11)
    assert process.go_on("a", "x" * 11, Counter).read == 1
    assert process.go_on("a", "x" * 4, Counter) is not first
    assert process.go_on("a", "x" * 5, Counter) is second
    assert process.go_on("a", "x" * 3, Counter) is third
    # What went on is no longer counted.
    again = [kept(process, length) for length in (4, 6)]
    assert [process.go_on("a", "x" * n, Counter) for n in (4, 6)] == again


def test_what_an_object_holds_besides_its_state_counts_too() -> None:
    process = Remembered(10)
    pairs = Counter(2, 9)
    process.keep("a", pairs)
    assert process.go_on("a", "xx", Counter) is not pairs
    first, second = Counter(2, 3), Counter(3, 3)
    process.keep("a", first)
    process.keep("a", second)
    assert process.go_on("a", "xx", Counter) is not first
    assert process.go_on("a", "xxx", Counter) is second


def test_two_objects_with_one_state_count_once() -> None:
    """As those of two classes that hold the same."""
    process = Remembered(10)
    kept(process, 6)
    newest = kept(process, 6)
    beside = kept(process, 4)
    assert process.go_on("a", "x" * 6, Counter) is newest
    assert process.go_on("a", "x" * 4, Counter) is beside

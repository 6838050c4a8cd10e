"""Checkpoints: what one says of the topics it began with."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from catalog.label import Label
from catalog.label_layout import LabelLayout
from secfilter.checkpoint import Checkpoint, Checkpoints
from secfilter.kafka_options import Offsets


@pytest.mark.parametrize(
    ("start", "narrow"),
    [
        ({"lab.a": {"0": 5}}, True),
        ({"lab.a": {"0": 5}, "lab.b": {"0": -2}}, True),
        ({"lab.a": {"0": 5}, "lab.b": {"0": -2, "1": -2}}, False),
        (None, False),
    ],
)
def test_narrow_where_each_topic_had_one_partition(
    tmp_path: Path, start: Offsets | None, narrow: bool
) -> None:
    made = Checkpoints(tmp_path).renew("query-1", "shape", start)
    assert made.narrow() is narrow
    again = Checkpoints(tmp_path).current("query-1", "shape")
    assert again is not None
    assert again.narrow() is narrow


def test_of_two_sources_of_one_topic_the_one_behind_counts(tmp_path: Path) -> None:
    """What only the other one has read is read again."""
    made = Checkpoints(tmp_path).renew("query-1", "shape", {"lab.a": {"0": 0, "1": 0}})
    lines = ['{"lab.a":{"0":5,"1":2}}', "-", '{"lab.a":{"0":3,"1":4},"lab.b":{"0":1}}']
    for log, text in (("offsets", "\n".join(["v1", "{}", *lines])), ("commits", "v1\n{}")):
        (made.spark / log).mkdir(parents=True)
        (made.spark / log / "0").write_text(text)
    assert made.committed() == {"lab.a": {"0": 3, "1": 2}, "lab.b": {"0": 1}}


START: Offsets = {"lab.a": {"0": 5}}
LAYOUT = LabelLayout.of(Label.of(3, 70))


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    """The checkpoint of query-1 in its second generation, with some state."""
    made = Checkpoints(tmp_path)
    made.renew("query-1", "shape", START)
    of = made.renew("query-1", "shape", START, {"lab.a": 9}, LAYOUT)
    write(of, "metadata", json.dumps({"id": "first"}))
    write(of, ".metadata.crc", "crc")
    write(of, "state/0/1/2.zip", "state")
    write(of, "offsets/0", 'v1\n{"batchWatermarkMs":0}\n{"lab.a":{"0":8}}')
    write(of, "commits/0", "v1")
    return made


def write(checkpoint: Checkpoint, name: str, text: str) -> None:
    file = checkpoint.spark / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def read(checkpoint: Checkpoint, name: str) -> str:
    return (checkpoint.spark / name).read_text()


def copied(checkpoints: Checkpoints) -> Checkpoint:
    found = checkpoints.current("query-2", "shape")
    assert found is not None
    return found


def test_a_copy_stands_where_the_run_stands_and_is_another_query(checkpoints: Checkpoints) -> None:
    checkpoints.copy("query-1", "query-2")
    made = copied(checkpoints)
    assert (made.start, made.owners, made.layout()) == (START, {"lab.a": 9}, LAYOUT)
    assert made.committed() == {"lab.a": {"0": 8}} and made.begun()
    assert read(made, "state/0/1/2.zip") == "state"
    assert set(json.loads(read(made, "metadata"))) == {"id"}
    assert json.loads(read(made, "metadata")) != {"id": "first"}
    assert not (made.spark / ".metadata.crc").exists()
    assert made.folder.stat().st_mode & 0o777 == 0o700


def test_neither_sees_what_the_other_does(checkpoints: Checkpoints) -> None:
    checkpoints.copy("query-1", "query-2")
    left, made = checkpoints.current("query-1", "shape"), copied(checkpoints)
    assert left is not None
    for each, other in ((left, made), (made, left)):
        name = f"state/0/1/{each.folder.parent.name}.zip"
        write(each, name, "more")
        assert not (other.spark / name).exists()
    (left.spark / "state/0/1/2.zip").unlink()
    assert read(made, "state/0/1/2.zip") == "state"


def test_what_has_begun_is_never_replaced_by_a_copy(checkpoints: Checkpoints) -> None:
    own = checkpoints.renew("query-2", "shape", {})
    checkpoints.copy("query-1", "query-2")
    assert checkpoints.current("query-2", "shape") == own


def test_there_is_no_copy_of_what_has_not_begun(checkpoints: Checkpoints) -> None:
    checkpoints.copy("query-8", "query-9")
    assert checkpoints.previous("query-9") is None
    checkpoints.renew("query-3", "shape", START)
    checkpoints.copy("query-3", "query-4")
    found = checkpoints.previous("query-4")
    assert found is not None and found.start == START and not found.begun()


def test_a_copy_that_was_cut_off_is_made_anew(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_source: str, _target: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as cut, pytest.raises(KeyboardInterrupt):
        cut.setattr("secfilter.checkpoint.os.link", fail)
        checkpoints.copy("query-1", "query-2")
    assert checkpoints.previous("query-2") is None
    checkpoints.copy("query-1", "query-2")
    assert read(copied(checkpoints), "state/0/1/2.zip") == "state"


def test_a_file_system_without_second_names_gets_copies(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_source: str, _target: str) -> None:
        raise OSError

    monkeypatch.setattr(os, "link", refuse)
    checkpoints.copy("query-1", "query-2")
    assert read(copied(checkpoints), "state/0/1/2.zip") == "state"


def test_a_copy_keeps_its_state_when_the_original_is_deleted(checkpoints: Checkpoints) -> None:
    checkpoints.copy("query-1", "query-2")
    for _ in range(2):
        checkpoints.moved("query-1", START)
    checkpoints.drop_older("query-1")
    assert not (checkpoints.home("query-1") / "2").exists()
    assert read(copied(checkpoints), "state/0/1/2.zip") == "state"


def test_an_old_generation_that_cannot_be_deleted_is_left_for_the_next_start(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On a shared folder a file may still be open on another machine."""
    newest = checkpoints.moved("query-1", START)
    home = checkpoints.home("query-1")

    def refuse(_folder: Path) -> None:
        raise OSError(39, "Directory not empty")

    with monkeypatch.context() as busy:
        busy.setattr("secfilter.checkpoint.shutil.rmtree", refuse)
        checkpoints.drop_older("query-1")
    assert "query-1: an old generation is still there: Directory not empty" in caplog.text
    assert checkpoints.previous("query-1") == newest and (home / "1").exists()
    checkpoints.drop_older("query-1")
    assert not (home / "1").exists() and (home / "2").exists()


def test_of_a_run_that_has_not_begun_nothing_is_deleted(checkpoints: Checkpoints) -> None:
    checkpoints.drop_older("query-9")
    (checkpoints.home("query-1") / "current.json").unlink()
    checkpoints.drop_older("query-1")
    assert (checkpoints.home("query-1") / "1").exists()


def rewritten(file: Path, **changed: object) -> dict[str, object]:
    """What the file says now: what it said before, with these changes. None leaves an entry out."""
    data = {**json.loads(file.read_text()), **changed}
    kept = {name: value for name, value in data.items() if value is not None}
    file.write_text(json.dumps(kept))
    return kept


def test_a_checkpoint_without_a_version_is_read(checkpoints: Checkpoints) -> None:
    """The first form had none."""
    before, file = checkpoints.current("query-1", "shape"), current_file(checkpoints, "query-1")
    assert set(rewritten(file, version=None)) == {"generation", "shape", "owners"}
    assert checkpoints.current("query-1", "shape") == before
    checkpoints.copy("query-1", "query-2")
    assert copied(checkpoints).committed() == {"lab.a": {"0": 8}}


def test_a_checkpoint_of_a_newer_program_is_refused(checkpoints: Checkpoints) -> None:
    """To begin anew would lose state, and to guess would lose tuples."""
    file = current_file(checkpoints, "query-1")
    assert json.loads(file.read_text())["version"] == 1
    kept = rewritten(file, version=2)
    told = "^the checkpoint of query-1 has form 2, and this program reads forms up to 1: use the "
    looks: list[Callable[[], object]] = [
        lambda: checkpoints.current("query-1", "shape"),
        lambda: checkpoints.previous("query-1"),
        lambda: checkpoints.copy("query-1", "query-2"),
        lambda: checkpoints.moved("query-1", START),
    ]
    for look in looks:
        with pytest.raises(InvalidInput, match=told):
            look()
    assert json.loads(file.read_text()) == kept
    assert checkpoints.previous("query-2") is None


def current_file(checkpoints: Checkpoints, run: str) -> Path:
    return checkpoints.home(run) / "current.json"

"""The files of the first snapshot; Kafka reads them in `tests/integration/test_users_outlive`."""

import stat
import struct
from pathlib import Path

import pytest

from deploy.broker_snapshot import complete_first_snapshot
from deploy.errors import DeployError

CONTROL, DATA = 0x20, 0


def _batch(offset: int, count: int, kind: int, body: bytes) -> bytes:
    """A record batch as far as it matters: 21 bytes up to the attributes, then these."""
    rest = b"\0" * 9 + struct.pack(">hi", kind, count - 1) + body
    return struct.pack(">qi", offset, len(rest)) + rest


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder as the storage tool leaves it."""
    (tmp_path / "__cluster_metadata-0").mkdir()
    _snapshot(tmp_path).write_bytes(
        _batch(0, 3, CONTROL, b"voters") + _batch(3, 1, CONTROL, b"end")
    )
    (tmp_path / "bootstrap.checkpoint").write_bytes(
        _batch(0, 1, CONTROL, b"head") + _batch(1, 7, DATA, b"users") + _batch(8, 1, CONTROL, b"z")
    )
    return tmp_path


def _snapshot(data: Path) -> Path:
    return data / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"


def test_the_first_records_come_before_the_end_and_only_once(data: Path) -> None:
    whole = (
        _batch(0, 3, CONTROL, b"voters")
        + _batch(3, 7, DATA, b"users")
        + _batch(10, 1, CONTROL, b"end")
    )
    for _ in range(2):
        complete_first_snapshot(data)
        assert _snapshot(data).read_bytes() == whole
    assert stat.S_IMODE(_snapshot(data).stat().st_mode) == 0o600


def test_where_kafka_has_made_a_later_one_nothing_is_done(data: Path) -> None:
    _snapshot(data).unlink()
    complete_first_snapshot(data)
    assert not _snapshot(data).exists()


@pytest.mark.parametrize("name", ["bootstrap.checkpoint", "snapshot"])
@pytest.mark.parametrize("left", [0, 5, 30, 45])
def test_a_damaged_file_is_told_and_left_as_it_is(data: Path, name: str, left: int) -> None:
    file = _snapshot(data) if name == "snapshot" else data / name
    file.write_bytes(file.read_bytes()[:left])
    before = _snapshot(data).read_bytes()
    with pytest.raises(DeployError, match=f"{file} is damaged"):
        complete_first_snapshot(data)
    assert _snapshot(data).read_bytes() == before

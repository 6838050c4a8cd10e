"""Private files and the lock."""

import socket
import stat
import threading
from pathlib import Path

import pytest

from catalog.private_file import write_private
from deploy import ports
from deploy.errors import DeployError
from deploy.files import file_lock, private_folder, secret_file
from deploy.ports import LOOPBACK, free_port, is_free, require_free


def test_a_private_file_replaces_an_open_one(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("old")
    file.chmod(0o644)
    write_private(file, "new")
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_that_was_open_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_secret_is_made_once(tmp_path: Path) -> None:
    first = secret_file(tmp_path / "s" / "key", 16).read_text()
    assert len(bytes.fromhex(first)) == 16
    assert secret_file(tmp_path / "s" / "key", 16).read_text() == first


def test_one_holds_the_lock_at_a_time(tmp_path: Path) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with file_lock(tmp_path / "lock"):
                inside += 1
                most = max(most, inside)
                threading.Event().wait(0.001)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_port_in_use_is_told() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(DeployError, match=f"port {port} for X is in use: .* with --x"):
            require_free(port, "X", "--x")
    assert is_free(port)
    require_free(free_port(), "X", "--x")


def test_a_free_port_is_none_that_was_given_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_CHOICE", range(20_000, 20_002))
    assert free_port(20_000) == 20_001
    with pytest.raises(DeployError, match="are in use"):
        free_port(20_000, 20_001)


def test_a_free_port_is_none_that_systems_hand_out() -> None:
    found = {free_port() for _ in range(20)}
    assert len(found) > 1
    assert all(1024 <= port < 32_768 and is_free(port) for port in found)


@pytest.mark.parametrize("below", [".", "state"])
def test_a_file_in_the_place_of_a_folder_is_told(below: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(DeployError, match="cannot be a folder: there is a file; name another one"):
        private_folder(file / below)
    assert file.read_text() == "mine"

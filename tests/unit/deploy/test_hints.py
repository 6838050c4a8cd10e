"""The commands that messages name: they do what the reader means, as they are."""

import shlex
from pathlib import Path

import pytest

from deploy.__main__ import main, parser
from deploy.environment import ROOT
from deploy.errors import DeployError
from deploy.hints import down_command, up_command
from deploy.processes import ManagedProcess


def test_the_usual_folder_is_not_named() -> None:
    assert down_command(ROOT / ".state") == "python3 -m deploy down"
    assert up_command(ROOT / ".state") == "python3 -m deploy up"


@pytest.mark.parametrize("name", ["here", "with  blanks", "it's $HOME", "-dash"])
def test_another_folder_and_settings_are_named_for_the_shell(tmp_path: Path, name: str) -> None:
    state, settings = tmp_path / name, tmp_path / f"{name}.toml"
    *_, command, option, folder = shlex.split(down_command(state))
    assert (command, option, folder) == ("down", "--state", str(state))
    options = parser().parse_args(shlex.split(up_command(state, settings))[3:])
    assert (options.command, options.state, options.settings) == ("up", state, settings)


def test_who_runs_already_says_how_to_stop_it(tmp_path: Path) -> None:
    process = ManagedProcess("child", tmp_path / "a  b")
    process.start(["sleep", "60"])
    try:
        with pytest.raises(DeployError) as told:
            process.require_stopped()
    finally:
        process.kill()
    assert f"`{down_command(tmp_path / 'a  b')}`" in str(told.value)


def test_an_error_keeps_the_blanks_of_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: list[str]) -> None:
        raise DeployError(f"first line\nstop it with `{down_command(tmp_path / 'a  b')}`")

    monkeypatch.setattr("deploy.environment.enter", refuse)
    assert main(["down"]) == 1
    told = capsys.readouterr().err
    assert told == f"error: first line stop it with `{down_command(tmp_path / 'a  b')}`\n"


@pytest.mark.parametrize(
    ("option", "text", "told"),
    [
        ("--port", "80000000", "'80000000' is not a whole number from 1 to 65535"),
        ("--secadmin-port", "0", "from 1 to 65535"),
        ("--engines", "0", "'0' is not a whole number from 1"),
        ("--engines", "three", "'three' is not a whole number from 1"),
        ("--broker-heap", "-1", "'-1' is not a whole number from 1"),
        ("--broker-heap", "9" * 5000, "is not a whole number from 1"),
    ],
)
def test_a_number_that_cannot_be_used_is_told(
    capsys: pytest.CaptureFixture[str], option: str, text: str, told: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["up", f"{option}={text}"])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err

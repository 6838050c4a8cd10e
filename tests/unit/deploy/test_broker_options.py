"""Options for Java that the environment names for the embedded broker."""

from pathlib import Path

import pytest

from deploy.broker import BrokerSettings, EmbeddedBroker
from deploy.errors import DeployError


@pytest.mark.parametrize(
    ("said", "given"),
    [("", []), ("-XX:TieredStopAtLevel=1 '-Da=b c'", ["-XX:TieredStopAtLevel=1", "-Da=b c"])],
)
def test_java_gets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, given: list[str]
) -> None:
    monkeypatch.setenv("SECURE_STREAMS_BROKER_OPTS", said)
    # It keeps what it is given, and does nothing.
    java, kept = tmp_path / "java", tmp_path / "kept"
    java.write_text(f'#!/bin/sh\ncp "${{1#@}}" {kept}\nexit 1\n')
    java.chmod(0o700)
    with pytest.raises(DeployError):
        EmbeddedBroker(BrokerSettings(tmp_path / "state", 0, java, tmp_path)).start()
    options = kept.read_text().splitlines()
    log = next(n for n, option in enumerate(options) if "secure.streams.log" in option)
    assert [each.strip('"') for each in options[log + 1 : options.index('"-cp"')]] == given

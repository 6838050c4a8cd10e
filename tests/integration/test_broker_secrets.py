"""Where the embedded broker's secrets are, and where they are not."""

import contextlib
import stat
import threading
from pathlib import Path

from deploy.broker import BrokerSettings, EmbeddedBroker
from deploy.runtime import Runtime
from tests.integration.brokers import embedded_only


@embedded_only
def test_what_holds_secrets_is_private(broker: EmbeddedBroker) -> None:
    state = broker.settings.state
    for folder in ("", "secrets", "certificates", "broker", "logs", "run"):
        assert stat.S_IMODE((state / folder).stat().st_mode) == 0o700, folder
    secret = [
        state / "broker" / "server.properties",
        *(state / "secrets").iterdir(),
        *(state / "certificates").iterdir(),
    ]
    assert {stat.S_IMODE(file.stat().st_mode) for file in secret} == {0o600}


@embedded_only
def test_the_logs_hold_no_password(broker: EmbeddedBroker) -> None:
    passwords = [file.read_text() for file in (broker.settings.state / "secrets").iterdir()]
    for log in (broker.settings.state / "logs").iterdir():
        text = log.read_text()
        assert not any(password in text for password in passwords), log


def test_no_secret_is_ever_an_argument_or_a_variable(runtime: Runtime, tmp_path: Path) -> None:
    """Watches every process of the machine while storage is formatted and the broker starts."""
    own = EmbeddedBroker(BrokerSettings(tmp_path, 0, runtime.java, runtime.jars.broker))
    users = (own.secadmin, own.ingest, own.query, own._own)
    secrets = [user.password().encode() for user in users]
    watch = _ProcessWatch()
    with watch, own:
        pass
    assert watch.seen("kafka.Kafka")
    assert watch.seen("format.args")
    for secret in secrets:
        assert not watch.seen(secret.decode())
    assert not list(tmp_path.rglob("*.args"))


class _ProcessWatch:
    """Collects what /proc shows of our descendants' arguments and variables."""

    def __init__(self) -> None:
        self._texts: set[bytes] = set()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def seen(self, text: str) -> bool:
        return any(text.encode() in known for known in self._texts)

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            for process in Path("/proc").glob("[0-9]*"):
                for what in ("cmdline", "environ"):
                    with contextlib.suppress(OSError):
                        self._texts.add((process / what).read_bytes())

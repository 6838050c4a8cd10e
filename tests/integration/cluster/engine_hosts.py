"""Two machines for the engines of a platform: where one is lost, the engine starts on the other."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from catalog.engine_rights import QUERY
from catalog.engines import INGEST
from deploy.environment import ROOT
from deploy.files import private_folder
from deploy.settings import merged, write_settings
from deploy.stack import Stack
from tests.integration.engine_host import Host

# Their settings differ by the address alone.
ADDRESSES = ("127.0.0.1", "127.0.0.2")


@dataclass
class EngineHosts:
    """Which machine each engine works on. At first it is the platform's own process."""

    stack: Stack
    folder: Path
    patience_s: float
    _at_work: dict[str, Host] = field(default_factory=dict)
    _moves: int = 0

    def take_over(self, engine: str, begins: Callable[[], object] = lambda: None) -> None:
        """Kill an engine that another host waits for. It works there, and no more on the first.

        `begins` is called when the other host waits.
        """
        self._moves += 1
        folder = private_folder(self.folder / f"{engine}-{self._moves}")
        file = self._settings(engine, ADDRESSES[self._moves % len(ADDRESSES)], folder)
        other = Host(partial(self._launch, engine, file))
        other.start()
        assert other.refused.wait(self.patience_s), f"{engine} is at work"
        begins()
        before, self._at_work[engine] = self._at_work.get(engine), other
        if before is None:
            self.stack.engines[engine].kill_all()
        else:
            before.close()
            before.kill()

    def kill(self, engine: str) -> None:
        """Kill an engine that was taken over. It starts again on its host."""
        self._at_work[engine].kill()

    def close(self) -> None:
        """End what works on these hosts."""
        for each in self._at_work.values():
            each.close()
            each.kill()
        for each in self._at_work.values():
            each.join()

    def _settings(self, engine: str, address: str, folder: Path) -> Path:
        account = INGEST if engine == INGEST else QUERY
        table = tomllib.loads((self.stack.state / f"settings-{account}.toml").read_text())
        own = merged(table, {"secfilter": {"cluster": {"host": address}}})
        return write_settings(own, folder / "settings.toml")

    def _launch(self, engine: str, settings: Path) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        java = self.stack.runtime.java.resolve().parents[1]
        command = ["-m", "secfilter", "--settings", str(settings), "--engine", engine]
        with (settings.parent / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *command],
                cwd=settings.parent,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path, "JAVA_HOME": str(java)},
                start_new_session=True,
            )

"""Somebody who works with the command `secadmin`, in a profile of their own."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from deploy.errors import DeployError
from deploy.stack import Stack

COMMAND = Path(sys.executable).parent / "secadmin"


@dataclass(frozen=True)
class Person:
    """A user at a terminal. `folder` holds the profile and the files that commands write."""

    name: str
    folder: Path
    url: str
    ca: Path
    password: str = field(default_factory=lambda: secrets.token_urlsafe(18), repr=False)

    @classmethod
    def at(cls, stack: Stack, name: str) -> Self:
        """A person at the running platform."""
        folder = stack.state / "people" / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(name, folder, stack.secadmin_url, stack.settings.secadmin.ca_file)

    def run(self, *arguments: str, text: str = "") -> str:
        """Run `secadmin` with these arguments, `text` on its input; returns what it prints.

        Raises DeployError with the command's own error line.
        """
        done = self.attempt(*arguments, text=text)
        if done.returncode:
            raise DeployError(
                f"{self.name}: secadmin {' '.join(arguments)}: {done.stderr.strip()[-500:]}"
            )
        return done.stdout

    def attempt(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run `secadmin` and return how it ended."""
        environment = {
            **os.environ,
            "SECADMIN_URL": self.url,
            "SECADMIN_CA": str(self.ca),
            "SECADMIN_CONFIG": str(self.folder / "profile"),
        }
        return subprocess.run(
            [str(COMMAND), *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )

    def ask(self, *arguments: str, text: str = "") -> Any:
        """Run `secadmin --json` and return the parsed answer."""
        return json.loads(self.run("--json", *arguments, text=text))

    def log_in(self, one_time: str) -> None:
        """Log in with the one-time password, set an own one, and log in anew with it."""
        self.run("login", self.name, "--password-stdin", text=one_time)
        self.run("passwd", "--password-stdin", text=f"{one_time}\n{self.password}\n")
        self.run("login", self.name, "--password-stdin", text=self.password)

    def subscribe(self, output: str, *options: str) -> Path:
        """Subscribe to an output; returns the folder for Kafka clients."""
        folder = self.folder / output
        self.run("subscribe", output, "--dir", str(folder), "--no-wait", *options)
        return folder

    def catalog(self) -> list[str]:
        """The names of all objects that this person may view, sorted."""
        return sorted(row["name"] for row in self.ask("catalog"))

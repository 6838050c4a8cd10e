"""The login of one user of this machine: a folder with a session and a CA certificate."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from catalog.errors import InvalidInput
from catalog.private_file import write_private
from secadmin.cli.private_files import private_folder

_SESSION, _CA = "session.json", "ca.pem"


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A login. The token is sent only to `server`."""

    server: str
    user: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Profile:
    """A folder that keeps at most one session."""

    folder: Path

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Profile:
        """The folder SECADMIN_CONFIG, or `secadmin` in XDG_CONFIG_HOME or ~/.config."""
        if own := environment.get("SECADMIN_CONFIG"):
            return cls(Path(own).expanduser())
        # The XDG specification: a relative path there is to be ignored.
        base = Path(environment.get("XDG_CONFIG_HOME") or "")
        return cls((base if base.is_absolute() else Path.home() / ".config") / "secadmin")

    def load(self) -> SavedSession | None:
        """The saved session, or None. Raises InvalidInput if the file is not a session."""
        path = self.folder / _SESSION
        try:
            return SavedSession(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            raise InvalidInput(f"{path} is not a saved session; delete it and log in") from None

    def save(self, session: SavedSession, ca_pem: str | None) -> None:
        """Keep the session, and the CA that vouches for its server (None: the system's)."""
        private_folder(self.folder)
        # The CA first: a session must never be paired with another server's CA.
        (self.folder / _SESSION).unlink(missing_ok=True)
        if ca_pem is None:
            (self.folder / _CA).unlink(missing_ok=True)
        else:
            write_private(self.folder / _CA, ca_pem)
        write_private(self.folder / _SESSION, json.dumps(asdict(session)))

    def forget(self) -> None:
        """Delete the session. The CA stays for the next login."""
        (self.folder / _SESSION).unlink(missing_ok=True)

    @property
    def ca_file(self) -> Path | None:
        """The CA certificate of the last login, if it needed one."""
        path = self.folder / _CA
        return path if path.exists() else None


def environment_profile() -> Profile:
    """The profile that this process's environment names."""
    return Profile.of(os.environ)

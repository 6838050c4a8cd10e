"""Names and password files of the platform's own Kafka principals."""

from dataclasses import dataclass
from pathlib import Path

from deploy.files import secret_file


@dataclass(frozen=True)
class Credentials:
    """A Kafka principal of the platform.

    Attributes:
        username: SCRAM user name.
        password_file: File with the password alone, mode 0600.
    """

    username: str
    password_file: Path

    def password(self) -> str:
        """Read the password; it is never kept in the object, so that it is never printed."""
        return self.password_file.read_text().strip()


def ensure_credentials(folder: Path, username: str) -> Credentials:
    """Give `username`'s credentials in `folder`, with a random password made on first use."""
    return Credentials(username, secret_file(folder / f"{username}.password"))

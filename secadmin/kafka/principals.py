"""Principals: the SCRAM users of the cluster, one for each access.

If a user is removed and the cluster starts again, the cluster may lose all users, unless a snapshot
of its metadata has some (`deploy.broker_snapshot` explains it). Nobody can ask the cluster whether
it has such a snapshot. So a user is removed only if the settings say that this is safe. Otherwise
the user is closed: it gets a password that nobody knows.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)

from catalog.errors import Unavailable
from catalog.settings import KafkaAccount
from secadmin.kafka.connect import (
    REQUEST_TIMEOUT_S,
    AdminClients,
    failure_of,
    finished,
)

KNOWN_TIMEOUT_S = 5.0
"""The longest wait until the cluster knows a new principal, in seconds."""

_SECRET_BYTES = 32
_NAME_BYTES = 12
_RANDOM = re.compile(f"[0-9a-f]{{{2 * _NAME_BYTES}}}")
_POLL_S = 0.01
# Kafka's minimum. More iterations would only slow logins down: a secret has 256 random bits.
_SCRAM = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
# One iteration more. Kafka shows the iterations of each user, so a closed user can be recognized.
_CLOSED = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4097)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Name and password of a client. The password is shown once, and never in a repr."""

    username: str
    password: str = field(repr=False)


def new_principal_name(kind: str) -> str:
    """A new name: `kind`, a hyphen and 96 random bits in hexadecimal. It has no dot."""
    return f"{kind}-{secrets.token_hex(_NAME_BYTES)}"


def is_new_principal_name(name: str, kinds: Collection[str]) -> bool:
    """Say whether `new_principal_name` may have made the name, with one of the kinds."""
    kind, _, random = name.partition("-")
    return kind in kinds and _RANDOM.fullmatch(random) is not None


class Principals:
    """The cluster's SCRAM-SHA-512 users, through long-lived administrative clients."""

    def __init__(self, admins: AdminClients, *, removes: bool = False) -> None:
        """`removes` says whether it is safe to remove users from the cluster."""
        self._admins = admins
        self._removes = removes

    def create(self, name: str) -> Credentials:
        """Create the user with a random password, and wait until the cluster knows the user.

        Raises:
            Unavailable: Kafka cannot be reached.
        """
        credentials = Credentials(name, secrets.token_urlsafe(_SECRET_BYTES))
        self._upsert(credentials, _SCRAM)
        return credentials

    def delete(self, name: str) -> None:
        """Remove or close the user, so that nobody can log in as the user. Raises Unavailable.

        Open connections of the user stay open. So its ACLs must be deleted first.
        """
        if not self._removes:
            self._upsert(Credentials(name, secrets.token_urlsafe(_SECRET_BYTES)), _CLOSED)
            return
        deletion = UserScramCredentialDeletion(name, ScramMechanism.SCRAM_SHA_512)
        self._alter(deletion, f"delete the principal {name}", KafkaError.RESOURCE_NOT_FOUND)

    def list_names(self) -> frozenset[str]:
        """The names of all SCRAM users that may need a deletion. Raises Unavailable.

        Closed users are left out, unless users can be removed.
        """
        described = self._describe_all()
        if self._removes:
            return frozenset(described)
        return frozenset(name for name, user in described.items() if not _is_closed(user))

    def count_closed(self) -> int:
        """The number of closed users in the cluster. Raises Unavailable."""
        return sum(map(_is_closed, self._describe_all().values()))

    def ensure(self, account: KafkaAccount) -> None:
        """Give an account of the platform the password from its file. Raises Unavailable.

        Kafka cannot show a password, so each call sets it again. That disturbs no connection.
        """
        self._upsert(Credentials(account.username, account.password()), _SCRAM)

    def _describe_all(self) -> Mapping[str, UserScramCredentialsDescription]:
        # For all users together, the client gives one future: a dictionary by name.
        reads = self._admins.reads
        future: Any = reads.describe_user_scram_credentials(request_timeout=REQUEST_TIMEOUT_S)
        found: Mapping[str, UserScramCredentialsDescription] = finished(
            future, "list the principals"
        )
        return found

    def _upsert(self, credentials: Credentials, kind: ScramCredentialInfo) -> None:
        name = credentials.username
        wanted = UserScramCredentialUpsertion(name, kind, credentials.password.encode())
        self._alter(wanted, f"set the password of the principal {name}")
        self._wait_known(name, kind)

    def _alter(
        self, alteration: UserScramCredentialAlteration, purpose: str, *harmless: int
    ) -> None:
        futures = self._admins.changes.alter_user_scram_credentials(
            [alteration], request_timeout=REQUEST_TIMEOUT_S
        )
        for future in futures.values():
            if failure := failure_of(future, purpose, *harmless):
                raise failure

    def _wait_known(self, name: str, kind: ScramCredentialInfo) -> None:
        deadline = time.monotonic() + KNOWN_TIMEOUT_S
        while not self._is_known(name, kind):
            if time.monotonic() > deadline:
                raise Unavailable(f"Kafka changed the principal {name} but does not know it yet")
            time.sleep(_POLL_S)

    def _is_known(self, name: str, kind: ScramCredentialInfo) -> bool:
        futures: Any = self._admins.reads.describe_user_scram_credentials(
            [name], request_timeout=REQUEST_TIMEOUT_S
        )
        absent = KafkaError.RESOURCE_NOT_FOUND
        if failure := failure_of(futures[name], f"look up the principal {name}", absent):
            raise failure
        if futures[name].exception() is not None:
            return False
        return kind.iterations in _iterations(futures[name].result())


def _is_closed(user: UserScramCredentialsDescription) -> bool:
    return _CLOSED.iterations in _iterations(user)


def _iterations(user: UserScramCredentialsDescription) -> set[int]:
    """The iterations of the platform's mechanism. A user may have other mechanisms too."""
    ours = _SCRAM.mechanism
    return {info.iterations for info in user.scram_credential_infos if info.mechanism == ours}

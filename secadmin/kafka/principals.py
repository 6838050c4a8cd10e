"""Principals: the SCRAM users of the cluster, one for each access that is given out.

A cluster that replays the removal of a user when it starts may lose all users, unless a snapshot of
its metadata has some (`deploy.broker_snapshot` says why). Nobody can ask a cluster whether that is
so. So a user is removed only where the settings say that the cluster bears it; elsewhere it is
closed: its password becomes one that nobody knows.
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
"""Longest wait for a created principal to be known to the cluster, in seconds."""

_SECRET_BYTES = 32
_NAME_BYTES = 12
_RANDOM = re.compile(f"[0-9a-f]{{{2 * _NAME_BYTES}}}")
_POLL_S = 0.01
# What Kafka demands at least. More would only slow logins down: the secrets are random, 256 bits.
_SCRAM = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
# One iteration more, which Kafka tells of each user: so a closed one is known as such.
_CLOSED = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4097)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client logs in with. The password is told once and never shown in a repr."""

    username: str
    password: str = field(repr=False)


def new_principal_name(kind: str) -> str:
    """A name that was never given out: `kind`, a hyphen and 96 random bits; holds no dot."""
    return f"{kind}-{secrets.token_hex(_NAME_BYTES)}"


def is_new_principal_name(name: str, kinds: Collection[str]) -> bool:
    """Whether `new_principal_name` may have made the name, of one of the kinds."""
    kind, _, random = name.partition("-")
    return kind in kinds and _RANDOM.fullmatch(random) is not None


class Principals:
    """The cluster's SCRAM-SHA-512 users, through long-lived administrative clients."""

    def __init__(self, admins: AdminClients, *, removes: bool = False) -> None:
        """`removes` says whether the cluster bears that users are removed."""
        self._admins = admins
        self._removes = removes

    def create(self, name: str) -> Credentials:
        """Create the user with a random password; returns once the cluster knows it.

        Raises:
            Unavailable: Kafka cannot be reached.
        """
        credentials = Credentials(name, secrets.token_urlsafe(_SECRET_BYTES))
        self._upsert(credentials, _SCRAM)
        return credentials

    def delete(self, name: str) -> None:
        """Let nobody log in as the user any more: remove it, or close it. Raises Unavailable.

        Open connections of the user live on: its ACLs must be deleted first.
        """
        if not self._removes:
            self._upsert(Credentials(name, secrets.token_urlsafe(_SECRET_BYTES)), _CLOSED)
            return
        deletion = UserScramCredentialDeletion(name, ScramMechanism.SCRAM_SHA_512)
        self._alter(deletion, f"delete the principal {name}", KafkaError.RESOURCE_NOT_FOUND)

    def list_names(self) -> frozenset[str]:
        """The names of all SCRAM users that are not done with. Raises Unavailable.

        A closed one is done with, unless it can be removed.
        """
        described = self._describe_all()
        if self._removes:
            return frozenset(described)
        return frozenset(name for name, user in described.items() if not _is_closed(user))

    def count_closed(self) -> int:
        """How many closed users the cluster holds. Raises Unavailable."""
        return sum(map(_is_closed, self._describe_all().values()))

    def ensure(self, account: KafkaAccount) -> None:
        """Make an account of the platform exist with the password in its file. Raises Unavailable.

        Kafka cannot tell a password, so it is set again at each call; that disturbs nobody.
        """
        self._upsert(Credentials(account.username, account.password()), _SCRAM)

    def _describe_all(self) -> Mapping[str, UserScramCredentialsDescription]:
        # Asked for all users, the client gives one future of a dictionary by name.
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
    """Those of the mechanism that the platform uses; a cluster may have others beside it."""
    ours = _SCRAM.mechanism
    return {info.iterations for info in user.scram_credential_infos if info.mechanism == ours}

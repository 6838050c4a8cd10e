"""The settings of a deployment: one TOML file (mode 0600) that `deploy` or an operator writes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catalog.engines import INGEST
from catalog.errors import InvalidInput
from catalog.form_version import require_readable
from catalog.limits import Limits, read_limits
from catalog.spaces import Spaces
from catalog.user_limits import UserLimits

SETTINGS_FORM = 1
"""The version of the form of the settings, in their entry `version`."""
FORMER_ACCOUNT = (
    "[kafka.secfilter] is no more: write [kafka.ingest] and [kafka.query] in its place, "
    "each with a username and a password_file of its own"
)
"""What is said of settings in which all engines have one Kafka account."""
IDLE_CLASS_S = 3600


@dataclass(frozen=True, slots=True)
class KafkaAccount:
    """A Kafka user and the file (0600) that holds its password."""

    username: str
    password_file: Path

    def password(self) -> str:
        """Read the password from its file."""
        return self.password_file.read_text().strip()


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The cluster: SASL_SSL with SCRAM-SHA-512, its CA, and the platform's four accounts.

    Attributes:
        bootstrap: `host:port`, with commas between several, for the platform itself.
        ingest: That of the engine which ingests.
        query: That of all engines which run queries, the one for probation among them.
        audit: Does nothing but write the audit log's heads to a topic.
        clients_bootstrap: The same as `bootstrap` for users, where theirs is another listener.
        removes_users: Whether the cluster bears that Kafka users are removed. One whose nodes have
            no snapshot of the metadata with a user in it may lose all when it starts again.
    """

    bootstrap: str
    ca_file: Path
    secadmin: KafkaAccount
    ingest: KafkaAccount
    query: KafkaAccount
    audit: KafkaAccount
    replication: int = 1
    clients_bootstrap: str | None = None
    removes_users: bool = False

    @property
    def users_bootstrap(self) -> str:
        """The address to which users connect."""
        return self.clients_bootstrap or self.bootstrap

    def account_of(self, engine: str) -> KafkaAccount:
        """The account of the engine of that name (`catalog.engines`)."""
        return self.ingest if engine == INGEST else self.query

    def client_config(self, account: KafkaAccount) -> dict[str, Any]:
        """The librdkafka settings with which that account connects."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": account.username,
            "sasl.password": account.password(),
            "ssl.ca.location": str(self.ca_file),
        }


@dataclass(frozen=True, slots=True)
class SecAdminSettings:
    """The control service: address, certificate, first administrator's password file, audit log.

    `audit_key_file` holds the key that authenticates the audit log; `audit_heads_file` is where
    its heads are kept beside Kafka. A delivery class without a subscription is closed after
    `idle_class_s` seconds.
    """

    host: str
    port: int
    certificate_file: Path
    key_file: Path
    ca_file: Path
    first_password_file: Path
    audit_key_file: Path
    audit_heads_file: Path
    idle_class_s: int = IDLE_CLASS_S


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """What an engine needs beside its master if this is a Spark cluster (docs/cluster.md).

    Attributes:
        host: The name or address of the engine's own machine, by which workers reach it.
        secret_file: The secret (0600) that all machines of a standalone cluster share.
        python: The workers' Python, if it has another path than that of the engine.
    """

    host: str
    secret_file: Path | None = None
    python: str | None = None


@dataclass(frozen=True, slots=True)
class SecFilterSettings:
    """SecFilter: Spark master, connector jars, checkpoints (mode 0700), key of the result ids.

    `spaces` has the engines for queries, and which roles have one of them for their own. `ingest`
    and `probation` do not count. `cluster` is given if the master is a Spark cluster. `spare` says
    whether the supervisor keeps a spare engine (`secfilter.spare`).
    """

    master: str
    jars: Path
    checkpoints: Path
    id_key_file: Path
    options: dict[str, str] = field(default_factory=dict)
    spaces: Spaces = field(default_factory=Spaces)
    cluster: ClusterSettings | None = None
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one deployment.

    `catalog_url` is the database URL of SecAdmin, and of the engines that have none of their own in
    `engine_catalogs` (`ingest` or `query` -> URL; both or neither).
    """

    catalog_url: str
    kafka: KafkaSettings
    secadmin: SecAdminSettings
    secfilter: SecFilterSettings
    limits: Limits = field(default_factory=Limits)
    user_limits: UserLimits = field(default_factory=UserLimits)
    engine_catalogs: Mapping[str, str] = field(default_factory=dict)

    def catalog_url_of(self, engine: str) -> str:
        """The database URL of the engine of that name (`catalog.engines`)."""
        account = "ingest" if engine == INGEST else "query"
        return self.engine_catalogs.get(account, self.catalog_url)

    @classmethod
    def load(cls, path: Path) -> Settings:
        """Read the file.

        Raises InvalidInput with the name of a missing or unusable entry, or for a newer form.
        """
        try:
            data = tomllib.loads(path.read_text())
        except OSError as error:
            raise InvalidInput(f"cannot read the settings {path}: {error.strerror}") from None
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(f"the settings {path} are not TOML: {error}") from None
        require_readable(f"the file {path}", data, SETTINGS_FORM)
        if has_former_account(data):
            raise InvalidInput(f"the settings {path}: {FORMER_ACCOUNT}")
        try:
            limits = dict(data.get("limits", {}))
            of_user = dict(limits.pop("user", {}))
            return cls(
                catalog_url=data["catalog"]["url"],
                kafka=_kafka(data["kafka"]),
                secadmin=_secadmin(data["secadmin"]),
                secfilter=_secfilter(data["secfilter"]),
                limits=read_limits(Limits, limits, "limits"),
                user_limits=read_limits(UserLimits, of_user, "limits.user"),
                engine_catalogs=_engine_catalogs(data["catalog"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"the settings {path} lack or misstate {error}") from None


def has_former_account(data: Mapping[str, Any]) -> bool:
    """Whether these settings name one Kafka account for all engines, as they once did."""
    kafka = data.get("kafka")
    return isinstance(kafka, dict) and "secfilter" in kafka


def _kafka(data: dict[str, Any]) -> KafkaSettings:
    accounts = {name: _account(data[name]) for name in ("secadmin", "ingest", "query", "audit")}
    if len({account.username for account in accounts.values()}) < len(accounts):
        # What one of them may do, the other could do as well.
        raise ValueError(f"kafka: {', '.join(accounts)} must be different users")
    return KafkaSettings(
        bootstrap=data["bootstrap"],
        ca_file=Path(data["ca_file"]),
        **accounts,
        replication=int(data.get("replication", 1)),
        clients_bootstrap=data.get("clients_bootstrap"),
        removes_users=_switch(data, "removes_users"),
    )


def _engine_catalogs(data: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {
        name: str(data[name]["url"]) for name in ("ingest", "query") if name in data
    }
    if len(found) == 1:
        raise ValueError("catalog: it must have both [catalog.ingest] and [catalog.query]")
    return found


def _switch(data: dict[str, Any], name: str) -> bool:
    """A setting that is true or false, and false if it is absent. A text is not accepted."""
    value = data.get(name, False)
    if not isinstance(value, bool):
        raise ValueError(f"{name}: it must be true or false")
    return value


def _number(data: dict[str, Any], name: str, usual: int) -> int:
    """A setting that is a number from 1. It is `usual` if it is absent."""
    value = data.get(name, usual)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}: it must be a number from 1")
    return value


def _account(data: dict[str, Any]) -> KafkaAccount:
    return KafkaAccount(data["username"], Path(data["password_file"]))


def _secadmin(data: dict[str, Any]) -> SecAdminSettings:
    return SecAdminSettings(
        host=data["host"],
        port=int(data["port"]),
        certificate_file=Path(data["certificate_file"]),
        key_file=Path(data["key_file"]),
        ca_file=Path(data["ca_file"]),
        first_password_file=Path(data["first_password_file"]),
        audit_key_file=Path(data["audit_key_file"]),
        audit_heads_file=Path(data["audit_heads_file"]),
        idle_class_s=_number(data, "idle_class_s", IDLE_CLASS_S),
    )


def _secfilter(data: dict[str, Any]) -> SecFilterSettings:
    of_roles = {str(role): str(engine) for role, engine in dict(data.get("spaces", {})).items()}
    return SecFilterSettings(
        master=data["master"],
        jars=Path(data["jars"]),
        checkpoints=Path(data["checkpoints"]),
        id_key_file=Path(data["id_key_file"]),
        options=dict(data.get("options", {})),
        spaces=Spaces(_number(data, "engines", 1), of_roles, _level_engines(data)),
        cluster=_cluster(dict(data["cluster"])) if "cluster" in data else None,
        spare=_switch(data, "spare"),
    )


def _level_engines(data: dict[str, Any]) -> int:
    return _number(data, "level_engines", 1) if data.get("level_engines", 0) != 0 else 0


def _cluster(data: dict[str, Any]) -> ClusterSettings:
    secret = data.pop("secret_file", None)
    found = ClusterSettings(
        host=str(data.pop("host")),
        secret_file=None if secret is None else Path(secret),
        python=data.pop("python", None),
    )
    if data:
        raise ValueError(f"secfilter.cluster: it has no {min(data)}")
    return found

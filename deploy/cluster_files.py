"""All files of a platform on several machines: certificates, passwords, and settings of each part.

`python3 -m deploy cluster` writes them once, into a folder for each part. A part gets its own
folder, as `/etc/secure-streams`, and no other one: so it has the secrets that it needs and no more.
docs/cluster.md says where they go.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from catalog.engine_rights import QUERY as QUERY_ROLE
from catalog.engines import INGEST as INGEST_ROLE
from catalog.private_file import write_private
from catalog.settings import SETTINGS_FORM
from deploy.broker_cluster import MOST_REPLICAS, Node, NodeRole, cluster_properties
from deploy.broker_format import argument_file, format_arguments, new_cluster_id
from deploy.broker_memory import DEFAULT_HEAP_MB, RequestMemory
from deploy.broker_properties import (
    BROKER_USER,
    INGEST_USER,
    QUERY_USER,
    SECADMIN_USER,
    NodeFiles,
    Ports,
    render,
)
from deploy.certificates import issue_certificates
from deploy.credentials import Credentials, ensure_credentials
from deploy.errors import DeployError
from deploy.files import private_folder, secret_file
from deploy.settings import AUDIT_USER, SPARK_MASTER, Table, engine_settings, to_toml

THERE = PurePosixPath("/etc/secure-streams")
"""Where each part finds its folder."""
DATA = PurePosixPath("/var/lib/secure-streams")
"""Where each part of the platform keeps what it writes."""
KAFKA_DATA = PurePosixPath("/var/lib/kafka/data")
"""Where Kafka does: its image gives this folder, and a volume there, to Kafka's user."""
JARS = PurePosixPath("/opt/secure-streams/jars")
KAFKA_JARS = "/opt/kafka/libs/*"
PORTS = Ports(users=9093, platform=9094, controller=9095)
SECADMIN_PORT, POSTGRESQL_PORT = 8443, 5432
# A controller keeps what there is in the cluster, and no records.
CONTROLLER_HEAP_MB = 512
# The numbers of controllers are behind those of brokers, of which there may be more one day.
_FIRST_CONTROLLER = 1001
REPLICATOR = "replicator"
_PASSWORD_BYTES = 24


@dataclass(frozen=True)
class Hosts:
    """By which names the parts reach each other; certificates have them.

    `kafka` are Kafka's brokers, and `controllers` its controllers. `address` is the one name of all
    SecAdmins, which people use.
    """

    kafka: tuple[str, ...] = ("kafka-1", "kafka-2", "kafka-3")
    controllers: tuple[str, ...] = ("controller-1", "controller-2", "controller-3")
    postgresql: tuple[str, ...] = ("postgresql-1", "postgresql-2")
    secadmin: tuple[str, ...] = ("secadmin-1", "secadmin-2")
    address: str = "secadmin"

    def __post_init__(self) -> None:
        """Raise DeployError where a name is given twice, or controllers are an even number."""
        every = [*self.kafka, *self.controllers, *self.postgresql, *self.secadmin]
        if len(set(every)) < len(every):
            raise DeployError("each host needs a name of its own")
        if len(self.controllers) % 2 == 0:
            raise DeployError("Kafka needs an odd number of controllers: they decide by majority")


def write_cluster(folder: Path, hosts: Hosts, engines: int = 1) -> None:
    """Write the files of all parts into folders below `folder`.

    Raises:
        DeployError: The folder has something already: the keys in it may be in use.
    """
    if folder.exists() and any(folder.iterdir()):
        raise DeployError(f"{folder} is not empty, and the keys in it may be in use: name another")
    private_folder(folder)
    servers: dict[str, Sequence[str]] = {
        name: (name,) for name in (*hosts.kafka, *hosts.controllers, *hosts.postgresql)
    }
    servers |= {name: (name, hosts.address) for name in hosts.secadmin}
    made = _Made(folder, hosts, engines)
    issue_certificates(made.authority, servers)
    made.kafka()
    made.postgresql()
    made.secadmins()
    made.engines()


class _Made:
    """Writes the folders of the parts, one kind after the other."""

    def __init__(self, folder: Path, hosts: Hosts, engines: int) -> None:
        self.authority = private_folder(folder / "authority")
        self._folder, self._hosts, self._engines = folder, hosts, engines
        users = (BROKER_USER, SECADMIN_USER, INGEST_USER, QUERY_USER, AUDIT_USER)
        own = private_folder(folder / "authority" / "passwords")
        self._users = {user: ensure_credentials(own, user) for user in users}
        roles = ("postgres", REPLICATOR, "secadmin", INGEST_ROLE, QUERY_ROLE)
        self._roles = {role: secrets.token_hex(_PASSWORD_BYTES) for role in roles}

    def kafka(self) -> None:
        """Each node's settings, its heap, and the arguments that prepare its data folder."""
        cluster = new_cluster_id()
        memory = RequestMemory(DEFAULT_HEAP_MB)
        nodes = self._nodes()
        # A folder of its own: a volume may have others at its top.
        files = NodeFiles(
            Path(KAFKA_DATA / "kafka"), Path(THERE / "key-store.pem"), Path(THERE / "ca.pem")
        )
        users = [self._users[user] for user in (BROKER_USER, SECADMIN_USER)]
        for node in nodes:
            there = self._part(node.host)
            self._copy(f"{node.host}.store.pem", there / "key-store.pem")
            password = self._users[BROKER_USER].password()
            properties = cluster_properties(node, nodes, files, password, memory)
            write_private(there / "server.properties", render(properties))
            # Controllers keep the users. A broker gets them from there.
            controls = NodeRole.CONTROLLER in node.roles
            first = users if controls else []
            arguments = format_arguments(THERE / "server.properties", first, cluster)
            whole = ["-cp", KAFKA_JARS, *arguments, "--ignore-formatted"]
            write_private(there / "format.args", argument_file(whole))
            heap = CONTROLLER_HEAP_MB if controls else DEFAULT_HEAP_MB
            write_private(there / "heap.args", argument_file([f"-Xmx{heap}m"]))

    def _nodes(self) -> list[Node]:
        """Kafka's nodes: brokers, and controllers in processes of their own."""
        parts = (
            (NodeRole.BROKER, self._hosts.kafka, 1),
            (NodeRole.CONTROLLER, self._hosts.controllers, _FIRST_CONTROLLER),
        )
        return [
            Node(number, host, PORTS, roles=(role,))
            for role, hosts, first in parts
            for number, host in enumerate(hosts, first)
        ]

    def postgresql(self) -> None:
        """Each server's certificate, and the roles that the first start makes."""
        for host in self._hosts.postgresql:
            there = self._part(host)
            self._copy(f"{host}.pem", there / "server.pem")
            self._copy(f"{host}.key", there / "server.key")
            write_private(there / "superuser.password", self._roles["postgres"])
            write_private(there / "replicator.password", self._roles[REPLICATOR])
            write_private(there / "roles.sql", self._statements())

    def secadmins(self) -> None:
        """SecAdmin's folders: all have the same keys, and each its certificate."""
        audit = secret_file(self.authority / "audit.key")
        for host in self._hosts.secadmin:
            there = self._part(host)
            self._copy(f"{host}.pem", there / "certificate.pem")
            self._copy(f"{host}.key", there / "key.pem")
            for user in (SECADMIN_USER, INGEST_USER, QUERY_USER, AUDIT_USER):
                _copy_private(self._users[user].password_file, there / f"{user}.password")
            _copy_private(audit, there / "audit.key")
            write_private(there / "settings.toml", to_toml(self._settings()))

    def engines(self) -> None:
        """The folders of the engine that ingests, and of all that run queries."""
        key = secret_file(self.authority / "result-id.key")
        for account, user in ((INGEST_ROLE, INGEST_USER), (QUERY_ROLE, QUERY_USER)):
            there = self._part(account)
            _copy_private(self._users[user].password_file, there / f"{user}.password")
            _copy_private(key, there / "result-id.key")
            write_private(
                there / "settings.toml", to_toml(engine_settings(self._settings(), account))
            )

    def _settings(self) -> Table:
        kafka = self._hosts.kafka
        return {
            "version": SETTINGS_FORM,
            "catalog": {
                "url": self._url("secadmin"),
                INGEST_ROLE: {"url": self._url(INGEST_ROLE)},
                QUERY_ROLE: {"url": self._url(QUERY_ROLE)},
            },
            "kafka": {
                "bootstrap": ",".join(f"{host}:{PORTS.platform}" for host in kafka),
                "clients_bootstrap": ",".join(f"{host}:{PORTS.users}" for host in kafka),
                "removes_users": False,
                "ca_file": str(THERE / "ca.pem"),
                "replication": min(len(kafka), MOST_REPLICAS),
                "secadmin": _account(self._users[SECADMIN_USER]),
                "ingest": _account(self._users[INGEST_USER]),
                "query": _account(self._users[QUERY_USER]),
                "audit": _account(self._users[AUDIT_USER]),
            },
            "secadmin": {
                "host": "0.0.0.0",  # noqa: S104 - the network decides who reaches it
                "port": SECADMIN_PORT,
                "certificate_file": str(THERE / "certificate.pem"),
                "key_file": str(THERE / "key.pem"),
                "ca_file": str(THERE / "ca.pem"),
                "first_password_file": str(DATA / "first-administrator.password"),
                "audit_key_file": str(THERE / "audit.key"),
                "audit_heads_file": str(DATA / "audit" / "heads"),
            },
            "secfilter": {
                "engines": self._engines,
                "master": SPARK_MASTER,
                "jars": str(JARS),
                "checkpoints": str(DATA / "checkpoints"),
                "id_key_file": str(THERE / "result-id.key"),
            },
        }

    def _url(self, role: str) -> str:
        hosts = "&".join(f"host={host}:{POSTGRESQL_PORT}" for host in self._hosts.postgresql)
        tls = f"sslmode=verify-full&sslrootcert={THERE / 'ca.pem'}"
        return f"postgresql+psycopg://{role}:{self._roles[role]}@/catalog?{hosts}&{tls}"

    def _statements(self) -> str:
        made = ("secadmin", INGEST_ROLE, QUERY_ROLE)
        roles = [f"CREATE ROLE {r} LOGIN PASSWORD '{self._roles[r]}';" for r in made]
        replication = f"LOGIN REPLICATION PASSWORD '{self._roles[REPLICATOR]}'"
        roles.append(f"CREATE ROLE {REPLICATOR} {replication};")
        return "\n".join([*roles, "CREATE DATABASE catalog OWNER secadmin;", ""])

    def _part(self, name: str) -> Path:
        there = private_folder(self._folder / name)
        self._copy("ca.pem", there / "ca.pem")
        return there

    def _copy(self, name: str, to: Path) -> None:
        _copy_private(self.authority / name, to)


def _copy_private(file: Path, to: Path) -> None:
    write_private(to, file.read_bytes())


def _account(credentials: Credentials) -> Table:
    name = credentials.username
    return {"username": name, "password_file": str(THERE / f"{name}.password")}

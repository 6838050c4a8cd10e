"""Three real Kafka nodes as processes on loopback: one cluster, whose nodes can be made to fail."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from catalog.private_file import write_private
from catalog.settings import KafkaAccount, KafkaSettings
from deploy.broker_cluster import Node, cluster_properties
from deploy.broker_format import argument_file, format_arguments, new_cluster_id
from deploy.broker_memory import RequestMemory
from deploy.broker_properties import (
    BROKER_USER,
    INGEST_USER,
    QUERY_USER,
    SECADMIN_USER,
    NodeFiles,
    Ports,
    render,
)
from deploy.certificates import Certificates, ensure_certificates
from deploy.credentials import ensure_credentials
from deploy.files import private_folder
from deploy.ports import LOOPBACK, free_port
from deploy.processes import ManagedProcess
from deploy.runtime import Runtime
from deploy.settings import AUDIT_USER, Table, local_kafka
from secadmin.kafka.principals import Credentials
from secadmin.kafka.wire.cluster_view import ClusterView, cluster_view
from secadmin.kafka.wire.connection import BrokerAddress, BrokerConnection
from tests.integration.cluster.doors import Door
from tests.waiting import wait_until

NODES = 3
# A machine may be slow and busy: how long a step takes is no test.
PATIENCE_S = 180.0
_HEAP_MB = 384
# The smallest for which the settings of requests are made.
_MEMORY = RequestMemory(512)
_LOG_SETTINGS = Path(__file__).parents[3] / "deploy" / "log4j2.properties"


@dataclass(frozen=True)
class Member:
    """A node, its process, and the door through which the others reach its controller."""

    node: Node
    process: ManagedProcess
    door: Door

    @property
    def platform(self) -> BrokerAddress:
        """Where the platform reaches it."""
        return BrokerAddress(self.node.host, self.node.ports.platform)

    @property
    def users(self) -> BrokerAddress:
        """Where users reach it."""
        return BrokerAddress(self.node.host, self.node.ports.users)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()

    def pause(self) -> None:
        """It stands still, and its connections stay open."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """It goes on where it stood still."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        mark = self.process.mark
        assert mark is not None
        mark.signal(number)


class KafkaCluster:
    """The cluster. Its nodes have the settings that a deployment of several nodes has."""

    def __init__(self, state: Path, runtime: Runtime) -> None:
        """Make certificates, passwords and settings. Nothing is started."""
        self._runtime = runtime
        self._state = private_folder(state)
        self._certificates: Certificates = ensure_certificates(state / "certificates")
        secrets = private_folder(state / "secrets")
        users = (BROKER_USER, SECADMIN_USER, INGEST_USER, QUERY_USER, AUDIT_USER)
        self._users = {user: ensure_credentials(secrets, user) for user in users}
        self.members = self._members()

    @property
    def settings(self) -> KafkaSettings:
        """The cluster as the platform's settings describe it."""
        members = self.members.values()

        def account(user: str) -> KafkaAccount:
            return KafkaAccount(user, self._users[user].password_file)

        return KafkaSettings(
            bootstrap=",".join(f"{m.platform.host}:{m.platform.port}" for m in members),
            clients_bootstrap=",".join(f"{m.users.host}:{m.users.port}" for m in members),
            ca_file=self._certificates.ca,
            secadmin=account(SECADMIN_USER),
            ingest=account(INGEST_USER),
            query=account(QUERY_USER),
            audit=account(AUDIT_USER),
            replication=NODES,
        )

    @property
    def table(self) -> Table:
        """The part `[kafka]` of an operator's settings."""
        found = self.settings
        alone = local_kafka(
            found.bootstrap, found.users_bootstrap, found.ca_file, self._users[SECADMIN_USER]
        )
        return {**alone, "replication": NODES, "removes_users": False}

    def start(self) -> None:
        """Start all nodes, and return when each knows all and has a leader of controllers."""
        cluster = new_cluster_id()
        for member in self.members.values():
            self._format(member, cluster)
        for member in self.members.values():
            self.launch(member)
        self.await_all()

    def launch(self, member: Member) -> None:
        """Start a node, and wait for nothing."""
        command = [str(self._runtime.java), *self._java(member), "kafka.Kafka"]
        member.process.start([*command, str(self._properties(member))])

    def await_all(self) -> None:
        """Wait until every node knows that all are alive."""
        everyone = {*self.members}
        for member in self.members.values():
            wait_until(
                lambda member=member: self.alive_for(member) == everyone,  # type: ignore[misc]
                f"node {member.node.id} knows all nodes",
                PATIENCE_S,
            )

    def alive_for(self, member: Member) -> set[int]:
        """Which nodes are alive, as that one knows it; none if it does not answer."""
        try:
            return set(self.view_of(member).brokers)
        except Exception:
            return set()

    def view_of(self, member: Member, *topics: str) -> ClusterView:
        """What that node knows of the cluster and the topics."""
        connection = BrokerConnection(member.platform, self.settings)
        try:
            return cluster_view(connection, topics)
        finally:
            connection.close()

    def connect(self, member: Member, credentials: Credentials) -> BrokerConnection:
        """A connection to that node as a user."""
        file = write_private(self._state / credentials.username, credentials.password)
        account = KafkaAccount(credentials.username, file)
        return BrokerConnection(member.users, replace(self.settings, secadmin=account))

    def can_log_in(self, member: Member) -> bool:
        """Whether the platform can log in there."""
        return bool(self.alive_for(member))

    def cut_off(self, member: Member) -> None:
        """Cut the node off from the controllers of the others, and these off from its own."""
        own = member.node.id
        member.door.shut_out(*(self.members.keys() - {own}))
        for other in self.members.values():
            if other is not member:
                other.door.shut_out(own)

    def mend(self, _member: Member) -> None:
        """Undo `cut_off`."""
        for each in self.members.values():
            each.door.shut_out()

    def close(self) -> None:
        """End all nodes."""
        for member in self.members.values():
            member.process.kill()
            member.door.close()

    def _members(self) -> dict[int, Member]:
        members, taken = {}, list[int]()
        for number in range(1, NODES + 1):
            ports = [free_port(*taken) for _ in range(3)]
            while len(set(ports)) < len(ports):
                ports = [free_port(*taken) for _ in range(3)]
            taken += ports
            node = Node(number, "localhost", Ports(*ports), LOOPBACK)
            process = ManagedProcess(f"kafka-{number}", self._state)
            members[number] = Member(node, process, Door(self._processes))
            members[number].door.lead_to(node.ports.controller)
        return members

    def _processes(self) -> dict[int, int]:
        """The id of each node's process."""
        marks = {number: member.process.mark for number, member in self.members.items()}
        return {number: mark.pid for number, mark in marks.items() if mark is not None}

    def _folder(self, member: Member) -> Path:
        return private_folder(self._state / f"kafka-{member.node.id}")

    def _properties(self, member: Member) -> Path:
        return self._folder(member) / "server.properties"

    def _format(self, member: Member, cluster: str) -> None:
        folder = self._folder(member)
        files = NodeFiles(
            folder / "data", self._certificates.broker.key_store, self._certificates.ca
        )
        own = self._users[BROKER_USER].password()
        nodes = [self._as_seen_by(member, each) for each in self.members.values()]
        properties = cluster_properties(member.node, nodes, files, own, _MEMORY)
        # Who leads tells the others its own address: that of its door.
        door = f",CONTROLLER://{member.node.host}:{member.door.port}"
        properties["advertised.listeners"] += door
        write_private(self._properties(member), render(properties))
        users = [self._users[user] for user in (BROKER_USER, SECADMIN_USER)]
        arguments = [
            *self._java(member),
            *format_arguments(self._properties(member), users, cluster),
        ]
        file = write_private(folder / "format.args", argument_file(arguments))
        done = subprocess.run(
            [str(self._runtime.java), f"@{file}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        file.unlink()
        assert done.returncode == 0, done.stdout + done.stderr

    @staticmethod
    def _as_seen_by(member: Member, other: Member) -> Node:
        """The other node, with its controller behind its door."""
        if other is member:
            return other.node
        return replace(other.node, ports=replace(other.node.ports, controller=other.door.port))

    def _java(self, member: Member) -> list[str]:
        log = private_folder(self._state / "logs") / f"kafka-{member.node.id}.kafka.log"
        return [
            f"-Xmx{_HEAP_MB}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-Dlog4j2.configurationFile={_LOG_SETTINGS}",
            f"-Dsecure.streams.log={log}",
            "-cp",
            f"{self._runtime.jars.broker}/*",
        ]


@contextmanager
def running(state: Path, runtime: Runtime) -> Iterator[KafkaCluster]:
    """A cluster that runs while the block does."""
    cluster = KafkaCluster(state, runtime)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()

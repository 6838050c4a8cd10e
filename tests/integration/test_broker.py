"""The broker: nothing but TLS, nobody without a password, nothing without an ACL."""

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from deploy.broker import BrokerSettings, EmbeddedBroker
from deploy.broker_clients import ClientConfig
from deploy.broker_memory import RequestMemory
from deploy.broker_properties import NodeFiles, Ports, broker_properties, render
from deploy.cluster_check import cluster_warnings
from deploy.errors import DeployError
from deploy.ports import LOOPBACK
from deploy.processes import ProcessMark
from deploy.runtime import Runtime
from tests.integration.brokers import Broker, embedded_only, kafka_settings
from tests.lanes import is_long


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """A topic that nobody was given anything on."""
    _create(broker, "closed")
    return "closed"


def _create(broker: Broker, name: str) -> None:
    # Kept in a variable: a client that is collected takes its requests with it.
    client = AdminClient(broker.admin_config())
    for made in client.create_topics([NewTopic(name, 1, 1)]).values():
        made.result(timeout=60)


def _send(config: ClientConfig, topic: str, value: bytes) -> KafkaError | None:
    """Send one record, acknowledged by all; returns what went wrong."""
    outcome: list[KafkaError | None] = []
    producer = Producer({**config, "acks": "all", "message.timeout.ms": 10_000})
    producer.produce(topic, value, on_delivery=lambda error, _: outcome.append(error))
    producer.flush(25)
    return outcome[0]


def _values(config: ClientConfig, topic: str) -> list[bytes | None]:
    """All that partition 0 of the topic holds."""
    consumer = Consumer({**config, "group.id": "g", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes | None] = []
    try:
        while (record := consumer.poll(20)) is not None:
            error = record.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                break
            if error is not None:
                raise KafkaException(error)
            values.append(record.value())
    finally:
        consumer.close()
    return values


def _refused(config: ClientConfig, reason: int | None = None) -> None:
    """A client with that configuration learns nothing, and, if given, is told that reason."""
    codes: set[int] = set()
    client = AdminClient({**config, "log_level": 0}, error_cb=lambda error: codes.add(error.code()))
    deadline = time.monotonic() + 30
    while not (reason in codes if reason else codes) and time.monotonic() < deadline:
        client.poll(0.1)
    with pytest.raises(KafkaException):
        client.list_topics(timeout=0.5)
    assert codes
    assert reason is None or reason in codes


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_speaks_nothing_without_tls(broker: Broker, protocol: str) -> None:
    _refused({**broker.admin_config(), "security.protocol": protocol})


def test_tls_without_a_log_in_gets_nothing(broker: Broker) -> None:
    _refused({**broker.admin_config(), "security.protocol": "SSL"})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_other_mechanisms_are_refused(broker: Broker, mechanism: str) -> None:
    config = {**broker.admin_config(), "sasl.mechanism": mechanism}
    _refused(config, KafkaError._AUTHENTICATION)


@pytest.mark.parametrize("user", ["secadmin", "broker", "nobody"])
def test_a_wrong_password_is_refused(broker: Broker, user: str) -> None:
    _refused(broker.client_config(user, "0" * 64), KafkaError._AUTHENTICATION)


def test_the_passwords_differ(broker: Broker) -> None:
    crossed = broker.client_config("secadmin", broker.query.password())
    _refused(crossed, KafkaError._AUTHENTICATION)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_tls_is_refused(broker: Broker) -> None:
    context = ssl.create_default_context(cafile=str(broker.ca_file))
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection((LOOPBACK, broker.port)) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain, server_hostname="localhost")


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_the_certificate_is_of_our_ca(broker: Broker, name: str) -> None:
    context = ssl.create_default_context(cafile=str(broker.ca_file))
    with (
        socket.create_connection((LOOPBACK, broker.port)) as plain,
        context.wrap_socket(plain, server_hostname=name) as secure,
    ):
        assert secure.version() == "TLSv1.3"


def test_a_client_that_does_not_know_the_ca_refuses(broker: Broker) -> None:
    config = broker.admin_config()
    del config["ssl.ca.location"]
    _refused(config, KafkaError._SSL)


@embedded_only
def test_all_listeners_are_tls_on_loopback_alone(broker: EmbeddedBroker) -> None:
    ports = _listening_ports(broker)
    assert broker.port in ports
    assert len(ports) == 3
    for port in ports:
        context = ssl.create_default_context(cafile=str(broker.ca_file))
        with (
            socket.create_connection((LOOPBACK, port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost"),
        ):
            pass


def _listening_ports(broker: EmbeddedBroker) -> list[int]:
    """Ports that the broker's process listens on; all must be on 127.0.0.1."""
    inodes = set()
    for link in Path(f"/proc/{broker.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            inodes.add(str(link.readlink()))
    ports = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                address, port = fields[1].split(":")
                # 127.0.0.1, as IPv4 or mapped into IPv6.
                assert address.endswith("0100007F")
                ports.append(int(port, 16))
    return ports


def test_who_has_no_acl_sees_and_does_nothing(broker: Broker, topic: str) -> None:
    config = broker.client_config(broker.query.username, broker.query.password())
    assert topic not in AdminClient(config).list_topics(timeout=10).topics
    error = _send(config, topic, b"x")
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaException) as refused:
        _values(config, topic)
    # It has neither READ on the group nor on the topic; the client may learn of either first.
    assert refused.value.args[0].code() in (
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    )
    with pytest.raises(KafkaException):
        client = AdminClient(config)
        for made in client.create_topics([NewTopic("mine", 1, 1)]).values():
            made.result(timeout=60)


def test_topics_are_not_made_by_using_them(broker: Broker) -> None:
    # Producers usually wait for a topic that somebody may be making.
    config = {**broker.admin_config(), "topic.metadata.propagation.max.ms": 100}
    error = _send(config, "never-made", b"x")
    assert error is not None
    assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART, "the broker was asked"
    assert "never-made" not in AdminClient(broker.admin_config()).list_topics(timeout=10).topics


def test_a_superuser_writes_and_reads(broker: Broker, topic: str) -> None:
    assert _send(broker.admin_config(), topic, b"hello") is None
    assert _values(broker.admin_config(), topic) == [b"hello"]


@pytest.fixture
def own(runtime: Runtime, tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker that the test may stop and kill; not started."""
    broker = EmbeddedBroker(BrokerSettings(tmp_path, 0, runtime.java, runtime.jars.broker))
    yield broker
    broker.stop()


@pytest.mark.long
def test_data_and_port_outlive_a_stop_and_a_crash(own: EmbeddedBroker) -> None:
    own.start()
    address = own.bootstrap
    _create(own, "kept")
    assert _send(own.admin_config(), "kept", b"before") is None
    ends = (own.stop, own.kill) if is_long() else (own.kill,)
    for end in ends:
        end()
        assert own.pid is None
        own.start()
        assert own.bootstrap == address
    assert _values(own.admin_config(), "kept") == [b"before"]


def test_a_port_in_use_is_told(runtime: Runtime, tmp_path: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        settings = BrokerSettings(tmp_path, port, runtime.java, runtime.jars.broker)
        with pytest.raises(DeployError, match=f"port {port} for the broker is in use: .*--port"):
            EmbeddedBroker(settings).start()


@embedded_only
def test_starting_twice_is_told(broker: EmbeddedBroker) -> None:
    again = EmbeddedBroker(broker.settings)
    with pytest.raises(DeployError, match=r"broker already runs \(pid \d+\)"):
        again.start()
    assert broker.pid is not None


@pytest.mark.long
def test_a_broker_that_dies_says_why_in_one_line(own: EmbeddedBroker) -> None:
    own.start()
    own.stop()
    meta = own.settings.state / "broker" / "data" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=7"))
    with pytest.raises(DeployError, match=r"the broker ended while starting: .*node") as told:
        own.start()
    assert "\n" not in str(told.value)
    assert own.pid is None


def test_ends_with_the_process_that_started_it(runtime: Runtime, tmp_path: Path) -> None:
    code = (
        "import os, signal; from pathlib import Path\n"
        "from deploy.broker import BrokerSettings, EmbeddedBroker\n"
        f"EmbeddedBroker(BrokerSettings(Path({str(tmp_path)!r}), 0, "
        f"Path({str(runtime.java)!r}), Path({str(runtime.jars.broker)!r}))).start()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=os.environ, check=False)
    assert done.returncode == -signal.SIGKILL
    mark = ProcessMark.read(tmp_path / "run" / "broker.pid")
    assert mark is not None
    assert mark.wait(60)


def test_settings_name_no_listener_without_tls(tmp_path: Path) -> None:
    files = NodeFiles(tmp_path, tmp_path / "store.pem", tmp_path / "ca.pem")
    text = render(broker_properties(Ports(1, 2, 3), files, "pw", RequestMemory()))
    assert "CLIENTS:SASL_SSL,PLATFORM:SASL_SSL,CONTROLLER:SASL_SSL" in text
    assert "PLAINTEXT" not in text
    assert "super.users=User:broker;User:secadmin\n" in text


@embedded_only
def test_a_clusters_dangerous_settings_are_told(broker: EmbeddedBroker) -> None:
    settings = kafka_settings(broker)
    assert cluster_warnings(settings) == []
    shared = replace(settings, clients_bootstrap=None)
    (listener, connections) = cluster_warnings(shared)
    assert "share a listener" in listener
    assert "broker 1: users' connections (2147483647)" in connections
    (told,) = cluster_warnings(replace(settings, query=settings.secadmin))
    assert "the user secadmin do more than an engine needs" in told
    (unread,) = cluster_warnings(replace(settings, secadmin=settings.query))
    assert "cannot be read" in unread

"""Kafka clients under SecAdmin's account. A failure of Kafka becomes an error with its remedy."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from threading import Lock
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from catalog.errors import Unavailable
from catalog.settings import KafkaSettings
from catalog.topics import HEAD_TOPIC

REQUEST_TIMEOUT_S = 5.0
"""Longest wait for one administrative request, in seconds."""

_TOPICS_KNOWN_MS = 3_000
_CONTROLLER_KNOWN_S = 1.0
# What a broker that hangs does not say so soon, another one may say at the next request.
_CONTROLLER_TOLD_S = 1.0
_T = TypeVar("_T")

_QUIET: dict[str, Any] = {
    # The caller gets failures as errors. The library's own lines on stderr would only repeat them.
    "log_level": 0,
    "socket.timeout.ms": int(REQUEST_TIMEOUT_S * 1000),
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 1000,
}
_LOGIN_CODES = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})
_RIGHT_CODES = frozenset(
    {KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}
)


class _ControllerClient:
    """An administrative client, which knows the broker that takes changes.

    Every broker hands changes on to the controllers. The library sends them to the one that the
    cluster named when the client asked for metadata, and asks for metadata anew only for topics
    that it uses: an administrative client uses none. So if that broker dies, each change would fail
    for ever. Therefore the client asks anew before a request, once a second at most.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self._client = AdminClient(config)
        self._asked = float("-inf")
        self._lock = Lock()

    def current(self) -> AdminClient:
        """The client. What keeps it from asking shows in the request itself."""
        with self._lock:
            if time.monotonic() - self._asked > _CONTROLLER_KNOWN_S:
                with suppress(KafkaException):
                    self._client.list_topics(HEAD_TOPIC, timeout=_CONTROLLER_TOLD_S)
                self._asked = time.monotonic()
        return self._client


class AdminClients:
    """Long-lived administrative clients under SecAdmin's account. They connect in the background.

    There are two. A broker handles one request of a connection at a time, and a change takes tens
    of milliseconds. On one connection, requests that only read would wait for changes. What takes
    rights away goes by connections of our own (`secadmin.kafka.wire.connections`), and so does what
    gives them.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self._reads, self._changes = _ControllerClient(config), _ControllerClient(config)

    @classmethod
    def open(cls, settings: KafkaSettings) -> AdminClients:
        """Make the clients. Raises OSError if SecAdmin's password file cannot be read."""
        return cls(_QUIET | settings.client_config(settings.secadmin))

    @property
    def reads(self) -> AdminClient:
        """The client for what only reads. The library asks that broker for some of it, too."""
        return self._reads.current()

    @property
    def changes(self) -> AdminClient:
        """The client for changes."""
        return self._changes.current()


def fence_producer(settings: KafkaSettings) -> Producer:
    """The producer of fence records. It sends each record at once, and waits for all replicas."""
    own = {
        "acks": "all",
        "linger.ms": 0,
        "message.timeout.ms": int(REQUEST_TIMEOUT_S * 1000),
        # If a topic is deleted and created again, the fence must find it within its time limit.
        "topic.metadata.refresh.interval.ms": _TOPICS_KNOWN_MS,
    }
    return Producer(_QUIET | own | settings.client_config(settings.secadmin))


def head_producer(settings: KafkaSettings) -> Producer:
    """The producer of the audit log's heads. It has an account of its own."""
    own = {"acks": "all", "linger.ms": 0, "message.timeout.ms": int(REQUEST_TIMEOUT_S * 1000)}
    return Producer(_QUIET | own | settings.client_config(settings.audit))


def head_consumer(settings: KafkaSettings) -> Consumer:
    """A consumer of the audit log's heads, under SecAdmin's account, without group offsets."""
    own = {
        "group.id": "secadmin-audit",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
    }
    return Consumer(_QUIET | own | settings.client_config(settings.secadmin))


def parked_consumer(settings: KafkaSettings) -> Consumer:
    """A consumer of parked records, under SecAdmin's account. All services are one group."""
    own = {
        "group.id": "secadmin-parked",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        # A stream that was just added is found within this time.
        "topic.metadata.refresh.interval.ms": _TOPICS_KNOWN_MS // 3,
        "session.timeout.ms": 10_000,
        # A record that was just parked must not wait.
        "fetch.wait.max.ms": 100,
    }
    return Consumer(_QUIET | own | settings.client_config(settings.secadmin))


def parked_producer(settings: KafkaSettings, transactional_id: str) -> Producer:
    """The producer of what parked records become, which writes in transactions."""
    own = {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": 10_000,
        "acks": "all",
        "linger.ms": 0,
        "message.timeout.ms": int(REQUEST_TIMEOUT_S * 1000),
        "message.max.bytes": 8 * 1024 * 1024,
    }
    return Producer(_QUIET | own | settings.client_config(settings.secadmin))


def refill_admin(settings: KafkaSettings) -> AdminClient:
    """The client that asks what groups of consumers have read, under SecAdmin's account."""
    return AdminClient(_QUIET | settings.client_config(settings.secadmin))


def refill_consumer(settings: KafkaSettings) -> Consumer:
    """A consumer of delivery topics, under SecAdmin's account, without group offsets."""
    own = {
        "group.id": "secadmin-refills",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # What is deleted by then is lost.
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        # A result that has just come must not wait.
        "fetch.wait.max.ms": 100,
    }
    return Consumer(_QUIET | own | settings.client_config(settings.secadmin))


def refill_producer(settings: KafkaSettings) -> Producer:
    """The producer of results that are copied to another delivery topic, in their order."""
    own = {
        "acks": "all",
        "max.in.flight.requests.per.connection": 1,
        "linger.ms": 0,
        "message.timeout.ms": int(REQUEST_TIMEOUT_S * 1000),
        "message.max.bytes": 8 * 1024 * 1024,
        "topic.metadata.refresh.interval.ms": _TOPICS_KNOWN_MS,
    }
    return Producer(_QUIET | own | settings.client_config(settings.secadmin))


def check_connection(admins: AdminClients) -> None:
    """Check that the cluster answers within `REQUEST_TIMEOUT_S`. Raises Unavailable if not."""
    finished(admins.reads.describe_cluster(request_timeout=REQUEST_TIMEOUT_S), "reach Kafka")


def finished(future: Future[_T], purpose: str) -> _T:
    """The result of an administrative request. `purpose` says its aim ("create the topic x").

    Raises:
        Unavailable: Kafka refused or did not answer within `REQUEST_TIMEOUT_S` (one second more).
    """
    try:
        return future.result(REQUEST_TIMEOUT_S + 1)
    except KafkaException as error:
        raise unavailable(error, purpose) from None
    except FutureTimeoutError:
        raise Unavailable(f"cannot {purpose}: Kafka did not answer") from None


def all_finished(futures: Iterable[Future[_T]], purpose: str) -> list[_T]:
    """The results of several requests, in order. Raises Unavailable for the first failure."""
    return [finished(future, purpose) for future in futures]


def failure_of(future: Future[Any], purpose: str, *harmless: int) -> Unavailable | None:
    """Wait for a request. Gives its failure, or None if it has none or a `harmless` code."""
    try:
        future.result(REQUEST_TIMEOUT_S + 1)
    except KafkaException as error:
        return None if error_code(error) in harmless else unavailable(error, purpose)
    except FutureTimeoutError:
        return Unavailable(f"cannot {purpose}: Kafka did not answer")
    return None


def failure_of_code(code: int, purpose: str, *harmless: int) -> Unavailable | None:
    """What the code of an answer means. Gives None for 0 and a `harmless` code."""
    if code in (0, *harmless):
        return None
    return unavailable(KafkaException(KafkaError(code)), purpose)


def error_code(error: KafkaException) -> int:
    """Kafka's code of the failure. The constants of KafkaError have the codes."""
    return int(_kafka_error(error).code())


def unavailable(error: KafkaException, purpose: str) -> Unavailable:
    """The error to raise for a failure of the client library. It has no data and no secret."""
    code = error_code(error)
    if code in _LOGIN_CODES:
        reason = "Kafka refused SecAdmin's login: check its password file in the settings"
    elif code in _RIGHT_CODES:
        reason = "SecAdmin's Kafka account must be a super user of the cluster"
    else:
        reason = f"Kafka says {_kafka_error(error).str()}; it is tried again once Kafka is back"
    return Unavailable(f"cannot {purpose}: {reason}")


def _kafka_error(error: KafkaException) -> KafkaError:
    found = error.args[0]
    return found if isinstance(found, KafkaError) else KafkaError(KafkaError._FAIL, str(found))

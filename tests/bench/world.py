"""The running platform as a measurement uses it: an administrator, streams, queries, users."""

from __future__ import annotations

import json
import re
import secrets
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from deploy.processes import ManagedProcess
from deploy.settings import merged, write_settings
from deploy.stack import Stack
from tests.bench.process_group import ProcessGroup

PASSWORD = "measured with care"
ATTRIBUTES = [
    {"name": "ts", "type": "timestamp", "required": True},
    {"name": "n", "type": "bigint", "required": True},
    {"name": "sent", "type": "bigint", "required": True},
]
PATIENCE_S = 180.0


@dataclass
class Session:
    """A logged-in user."""

    http: httpx.Client
    user: str
    token: str = field(repr=False)

    def call(self, method: str, path: str, **body: Any) -> Any:
        """Call the API; it must succeed."""
        headers = {"Authorization": f"Bearer {self.token}"}
        response = self.http.request(method, path, headers=headers, json=body or None)
        response.raise_for_status()
        return response.json() if response.content else None

    def post(self, path: str, **body: Any) -> Any:
        """POST."""
        return self.call("POST", path, **(body or {"keep": False}))

    def wait_until_fed(self) -> None:
        """Wait until all of this user's subscriptions are delivered to."""
        until(lambda: all(row["fed"] for row in self.call("GET", "/accesses")), "to be fed")


class World:
    """The platform and its administrator."""

    def __init__(self, stack: Stack) -> None:
        """Log in as the first administrator of a fresh platform."""
        self.stack = stack
        self._queries: list[str] = []
        self._streams: list[str] = []
        self._limits: dict[str, int] = {}
        settings = stack.settings
        ca = str(settings.secadmin.ca_file)
        self.http = httpx.Client(base_url=stack.secadmin_url, verify=ca, timeout=PATIENCE_S)
        one_time = settings.secadmin.first_password_file.read_text().strip()
        self.admin = self.log_in("admin", one_time)
        self.admin.post("/password", old=one_time, new=PASSWORD)
        self.admin.post("/schemas", name="bench", attributes=ATTRIBUTES)

    def set_limits(self, **limits: int) -> None:
        """Give the platform these limits beside those that it was given; the service restarts."""
        self._limits |= limits
        file = self.stack.settings_file
        before, _, _ = file.read_text().partition("[limits]\n")
        lines = (f"{name} = {value}\n" for name, value in self._limits.items())
        file.write_text(f"{before}[limits]\n{''.join(lines)}")
        self.stack.secadmin.stop()
        self.stack.start_secadmin()

    def set_options(self, **options: int) -> None:
        """Give the engines these settings of ours, such as `settle_ms`; the engines restart."""
        given = {f"secfilter.{name}": str(value) for name, value in options.items()}
        for file in self.stack.state.glob("settings-*.toml"):
            before = tomllib.loads(file.read_text())
            write_settings(merged(before, {"secfilter": {"options": given}}), file)
        for process in self.stack.engines.values():
            process.stop()
        self.stack.start_engines(self.stack.engines)

    def log_in(self, user: str, password: str) -> Session:
        """A session of the user."""
        answer = self.http.post("/login", json={"user": user, "password": password})
        answer.raise_for_status()
        return Session(self.http, user, answer.json()["token"])

    def new_user(self, role: str) -> Session:
        """A new user with the role, which is made if it is not there."""
        if role not in {row["name"] for row in self.admin.call("GET", "/roles")}:
            self.admin.post("/roles", name=role)
        name = f"u{secrets.token_hex(4)}"
        one_time = self.admin.post("/users", name=name)["password"]
        self.admin.post(f"/users/{name}/roles", role=role)
        session = self.log_in(name, one_time)
        session.post("/password", old=one_time, new=PASSWORD)
        return session

    def add_stream(self, name: str, schema: str = "bench", **more: Any) -> None:
        """A stream whose event time is `ts`; whoever feeds it needs no user of its own."""
        usual = {"event_time": "ts", "time": "data", "senders": "shared"}
        self.admin.post("/streams", name=name, schema=schema, **{**usual, **more})
        self._streams.append(name)

    def add_query(self, name: str, text: str) -> None:
        """An SQL query whose output has its name."""
        self.admin.post("/queries", name=name, language="sql", text=text)
        self._queries.append(name)

    def forget(self, query: str) -> None:
        """A query that was removed: `clear` does not remove it again."""
        self._queries.remove(query)

    def remove_query(self, name: str) -> None:
        """Remove a query that was added here."""
        self.admin.call("DELETE", f"/queries/{name}")
        self._queries.remove(name)

    def clear(self) -> None:
        """Remove all queries and streams, so that they do not disturb what is measured next."""
        for query in self._queries:
            self.admin.call("DELETE", f"/queries/{query}")
        for stream in self._streams:
            self.admin.call("DELETE", f"/streams/{stream}")
        self._queries, self._streams = [], []

    def grant(self, role: str, kind: str, name: str, *permissions: str) -> None:
        """Grant to a role."""
        body = {"role": role, "kind": kind, "name": name, "permissions": list(permissions)}
        self.admin.post("/grants", **body)

    def revoke(self, role: str, kind: str, name: str, *permissions: str) -> None:
        """Revoke from a role."""
        body = {"role": role, "kind": kind, "name": name, "permissions": list(permissions)}
        self.admin.post("/revocations", **body)

    def sender(self, stream: str, linger_ms: int = 0) -> tuple[Producer, str]:
        """A producer of the administrator's for the stream, and its topic."""
        self.grant("ADMIN", "stream", stream, "SEND")
        access = self.admin.post(f"/streams/{stream}/senders")
        return Producer(self.client_config(access) | {"linger.ms": linger_ms}), access["topic"]

    def subscriber(self, user: Session, output: str) -> Consumer:
        """A consumer of a new subscription, from now on."""
        access = user.post(f"/outputs/{output}/subscriptions")
        consumer = Consumer(
            self.client_config(access)
            | {
                "group.id": access["group_prefix"] + "bench",
                "topic.metadata.refresh.interval.ms": 1000,
                "auto.offset.reset": "latest",
                "fetch.wait.max.ms": 50,
            }
        )
        consumer.subscribe([access["topic_pattern"]])
        return consumer

    def topic_of_new_class(self, output: str) -> str:
        """Subscribe the administrator; the topic of the class that this is the first of."""
        kafka = self.stack.settings.kafka
        admin = AdminClient({**kafka.client_config(kafka.secadmin), "log_level": 3})
        access = self.admin.post(f"/outputs/{output}/subscriptions")
        pattern = re.compile(access["topic_pattern"])
        (topic,) = filter(pattern.match, admin.list_topics(timeout=10).topics)
        return topic

    def pid(self, name: str) -> int:
        """The id of a process of the platform, which is that of its group, too."""
        mark = ManagedProcess(name, self.stack.state).mark
        if mark is None:
            raise RuntimeError(f"{name} does not run here, so its CPU time cannot be told")
        return mark.pid

    def engine_group(self) -> ProcessGroup:
        """All processes of the engines."""
        return ProcessGroup(*(self.pid(engine.name) for engine in self.stack.engines.values()))

    def client_config(self, access: dict[str, Any]) -> dict[str, Any]:
        """What a client connects with."""
        return {
            "bootstrap.servers": access["bootstrap"],
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": access["principal"],
            "sasl.password": access["secret"],
            "ssl.ca.pem": access["ca_pem"],
            "log_level": 3,
        }


def tuple_now(number: int) -> bytes:
    """A tuple that says when it was sent, in nanoseconds of this machine's steady clock."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps({"ts": at, "n": number, "sent": time.monotonic_ns()}).encode()


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition. Raises TimeoutError after three minutes."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited too long {what}")
        time.sleep(0.02)

"""A Kafka in a container, with the embedded broker's own certificates, settings and accounts.

Its files are copied in and not mounted: they keep their mode there, and belong to the container's
user, whoever runs the tests and whatever user the image is made for.
"""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path, PurePosixPath
from types import TracebackType

from docker.errors import APIError, DockerException
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from deploy.broker_clients import ClientConfig, can_log_in, client_config
from deploy.broker_format import argument_file, format_arguments
from deploy.broker_memory import RequestMemory
from deploy.broker_properties import (
    BROKER_USER,
    INGEST_USER,
    PLATFORM_LISTENER,
    QUERY_USER,
    SECADMIN_USER,
    USERS_LISTENER,
    NodeFiles,
    Ports,
    broker_properties,
    render,
)
from deploy.certificates import ensure_certificates
from deploy.credentials import ensure_credentials
from deploy.errors import DeployError
from deploy.files import private_folder
from deploy.ports import LOOPBACK, free_port
from deploy.processes import last_error
from tests.integration.brokers import HEAP_MB
from tests.requirements import missing

IMAGE_SETTING = "SECURE_STREAMS_TEST_KAFKA_IMAGE"
PUBLIC_IMAGE = "apache/kafka:4.1.0"
START_TIMEOUT_S = 180.0
_ATTEMPTS = 3
_TAKEN = ("port is already allocated", "address already in use")
_CONTROLLER_PORT = 9094
_PRIVATE = 0o600
_FOLDER = PurePosixPath("/secure-streams")
_PROPERTIES = _FOLDER / "server.properties"
_KEY_STORE, _CA = _FOLDER / "broker.store.pem", _FOLDER / "ca.pem"
_FORMAT, _RUN = _FOLDER / "format.args", _FOLDER / "run.sh"
_MEMORY = RequestMemory(HEAP_MB)
# It lives for minutes: Java's second compiler would be done when the tests are. The jars are where
# the public image has them too.
_JAVA = (f"-Xmx{_MEMORY.heap_mb}m", "-XX:TieredStopAtLevel=1", "-cp", "/opt/kafka/libs/*")
# Should this process be killed, its container still ends by itself.
_LONGEST_S = 3 * 3600
_SCRIPT = f"""\
set -e
java @{_FORMAT}
rm {_FORMAT}
exec timeout {_LONGEST_S} java {shlex.join(_JAVA)} kafka.Kafka {_PROPERTIES}
"""

# Its image would have to be fetched too; the broker is removed by whoever started it.
testcontainers_config.ryuk_disabled = True


def require_image(setting: str = IMAGE_SETTING, public: str = PUBLIC_IMAGE) -> str:
    """The image's name, pulled if it is not here; without it or an engine the test is skipped.

    The environment variable `setting` may name another one than the public image.
    """
    name = os.environ.get(setting) or public
    try:
        client = DockerClient().client
    except DockerException as error:
        missing(f"a Docker engine ({error})")
    try:
        if not client.images.list(name):
            client.images.pull(name)
    except DockerException as error:
        missing(f"the image {name}; {setting} may name another ({error})")
    finally:
        client.close()
    return name


class ContainerBroker:
    """One broker in a container of this machine; a context manager that leaves nothing behind.

    Attributes:
        secadmin: Credentials of the platform's administrator, a superuser of this broker.
        ingest: Credentials of the engine that ingests, with no rights until granted.
        query: Credentials of the engines that run queries, likewise.
    """

    def __init__(self, image: str, state: Path) -> None:
        """Make certificates and passwords in `state`; nothing is started."""
        self._image = image
        secrets = private_folder(state / "secrets")
        self._certificates = ensure_certificates(state / "certificates")
        self.secadmin = ensure_credentials(secrets, SECADMIN_USER)
        self.ingest = ensure_credentials(secrets, INGEST_USER)
        self.query = ensure_credentials(secrets, QUERY_USER)
        self._own = ensure_credentials(secrets, BROKER_USER)
        self._port = self._platform_port = 0
        self._container: DockerContainer | None = None

    @property
    def bootstrap(self) -> str:
        """`host:port` for users; known once the broker has started."""
        return f"localhost:{self._port}"

    @property
    def platform_bootstrap(self) -> str:
        """`host:port` for the platform's own clients; known once the broker has started."""
        return f"localhost:{self._platform_port}"

    @property
    def port(self) -> int:
        """The users' port on the loopback interface, the same inside and outside."""
        return self._port

    @property
    def ca_file(self) -> Path:
        """The CA certificate that clients trust."""
        return self._certificates.ca

    def client_config(self, username: str, password: str) -> ClientConfig:
        """Settings of a confluent-kafka client that logs in as `username`, as users do."""
        return client_config(self.bootstrap, self.ca_file, username, password)

    def admin_config(self) -> ClientConfig:
        """Settings of a confluent-kafka client that logs in as `secadmin`, as the platform does."""
        name, password = self.secadmin.username, self.secadmin.password()
        return client_config(self.platform_bootstrap, self.ca_file, name, password)

    def start(self) -> None:
        """Start the broker and return when a client has logged in.

        Raises:
            DeployError: It ended while starting, or nobody could log in in time.
            APIError: The engine cannot run it.
        """
        try:
            self._run()
            self._wait_for_login()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Remove the container, with all that it wrote."""
        if self._container is not None:
            self._container.stop()
            self._container = None

    def __enter__(self) -> ContainerBroker:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        """Start a container on a free port; between choosing and using it, others may be faster."""
        for attempts_left in reversed(range(_ATTEMPTS)):
            self._port = free_port()
            self._platform_port = free_port(self._port)
            self._container = self._prepared()
            try:
                self._container.start()
                return
            except APIError as error:
                if not (attempts_left and any(words in str(error) for words in _TAKEN)):
                    raise
                self.stop()

    def _prepared(self) -> DockerContainer:
        container = DockerContainer(self._image).with_command([str(_RUN)])
        # The files' owner, which is root, whatever the image's own user is.
        container.with_kwargs(entrypoint=["/bin/sh"], user="0:0")
        # As a pair it is bound to that address alone; the types know of a number only.
        for port in (self._port, self._platform_port):
            container.ports[str(port)] = (LOOPBACK, port)  # type: ignore[assignment]
        for path, content in self._files().items():
            container.with_copy_into_container(content, str(path), _PRIVATE)
        return container

    def _files(self) -> dict[PurePosixPath, bytes]:
        users = (self._own, self.secadmin, self.ingest, self.query)
        arguments = [*_JAVA, *format_arguments(_PROPERTIES, users)]
        return {
            _PROPERTIES: render(self._properties()).encode(),
            _KEY_STORE: self._certificates.broker.key_store.read_bytes(),
            _CA: self._certificates.ca.read_bytes(),
            _FORMAT: argument_file(arguments).encode(),
            _RUN: _SCRIPT.encode(),
        }

    def _properties(self) -> dict[str, str]:
        files = NodeFiles(Path(_FOLDER / "data"), Path(_KEY_STORE), Path(_CA))
        ports = Ports(self._port, self._platform_port, _CONTROLLER_PORT)
        properties = broker_properties(ports, files, self._own.password(), _MEMORY)
        # What comes from the host does not come over the container's own loopback interface.
        for name in (USERS_LISTENER, PLATFORM_LISTENER):
            inside, outside = f"{name}://127.0.0.1", f"{name}://0.0.0.0"
            properties["listeners"] = properties["listeners"].replace(inside, outside)
        # Never started again after a crash, it need not be given up soon on a busy machine.
        properties["broker.session.timeout.ms"] = "60000"
        return properties

    def _wait_for_login(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if can_log_in(self.admin_config()):
                return
            self._require_running()
        raise DeployError(
            f"no log-in to the container within {START_TIMEOUT_S:.0f} s{self._said()}"
        )

    def _require_running(self) -> None:
        if self._container is None:
            raise DeployError("the container was never started")
        self._container.reload()
        if self._container.status == "exited":
            raise DeployError(f"the broker in the container ended while starting{self._said()}")

    def _said(self) -> str:
        if self._container is None:
            return ""
        said, told = self._container.get_logs()
        return f": {last_error((said + told).decode(errors='replace'))}"

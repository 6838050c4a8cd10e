"""The platform in containers: its image, and all of deploy/cluster/compose.yaml, started for real.

Docker does it all by its command, as docs/cluster.md says. Where no registry is reached,
`.ci/base-images` makes the images, and names them by variables.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.cluster_files import Hosts, write_cluster
from deploy.environment import ROOT
from deploy.ports import free_port
from deploy.scenario.person import Person
from tests.integration.container_broker import require_image
from tests.requirements import missing
from tests.wheel import build_wheel

PUBLIC = {
    "PYTHON": "python:3.11-slim-bookworm",
    "KAFKA": "apache/kafka:4.1.0",
    "POSTGRESQL": "postgres:17",
    "HAPROXY": "haproxy:3.0",
}
"""What the Dockerfile and compose.yaml are made of, by the names of their variables."""
BUILT_SETTING = "SECURE_STREAMS_TEST_IMAGE"
"""An image of the platform that is built already."""
COMPOSE_SETTING, BUILD_SETTING = "SECURE_STREAMS_TEST_COMPOSE", "SECURE_STREAMS_TEST_BUILD"
SECRET_FILE = "secret-of-a-clone"
"""A file of the folder that the image is built in, which no image may have."""
OWNER = 1000
_HOME = Path("/home/streams")
_CA = "/etc/ca.pem"


def docker(*arguments: str, text: str = "") -> str:
    """Run `docker`, with `text` on its input; returns what it prints."""
    command = ["docker", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{arguments}: {(done.stdout + done.stderr)[-2000:]}"
    return done.stdout


def require_images() -> dict[str, str]:
    """The images by the names of their variables, pulled if they are not here."""
    if shutil.which("docker") is None:
        missing("docker, the command")
    return {
        name: require_image(f"SECURE_STREAMS_TEST_{name}_IMAGE", public)
        for name, public in PUBLIC.items()
    }


def require_compose() -> list[str]:
    """The command that is Docker Compose."""
    command = shlex.split(os.environ.get(COMPOSE_SETTING, "docker compose"))
    done = subprocess.run([*command, "version"], capture_output=True, check=False)
    if done.returncode:
        missing(f"Docker Compose; {COMPOSE_SETTING} may name its command")
    return command


@contextmanager
def built_image(folder: Path, base: str) -> Iterator[str]:
    """The image of the platform, built as docs/cluster.md says, and removed at the end."""
    if built := os.environ.get(BUILT_SETTING):
        yield built
        return
    source = folder / "source"
    build_wheel(source)
    private = source / ".state"
    private.mkdir()
    (private / SECRET_FILE).write_text(secrets.token_hex())
    name = f"secure-streams-test:{secrets.token_hex(4)}"
    options = shlex.split(os.environ.get(BUILD_SETTING, ""))
    file = source / "deploy" / "cluster" / "Dockerfile"
    arguments = ("--build-arg", f"PYTHON_IMAGE={base}", "--file", str(file), "--tag", name)
    docker("build", *options, *arguments, str(source))
    try:
        yield name
    finally:
        docker("rmi", name)


@dataclass(frozen=True)
class Visitor(Person):
    """A person at a terminal in a container of the platform's network."""

    container: str = ""

    def attempt(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run `secadmin` and return how it ended."""
        profile = f"SECADMIN_CONFIG={self.folder / 'profile'}"
        command = ["docker", "exec", "-i", "-e", profile, self.container, "secadmin", *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    def write(self, name: str, content: str) -> str:
        """Write a file; returns its path."""
        path = str(self.folder / name)
        shell = ("sh", "-c", 'cat >"$0"', path)
        docker("exec", "-i", self.container, *shell, text=content)
        return path

    def consume(self, output: str, *options: str) -> list[dict[str, Any]]:
        """The results of the subscription from its first on, each once, until `options` say."""
        place = (str(self.folder / output), "--from", "beginning")
        told = self.attempt("consume", *place, *options).stdout
        return [json.loads(line.partition("\t")[0]) for line in told.splitlines()]


@dataclass(frozen=True)
class Composed:
    """A running project of compose.yaml. `files` is what `write_cluster` wrote."""

    command: tuple[str, ...]
    project: str
    files: Path
    environment: Mapping[str, str]
    image: str

    def run(self, *arguments: str) -> str:
        """Run Compose; returns what it prints."""
        done = self.attempt(*arguments)
        assert done.returncode == 0, f"{arguments}: {(done.stdout + done.stderr)[-2000:]}"
        return done.stdout

    def attempt(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Compose and return how it ended."""
        file = str(ROOT / "deploy" / "cluster" / "compose.yaml")
        command = [*self.command, "--file", file, "--project-name", self.project, *arguments]
        environment = {**os.environ, **self.environment}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def services(self) -> list[str]:
        """The names of all services."""
        return self.run("config", "--services").split()

    def container(self, service: str) -> dict[str, Any]:
        """What Docker says of the container of a service."""
        identity = self.run("ps", "--all", "--quiet", service).strip()
        (found,) = json.loads(docker("inspect", identity))
        return dict(found)

    def address(self, service: str) -> str:
        """The address of a service in the network."""
        networks = self.container(service)["NetworkSettings"]["Networks"]
        return str(networks[f"{self.project}_streams"]["IPAddress"])

    def inside(self, service: str, *command: str, user: str = "") -> str:
        """Run a command in the container of a service."""
        chosen = ("--user", user) if user else ()
        return self.run("exec", "-T", *chosen, service, *command)

    def has_file(self, service: str, path: str) -> bool:
        """Whether a file is in the container of a service, and the container runs."""
        return self.attempt("exec", "-T", service, "test", "-s", path).returncode == 0

    @contextmanager
    def terminal(self, name: str = "terminal") -> Iterator[str]:
        """A container in the network for people: it has the platform's image and the CA."""
        name = f"{self.project}-{name}"
        address = Hosts().address
        docker(
            *("run", "--detach", "--name", name, "--network", f"{self.project}_streams"),
            *("--volume", f"{self.files / 'ingest' / 'ca.pem'}:{_CA}:ro"),
            *("--env", f"SECADMIN_URL=https://{address}:8443", "--env", f"SECADMIN_CA={_CA}"),
            *("--entrypoint", "sleep", self.image, "infinity"),
        )
        try:
            yield name
        finally:
            docker("rm", "--force", name)

    def visitor(self, name: str, terminal: str) -> Visitor:
        """Somebody at the terminal, with a folder of their own."""
        folder = _HOME / name
        docker("exec", terminal, "mkdir", "-m", "700", str(folder))
        return Visitor(name, folder, "", Path(_CA), container=terminal)


@contextmanager
def composed(folder: Path, images: Mapping[str, str], image: str) -> Iterator[Composed]:
    """Start all services, and remove them with all that they wrote."""
    if os.geteuid() != 0:
        missing("root: what a cluster's parts read belongs to their user")
    command = tuple(require_compose())
    files = folder / "cluster"
    write_cluster(files, Hosts())
    for each in (files, *files.rglob("*")):
        os.chown(each, OWNER, OWNER)
    environment = {f"{name}_IMAGE": other for name, other in images.items()}
    environment |= {"IMAGE": image, "CLUSTER": str(files), "PORT": str(free_port())}
    project = f"secure-streams-test-{secrets.token_hex(4)}"
    made = Composed(command, project, files, environment, image)
    try:
        made.run("up", "--detach")
        yield made
    finally:
        made.run("down", "--volumes", "--timeout", "0")

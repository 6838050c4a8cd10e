"""Compose, Kubernetes, systemd and Docker: whatever a file names exists, and no secret is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from configparser import RawConfigParser
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalog.engines import all_engines
from catalog.settings import Settings
from deploy.broker_memory import DEFAULT_HEAP_MB
from deploy.cluster_files import (
    CONTROLLER_HEAP_MB,
    DATA,
    JARS,
    KAFKA_DATA,
    PORTS,
    POSTGRESQL_PORT,
    SECADMIN_PORT,
    THERE,
    Hosts,
)
from deploy.cluster_files import write_cluster as write

ROOT = Path(__file__).parents[3]
CLUSTER = ROOT / "deploy" / "cluster"
COMPOSE = CLUSTER / "compose.yaml"
KUBERNETES = sorted((CLUSTER / "kubernetes").glob("*.yaml"))
UNITS = sorted((CLUSTER / "systemd").glob("*.service"))
OURS = "secure-streams"
IMAGES = {OURS, "apache/kafka:4.1.0", "postgres:17", "haproxy:3.0"}
# No value of these is a secret.
ENVIRONMENT = {"PRIMARY", "SECFILTER_READY_FILE"}
# Where the image of PostgreSQL has its data.
DATABASE = "/var/lib/postgresql/data"
HOSTS = Hosts()
NODES = (*HOSTS.kafka, *HOSTS.controllers)
SETTINGS = f"{THERE}/settings.toml"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the manifests mount, with one folder for each part."""
    folder = tmp_path_factory.mktemp("manifests") / "cluster"
    write(folder, HOSTS)
    return folder


@cache
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return found


@cache
def objects() -> tuple[dict[str, Any], ...]:
    return tuple(each for file in KUBERNETES for each in yaml.safe_load_all(file.read_text()))


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [each for each in objects() if each["kind"] == kind]


def pods() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The name, the whole, and the pod of each StatefulSet."""
    for each in of_kind("StatefulSet"):
        yield each["metadata"]["name"], each["spec"], each["spec"]["template"]["spec"]


def check_program(arguments: list[str], folder: Path) -> None:
    """A module of ours, with settings that this module can read."""
    module, option, settings = arguments[:3]
    assert find_spec(f"{module}.__main__") is not None
    assert (option, settings) == ("--settings", SETTINGS)
    read = Settings.load(folder / "settings.toml")
    if module == "secfilter":
        assert arguments[3] == "--engine"
        assert arguments[4] in all_engines(read.secfilter.spaces.count)
        assert folder.name == ("ingest" if arguments[4] == "ingest" else "query")
    else:
        assert module == "secadmin"
        assert folder.name in HOSTS.secadmin


def image_of(service: dict[str, Any]) -> str:
    """The image, where no variable names another one."""
    named = re.fullmatch(r"\$\{[A-Z_]+:-(.+)\}", service["image"])
    assert named is not None
    return named.group(1)


@pytest.mark.parametrize("name", compose()["services"])
def test_a_service_of_compose(name: str, parts: Path) -> None:
    whole, service = compose(), compose()["services"][name]
    image = image_of(service)
    assert image in IMAGES
    assert set(service.get("environment", {})) <= ENVIRONMENT
    assert set(service.get("depends_on", ())) <= set(whole["services"])
    assert set(service["networks"]) <= set(whole["networks"])
    mounted, kept = {}, {}
    for volume in service["volumes"]:
        source, target = re.fullmatch(r"(\$\{.*?\}[^:]*|[^:]+):([^:]+)(?::ro)?", volume).groups()  # type: ignore[union-attr]
        if source.startswith("${CLUSTER"):
            assert volume.endswith(":ro")
            mounted[target] = parts / source.partition("}/")[2]
            assert mounted[target].exists()
        elif source.startswith("./"):
            mounted[target] = CLUSTER / source
            assert mounted[target].is_file()
        else:
            assert source in whole["volumes"]
            kept[source] = target
    for argument in service.get("entrypoint", ()):
        assert "/" not in argument or mounted[argument].is_file()
    if image == OURS:
        check_program(service["command"], mounted[str(THERE)])
        assert set(kept.values()) == {str(DATA)}
    elif name in (*NODES, *HOSTS.postgresql):
        assert mounted[str(THERE)].name == name
        assert kept == {name: str(KAFKA_DATA if name in NODES else DATABASE)}


def test_compose_has_every_host_and_engine() -> None:
    names = set(compose()["services"])
    assert names == {
        *(*NODES, *HOSTS.postgresql, *HOSTS.secadmin),
        *(HOSTS.address, *all_engines(1)),
    }
    assert compose()["volumes"].keys() <= names | {"query"}
    assert compose()["services"]["postgresql-2"]["environment"]["PRIMARY"] == "postgresql-1"


@pytest.mark.parametrize("broker", HOSTS.kafka)
def test_compose_stops_brokers_before_controllers(broker: str) -> None:
    assert set(compose()["services"][broker]["depends_on"]) == set(HOSTS.controllers)


def test_the_one_address_leads_to_every_secadmin() -> None:
    servers = re.findall(
        r"^ *server (\S+) (\S+):(\d+)", (CLUSTER / "haproxy.cfg").read_text(), re.M
    )
    assert servers == [(host, host, str(SECADMIN_PORT)) for host in HOSTS.secadmin]
    assert f"bind :{SECADMIN_PORT}" in (CLUSTER / "haproxy.cfg").read_text()
    (service,) = (each for each in of_kind("Service") if each["metadata"]["name"] == HOSTS.address)
    selected = {
        name
        for name, spec, _ in pods()
        if service["spec"]["selector"].items() <= spec["template"]["metadata"]["labels"].items()
    }
    assert selected == {*HOSTS.secadmin}


@pytest.mark.parametrize("name", [name for name, _, _ in pods()])
def test_a_pod(name: str, parts: Path) -> None:
    spec, pod = next((spec, pod) for each, spec, pod in pods() if each == name)
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert spec["serviceName"] in {each["metadata"]["name"] for each in of_kind("Service")}
    assert pod["automountServiceAccountToken"] is False
    claims = {claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for volume in volumes.values():
        if secret := volume.get("secret"):
            folder = parts / secret["secretName"]
            assert folder.is_dir()
            assert all((folder / item["key"]).is_file() for item in secret.get("items", ()))
    for container in pod["containers"]:
        assert container["image"] in IMAGES
        assert {each["name"] for each in container.get("env", ())} <= ENVIRONMENT
        assert "valueFrom" not in str(container)
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        assert set(mounts.values()) <= volumes.keys() | claims
        ports = {port["name"] for port in container.get("ports", ())}
        probe = container.get("readinessProbe", {}).get("tcpSocket", {}).get("port")
        assert probe is None or probe in ports
        if container["image"] == OURS:
            own = parts / volumes[mounts[str(THERE)]]["secret"]["secretName"]
            check_program(container["args"], own)
            assert mounts[str(DATA)] in claims
        else:
            script = container["command"][-1]
            assert (CLUSTER / Path(script).name).is_file()
            assert mounts[str(Path(script).parent)] == "scripts"
            assert mounts[str(KAFKA_DATA if name in NODES else DATABASE)] in claims


def test_kubernetes_has_every_host_and_engine() -> None:
    assert {name for name, _, _ in pods()} == {
        *(*NODES, *HOSTS.postgresql, *HOSTS.secadmin, "ingest", "query")
    }
    engines = [
        container["name"]
        for name, _, pod in pods()
        if name in ("ingest", "query")
        for container in pod["containers"]
    ]
    assert sorted(engines) == sorted(all_engines(1))


def test_services_and_policies_lead_to_pods_and_ports() -> None:
    labels = [spec["template"]["metadata"]["labels"] for _, spec, _ in pods()]
    for service in of_kind("Service"):
        selector = service["spec"]["selector"]
        assert any(selector.items() <= each.items() for each in labels)
    parts = {each["part"] for each in labels}
    known = {PORTS.users, PORTS.platform, PORTS.controller, SECADMIN_PORT, POSTGRESQL_PORT}
    policed = set()
    for policy in of_kind("NetworkPolicy"):
        policed.add(policy["spec"]["podSelector"]["matchLabels"]["part"])
        for rule in policy["spec"].get("ingress", ()):
            assert {port["port"] for port in rule["ports"]} <= known
    assert policed == parts
    (kafka,) = (each for each in of_kind("NetworkPolicy") if each["metadata"]["name"] == "kafka")
    open_to_all = [rule for rule in kafka["spec"]["ingress"] if "from" not in rule]
    assert [rule["ports"] for rule in open_to_all] == [[{"port": PORTS.users}]]


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.stem)
def test_a_unit_of_systemd(file: Path, parts: Path) -> None:
    unit = RawConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(file.read_text())
    service = unit["Service"]
    source, target = service["BindReadOnlyPaths"].split(":")
    assert target == str(THERE)
    named = {"%l": "secadmin-1", "%i": "kafka-1"}.get(Path(source).name, Path(source).name)
    folder = parts / named
    assert folder.is_dir()
    data = KAFKA_DATA if "-kafka@" in file.stem else DATA
    assert service["BindPaths"] == f"/var/lib/{service['StateDirectory']}:{data}"
    assert service["ReadWritePaths"] == f"-{data}"
    assert service["Restart"] == "always"
    assert "Environment" not in service
    program = service["ExecStart"].split()
    if program[0].endswith("python"):
        assert program[1] == "-m"
        arguments = [each.replace("%i", "query-1") for each in program[2:]]
        check_program(arguments, folder)
    else:
        assert (CLUSTER / Path(program[-1]).name).is_file()


def test_a_broker_has_the_heap_for_which_its_settings_are_made(parts: Path) -> None:
    assert f"java @{THERE}/heap.args" in (CLUSTER / "kafka.sh").read_text()
    for nodes, heap in ((HOSTS.kafka, DEFAULT_HEAP_MB), (HOSTS.controllers, CONTROLLER_HEAP_MB)):
        told = {(parts / node / "heap.args").read_text() for node in nodes}
        assert told == {f'"-Xmx{heap}m"'}


def test_a_node_keeps_its_log_where_it_keeps_its_data() -> None:
    assert f"-Dkafka.logs.dir={KAFKA_DATA}/" in (CLUSTER / "kafka.sh").read_text()


def test_the_image_is_made_of_the_wheel() -> None:
    text = (CLUSTER / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (.+) \S+$", text, re.M)
    assert copied == ["constraints.txt dist/secure_streams-*.whl"]
    assert (ROOT / "constraints.txt").is_file()
    sent = (ROOT / ".dockerignore").read_text().split("\n*\n")[1].split()
    assert sent == [f"!{each}" for each in copied[0].split()]
    assert 'name = "secure-streams"' in (ROOT / "pyproject.toml").read_text()
    assert f"python -m deploy.class_archive {JARS}\n" in text
    assert SETTINGS in text


@pytest.mark.parametrize(
    "file", [COMPOSE, *KUBERNETES, *UNITS, CLUSTER / "Dockerfile"], ids=lambda file: file.name
)
def test_no_secret_is_an_argument_or_in_the_environment(file: Path) -> None:
    """Passwords are in files alone: anybody on a machine may read arguments."""
    assert not re.search(r"password[^.\n]*[:=] *\S|secretKeyRef", file.read_text(), re.I)

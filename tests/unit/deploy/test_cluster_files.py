"""The files of a platform on several machines: each part has what its settings name, no more."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path, PurePosixPath

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from sqlalchemy import make_url

from catalog.audit_key import AuditKey
from catalog.settings import SETTINGS_FORM, KafkaAccount, Settings
from deploy.cluster_files import PORTS, THERE, Hosts, write_cluster
from deploy.errors import DeployError
from secadmin.kafka.connect import REQUEST_TIMEOUT_S

HOSTS = Hosts(address="streams.example")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster") / "files"
    write_cluster(folder, HOSTS, engines=2)
    return folder


def settings_of(written: Path, part: str) -> Settings:
    return Settings.load(written / part / "settings.toml")


def here(written: Path, part: str, there: Path) -> Path:
    """Where a file is that the part finds below `THERE`."""
    return written / part / PurePosixPath(there).relative_to(THERE)


@pytest.mark.parametrize("part", HOSTS.secadmin)
def test_secadmin_finds_all_that_its_settings_name(written: Path, part: str) -> None:
    settings = settings_of(written, part)
    kafka, own = settings.kafka, settings.secadmin
    accounts = (kafka.secadmin, kafka.ingest, kafka.query, kafka.audit)
    named = [kafka.ca_file, own.certificate_file, own.key_file, own.ca_file, own.audit_key_file]
    named += [account.password_file for account in accounts]
    assert all(here(written, part, file).is_file() for file in named)
    AuditKey.load(here(written, part, own.audit_key_file))
    assert kafka.replication == 3
    assert settings.secfilter.spaces.count == 2
    # It makes no result ids.
    assert not here(written, part, settings.secfilter.id_key_file).exists()


@pytest.mark.parametrize("part", ["ingest", "query"])
def test_an_engine_has_its_own_secrets_alone(written: Path, part: str) -> None:
    settings = settings_of(written, part)
    account: KafkaAccount = getattr(settings.kafka, part)
    found = {file.name for file in (written / part).iterdir()}
    assert found == {"settings.toml", "ca.pem", "result-id.key", account.password_file.name}
    assert make_url(settings.catalog_url).username == part
    assert settings.engine_catalogs == {}
    others = settings_of(written, HOSTS.secadmin[0])
    for url in (others.catalog_url, *others.engine_catalogs.values()):
        if make_url(url).username != part:
            assert str(make_url(url).password) not in (written / part / "settings.toml").read_text()


def test_all_secadmins_have_the_same_keys_and_passwords(written: Path) -> None:
    one, other = (written / part for part in HOSTS.secadmin)
    differ = {f.name for f in one.iterdir() if f.read_bytes() != (other / f.name).read_bytes()}
    assert differ == {"certificate.pem", "key.pem"}


def test_the_nodes_of_kafka_are_one_cluster(written: Path) -> None:
    nodes = {}
    for host in (*HOSTS.kafka, *HOSTS.controllers):
        lines = (written / host / "server.properties").read_text().splitlines()
        nodes[host] = dict(line.split("=", 1) for line in lines)
    assert len({found["node.id"] for found in nodes.values()}) == len(nodes)
    voters = ",".join(
        f"{nodes[host]['node.id']}@{host}:{PORTS.controller}" for host in HOSTS.controllers
    )
    for host, found in nodes.items():
        controls = host in HOSTS.controllers
        assert found["process.roles"] == ("controller" if controls else "broker")
        port = PORTS.controller if controls else PORTS.users
        assert f"://{host}:{port}" in found["advertised.listeners"]
        assert ("CONTROLLER://" in found["listeners"]) == controls
        assert ("CLIENTS://" in found["listeners"]) == (not controls)
        assert found["controller.quorum.voters"] == voters
        assert "controller.quorum.bootstrap.servers" not in found
        assert found["min.insync.replicas"] == "2"
        assert found["transaction.state.log.replication.factor"] == "3"
        assert found["unclean.leader.election.enable"] == "false"
        assert int(found["controller.socket.timeout.ms"]) < REQUEST_TIMEOUT_S * 1000
    ids = set()
    for host in nodes:
        arguments = (written / host / "format.args").read_text().splitlines()
        ids.add(arguments[arguments.index('"--cluster-id"') + 1])
        assert '"--standalone"' not in arguments
        assert ('"--add-scram"' in arguments) == (host in HOSTS.controllers)
    assert len(ids) == 1


def test_certificates_have_the_names_by_which_servers_are_reached(written: Path) -> None:
    ca = x509.load_pem_x509_certificate((written / "authority" / "ca.pem").read_bytes())
    issuer = ca.public_key()
    assert isinstance(issuer, ec.EllipticCurvePublicKey)
    for host in (*HOSTS.kafka, *HOSTS.controllers, *HOSTS.postgresql, *HOSTS.secadmin):
        pem = (written / "authority" / f"{host}.pem").read_bytes()
        certificate = x509.load_pem_x509_certificate(pem)
        certificate.verify_directly_issued_by(ca)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        expected = [host, HOSTS.address] if host in HOSTS.secadmin else [host]
        assert names.value.get_values_for_type(x509.DNSName) == expected


def test_the_settings_of_each_part_say_their_form(written: Path) -> None:
    files = list(written.rglob("settings.toml"))
    assert len(files) == len(HOSTS.secadmin) + 2
    assert {tomllib.loads(file.read_text())["version"] for file in files} == {SETTINGS_FORM}


def test_only_their_owner_reads_them(written: Path) -> None:
    for path in written.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_keys_that_may_be_in_use_are_not_overwritten(written: Path) -> None:
    with pytest.raises(DeployError, match="not empty"):
        write_cluster(written, HOSTS)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ({"controllers": ("a", "b")}, "odd number"),
        ({"kafka": ("a", "b", "a")}, "a name of its own"),
        ({"secadmin": ("kafka-1", "s")}, "a name of its own"),
    ],
)
def test_hosts_that_cannot_be(names: dict[str, tuple[str, ...]], told: str) -> None:
    with pytest.raises(DeployError, match=told):
        Hosts(**names)  # type: ignore[arg-type]

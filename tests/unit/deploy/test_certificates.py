"""The CA and the server certificates: what clients check, and who may read what."""

import stat
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from deploy.certificates import LIFETIME, ServerCertificate, ensure_certificates


def _servers(folder: Path) -> list[ServerCertificate]:
    made = ensure_certificates(folder)
    return [made.broker, made.secadmin]


@pytest.mark.parametrize(
    "name", [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
)
def test_chains_to_the_ca_for_each_name(
    tmp_path: Path, name: x509.DNSName | x509.IPAddress
) -> None:
    for server in _servers(tmp_path):
        certificate, ca = x509.load_pem_x509_certificates(server.certificate.read_bytes())
        verifier = PolicyBuilder().store(Store([ca])).build_server_verifier(name)
        assert verifier.verify(certificate, []) == [certificate, ca]


def test_is_refused_for_another_name_and_another_ca(tmp_path: Path) -> None:
    here, there = _servers(tmp_path / "a")[0], _servers(tmp_path / "b")[0]
    certificate, own = x509.load_pem_x509_certificates(here.certificate.read_bytes())
    other = x509.load_pem_x509_certificates(there.certificate.read_bytes())[1]
    for ca, host in ((own, "example.org"), (other, "localhost")):
        verifier = PolicyBuilder().store(Store([ca])).build_server_verifier(x509.DNSName(host))
        with pytest.raises(VerificationError):
            verifier.verify(certificate, [])


def test_key_store_holds_a_pkcs8_key_then_the_chain(tmp_path: Path) -> None:
    for server in _servers(tmp_path):
        text = server.key_store.read_text()
        assert text.startswith("-----BEGIN PRIVATE KEY-----")
        assert text == server.key.read_text() + server.certificate.read_text()
        key = load_pem_private_key(server.key.read_bytes(), None)
        leaf = x509.load_pem_x509_certificate(server.certificate.read_bytes())
        assert key.public_key() == leaf.public_key()


def test_servers_have_keys_of_their_own(tmp_path: Path) -> None:
    broker, secadmin = _servers(tmp_path)
    assert broker.key.read_bytes() != secadmin.key.read_bytes()


def test_only_the_owner_reads(tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    ensure_certificates(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


def test_is_made_once(tmp_path: Path) -> None:
    first = ensure_certificates(tmp_path).ca.read_bytes()
    assert ensure_certificates(tmp_path).ca.read_bytes() == first


@pytest.mark.parametrize("lost", ["ca.key", "broker.pem", "secadmin.store.pem"])
def test_is_made_anew_when_a_file_is_lost(tmp_path: Path, lost: str) -> None:
    first = ensure_certificates(tmp_path).ca.read_bytes()
    (tmp_path / lost).unlink()
    assert ensure_certificates(tmp_path).ca.read_bytes() != first
    assert (tmp_path / lost).exists()


@pytest.mark.parametrize(("days_left", "renewed"), [(31, False), (29, True), (-1, True)])
def test_is_renewed_in_its_last_month(tmp_path: Path, days_left: int, renewed: bool) -> None:
    issued = datetime.now(UTC)
    first = ensure_certificates(tmp_path, issued).ca.read_bytes()
    later = issued + LIFETIME - timedelta(days=days_left)
    assert (ensure_certificates(tmp_path, later).ca.read_bytes() != first) is renewed

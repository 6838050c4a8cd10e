"""The deployment's own certificate authority, and the server certificates that it signs."""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from catalog.private_file import write_private
from deploy.files import private_folder

LIFETIME = timedelta(days=825)
RENEW_BEFORE = timedelta(days=30)
# Clocks differ and are put right; a certificate from the future is refused.
CLOCK_LEEWAY = timedelta(days=1)
HOST_NAMES = ("localhost",)
ADDRESSES = ("127.0.0.1",)


@dataclass(frozen=True)
class ServerCertificate:
    """Files of one server: the certificate with its chain, its key, and both in one.

    Attributes:
        certificate: PEM, server certificate first, then the CA's. Public.
        key: PEM, PKCS#8, mode 0600.
        key_store: PKCS#8 key and chain in one PEM file, the form Kafka reads; mode 0600.
    """

    certificate: Path
    key: Path
    key_store: Path


@dataclass(frozen=True)
class Certificates:
    """The CA that clients trust and the certificates of the two servers."""

    ca: Path
    broker: ServerCertificate
    secadmin: ServerCertificate


def ensure_certificates(folder: Path, now: datetime | None = None) -> Certificates:
    """Give the certificates in `folder`, making them where they are missing or nearly expired.

    Args:
        folder: Private folder (made with mode 0700).
        now: The current time, with time zone; the system clock by default.
    """
    moment = now or datetime.now(UTC)
    private_folder(folder)
    result = Certificates(
        ca=folder / "ca.pem", broker=_files(folder, "broker"), secadmin=_files(folder, "secadmin")
    )
    if not _all_current(result, folder / "ca.key", moment):
        _issue_all(result, folder / "ca.key", moment)
    return result


def issue_certificates(folder: Path, hosts: Mapping[str, Sequence[str]]) -> Path:
    """Make a new CA, and a certificate that it signs for each server; returns the CA's file.

    Args:
        folder: Private folder (made with mode 0700), in which there is no CA yet.
        hosts: By the name of each server, the host names by which it is reached.
    """
    moment = datetime.now(UTC)
    private_folder(folder)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca = _authority(ca_key, moment)
    write_private(folder / "ca.key", _key_pem(ca_key))
    for name, own in hosts.items():
        _issue(_files(folder, name), name, own, (ca, ca_key), moment)
    return write_private(folder / "ca.pem", _pem(ca))


def _files(folder: Path, name: str) -> ServerCertificate:
    return ServerCertificate(
        certificate=folder / f"{name}.pem",
        key=folder / f"{name}.key",
        key_store=folder / f"{name}.store.pem",
    )


def _all_current(files: Certificates, ca_key: Path, moment: datetime) -> bool:
    servers = (files.broker, files.secadmin)
    paths = [files.ca, ca_key, *(p for s in servers for p in (s.certificate, s.key, s.key_store))]
    if not all(path.exists() for path in paths):
        return False
    loaded = [
        x509.load_pem_x509_certificate(p.read_bytes())
        for p in paths
        if p.suffix == ".pem" and not p.name.endswith(".store.pem")
    ]
    return all(cert.not_valid_after_utc - RENEW_BEFORE > moment for cert in loaded)


def _issue_all(files: Certificates, ca_key_file: Path, moment: datetime) -> None:
    """Make a new CA and sign everything anew; one CA with one lifetime is easier to reason about
    than certificates of several ages."""
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca = _authority(ca_key, moment)
    write_private(ca_key_file, _key_pem(ca_key))
    for name, server in (("broker", files.broker), ("secadmin", files.secadmin)):
        _issue(server, name, HOST_NAMES, (ca, ca_key), moment)
    # Last: its presence says that the rest was written.
    write_private(files.ca, _pem(ca))


def _issue(
    server: ServerCertificate,
    name: str,
    hosts: Sequence[str],
    authority: tuple[x509.Certificate, ec.EllipticCurvePrivateKey],
    moment: datetime,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _builder(_name(name), authority[0].subject, key.public_key(), moment)
    chain = _pem(_server(subject, hosts, authority[1])) + _pem(authority[0])
    write_private(server.key, _key_pem(key))
    write_private(server.key_store, _key_pem(key) + chain)
    write_private(server.certificate, chain)


def _authority(key: ec.EllipticCurvePrivateKey, moment: datetime) -> x509.Certificate:
    name = _name("secure streams CA")
    usage = _key_usage(signs_certificates=True)
    return (
        _builder(name, name, key.public_key(), moment)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _server(
    subject: x509.CertificateBuilder,
    hosts: Sequence[str],
    ca_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    alternatives: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
    alternatives += [x509.IPAddress(ipaddress.ip_address(address)) for address in ADDRESSES]
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return (
        subject.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        # CLIENT_AUTH too: the broker is a client of itself.
        .add_extension(
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            ),
            critical=False,
        )
        .add_extension(issuer, critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, moment: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - CLOCK_LEEWAY)
        .not_valid_after(moment + LIFETIME)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )

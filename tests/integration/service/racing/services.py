"""Several SecAdmins on one database and one Kafka, each a process of its own."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

from catalog.settings import KafkaAccount, Settings
from deploy.certificates import ensure_certificates
from deploy.environment import ROOT
from deploy.files import private_folder
from deploy.ports import LOOPBACK, free_port
from deploy.processes import LogTail, ManagedProcess
from deploy.readiness import healthy, wait_until
from deploy.settings import Table, write_settings

_WAIT_S = 120.0


@dataclass(frozen=True)
class RunningService:
    """A service: where it is called, and its process."""

    url: str
    process: ManagedProcess


@contextmanager
def started(settings: Settings, folder: Path, count: int) -> Iterator[list[RunningService]]:
    """`count` services, whose logs are in `folder`."""
    private_folder(folder)
    with ExitStack() as stack:
        yield [
            stack.enter_context(_service(settings, folder, f"secadmin{n}")) for n in range(count)
        ]


def client(url: str, folder: Path) -> httpx.Client:
    """A client of a service; it waits for as long as a service may wait for locks."""
    trusted = ssl.create_default_context(cafile=str(_ca(folder)))
    # A service closes a connection that was idle for five seconds.
    limits = httpx.Limits(keepalive_expiry=2)
    return httpx.Client(base_url=url, verify=trusted, timeout=90, limits=limits)


def _ca(folder: Path) -> Path:
    return ensure_certificates(folder / "certificates").ca


@contextmanager
def _service(settings: Settings, folder: Path, name: str) -> Iterator[RunningService]:
    port = free_port()
    file = write_settings(_table(settings, folder, port), folder / f"{name}.toml")
    process = ManagedProcess(name, folder)
    log = LogTail(process.log)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "secadmin", "--settings", str(file)]
    process.start(command, {"PYTHONPATH": path}, folder=folder)
    try:
        wait_until(lambda: healthy(LOOPBACK, port, _ca(folder)), process, log, _WAIT_S)
        yield RunningService(f"https://{LOOPBACK}:{port}", process)
    finally:
        process.stop()


def _table(settings: Settings, folder: Path, port: int) -> Table:
    certificates = ensure_certificates(folder / "certificates")
    kafka = settings.kafka
    return {
        "catalog": {"url": settings.catalog_url},
        "kafka": {
            "bootstrap": kafka.bootstrap,
            "clients_bootstrap": kafka.users_bootstrap,
            "removes_users": kafka.removes_users,
            "replication": kafka.replication,
            "ca_file": str(kafka.ca_file),
            "secadmin": _account(kafka.secadmin),
            "ingest": _account(kafka.ingest),
            "query": _account(kafka.query),
            "audit": _account(kafka.audit),
        },
        "secadmin": {
            "host": LOOPBACK,
            "port": port,
            "certificate_file": str(certificates.secadmin.certificate),
            "key_file": str(certificates.secadmin.key),
            "ca_file": str(certificates.ca),
            "first_password_file": str(settings.secadmin.first_password_file),
            "audit_key_file": str(settings.secadmin.audit_key_file),
            "audit_heads_file": str(settings.secadmin.audit_heads_file),
        },
        "secfilter": {
            "master": settings.secfilter.master,
            "jars": str(settings.secfilter.jars),
            "checkpoints": str(settings.secfilter.checkpoints),
            "id_key_file": str(settings.secfilter.id_key_file),
        },
        # All tests share the database, and its streams.
        "limits": {**asdict(settings.limits), "user": asdict(settings.user_limits)},
    }


def _account(account: KafkaAccount) -> Table:
    return {"username": account.username, "password_file": str(account.password_file)}

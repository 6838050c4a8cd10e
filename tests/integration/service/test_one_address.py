"""Several SecAdmins behind one address, which HAProxy is with the settings of `deploy/cluster`."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from catalog.settings import Settings
from deploy.cluster_files import SECADMIN_PORT
from deploy.environment import ROOT
from deploy.ports import LOOPBACK, free_port
from deploy.processes import ManagedProcess
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, decided_by_postgresql
from tests.integration.service.racing.services import RunningService, client, started
from tests.requirements import missing
from tests.waiting import wait_until

pytestmark = [embedded_only, decided_by_postgresql, pytest.mark.long]

# Two checks of HAProxy that fail, and as much again on a busy machine.
NOTICED_S = 60.0
CALLS = 20


def test_one_of_two_is_lost_and_calls_go_on(
    admin: Api, service_settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "services"
    headers = {"Authorization": f"Bearer {admin.token}"}
    with (
        started(service_settings, folder, 2) as (first, second),
        one_address(folder, [first, second]) as url,
        client(url, folder) as calls,
    ):

        def is_answered() -> bool:
            try:
                # A connection of its own, for which HAProxy chooses.
                own = {**headers, "Connection": "close"}
                return calls.get("/roles", headers=own, timeout=5).status_code == 200
            except httpx.HTTPError:
                return False

        wait_until(is_answered, "somebody answers", NOTICED_S)
        send(second, signal.SIGSTOP)
        wait_until(
            lambda: all(is_answered() for _ in range(CALLS)), "the first answers all", NOTICED_S
        )
        send(second, signal.SIGCONT)
        first.process.kill()
        wait_until(
            lambda: all(is_answered() for _ in range(CALLS)), "the second answers all", NOTICED_S
        )
        second.process.kill()
        assert not is_answered()


def send(service: RunningService, number: signal.Signals) -> None:
    """Send a signal to the process of a service."""
    assert service.process.mark is not None
    service.process.mark.signal(number)


@contextmanager
def one_address(folder: Path, services: list[RunningService]) -> Iterator[str]:
    """HAProxy in front of these services: its address."""
    program = shutil.which("haproxy") or missing("haproxy")
    port = free_port()
    text = (ROOT / "deploy" / "cluster" / "haproxy.cfg").read_text()
    text = text.replace(f"bind :{SECADMIN_PORT}", f"bind {LOOPBACK}:{port}")
    for number, service in enumerate(services, start=1):
        place = service.url.removeprefix("https://")
        text, count = re.subn(rf"secadmin-{number}:{SECADMIN_PORT}", place, text)
        assert count == 1
    settings = folder / "haproxy.cfg"
    settings.write_text(text)
    process = ManagedProcess("haproxy", folder)
    process.start([program, "-db", "-f", str(settings)])
    try:
        yield f"https://{LOOPBACK}:{port}"
    finally:
        process.stop()

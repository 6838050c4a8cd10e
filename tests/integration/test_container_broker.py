"""The broker in a container: what fails to start says why, and leaves nothing behind."""

from pathlib import Path

import pytest
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.labels import LABEL_SESSION_ID, SESSION_ID

from deploy.errors import DeployError
from tests.integration.container_broker import ContainerBroker, require_image


def _containers() -> set[str]:
    """Ids of this test session's containers, ended ones too."""
    client = DockerClient().client
    try:
        ours = {"label": f"{LABEL_SESSION_ID}={SESSION_ID}"}
        return {str(found.id) for found in client.containers.list(all=True, filters=ours)}
    finally:
        client.close()


def test_what_cannot_start_says_why_and_is_removed(tmp_path: Path) -> None:
    broker = ContainerBroker(require_image(), tmp_path)
    (tmp_path / "certificates" / "broker.store.pem").write_text("no key")
    before = _containers()
    with pytest.raises(DeployError, match=r"ended while starting: .*(PEM|key)"):
        broker.start()
    assert _containers() == before

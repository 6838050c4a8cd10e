"""What the integration tests share: one real broker at a time, embedded, then in a container."""

from collections.abc import Iterator

import pytest

from deploy.broker import BrokerSettings, EmbeddedBroker
from deploy.runtime import Runtime, ensure_runtime
from tests.integration.brokers import CONTAINER, EMBEDDED, HEAP_MB, Broker
from tests.integration.container_broker import ContainerBroker, require_image


@pytest.fixture(scope="session")
def runtime() -> Runtime:
    """Java and the jars, fetched on first use."""
    return ensure_runtime()


@pytest.fixture(scope="session", params=[EMBEDDED, CONTAINER])
def broker(
    request: pytest.FixtureRequest, runtime: Runtime, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A running broker of this test session, on a free port, with a state folder of its own."""
    state = tmp_path_factory.mktemp("broker")
    settings = BrokerSettings(state, 0, runtime.java, runtime.jars.broker, HEAP_MB)
    started = (
        EmbeddedBroker(settings)
        if request.param == EMBEDDED
        else ContainerBroker(require_image(), state)
    )
    with started as running:
        yield running

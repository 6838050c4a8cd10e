"""What the integration tests share: one real broker for the whole run."""

from collections.abc import Iterator

import pytest

from deploy.broker import BrokerSettings, EmbeddedBroker
from deploy.runtime import Runtime, ensure_runtime


@pytest.fixture(scope="session")
def runtime() -> Runtime:
    """Java and the jars, fetched on first use."""
    return ensure_runtime()


@pytest.fixture(scope="session")
def broker(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A running broker of this test session, on a free port, with a state folder of its own."""
    state = tmp_path_factory.mktemp("broker")
    settings = BrokerSettings(state, 0, runtime.java, runtime.jars.broker)
    with EmbeddedBroker(settings) as running:
        yield running

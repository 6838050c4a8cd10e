"""What the integration tests share: one real broker at a time, embedded, then in a container."""

from collections.abc import Iterator

import pytest

from deploy.broker import BrokerSettings, EmbeddedBroker
from deploy.runtime import Runtime, ensure_runtime
from tests.integration.brokers import CONTAINER, EMBEDDED, HEAP_MB, Broker
from tests.integration.container_broker import ContainerBroker, require_image
from tests.lanes import is_long

# Who gets what, as Kafka itself decides it. In the sample lane only these run in the container too.
_OF_KAFKA = (
    *("kafka/test_fence.py", "kafka/test_rights.py", "test_broker.py", "test_container_broker.py"),
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the second broker to the long lane, but for the tests of what Kafka itself decides."""
    if is_long():
        return
    here = "tests/integration/"
    of_kafka = tuple(here + name for name in _OF_KAFKA)
    left_out = [
        item
        for item in items
        if item.nodeid.startswith(here)
        and not item.nodeid.startswith(of_kafka)
        and hasattr(item, "callspec")
        and item.callspec.params.get("broker") == CONTAINER
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


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

"""The settings of a platform whose engines use a Spark cluster, as an operator writes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.broker import BrokerSettings, EmbeddedBroker
from deploy.runtime import Runtime
from deploy.settings import Table, local_kafka, write_settings
from tests.integration.brokers import HEAP_MB
from tests.spark_cluster import SparkCluster


@contextmanager
def on_a_cluster(runtime: Runtime, folder: Path, cluster: SparkCluster) -> Iterator[Path]:
    """The settings file, with a broker of its own: two platforms cannot share one Kafka."""
    state = folder / "kafka"
    options = BrokerSettings(state, 0, runtime.java, runtime.jars.broker, HEAP_MB)
    with EmbeddedBroker(options) as broker:
        kafka = local_kafka(
            broker.platform_bootstrap, broker.bootstrap, broker.ca_file, broker.secadmin
        )
        table: Table = {"kafka": kafka, "secfilter": cluster.settings}
        yield write_settings(table, folder / "operator.toml")

"""Rights that come and go on a platform whose engines use a Spark cluster."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from deploy.runtime import Runtime
from deploy.scenario.listener import Listener
from deploy.scenario.story import PARKED
from tests.integration.flowing import Reader, await_that
from tests.integration.on_a_cluster import on_a_cluster
from tests.integration.test_without_gaps import EACH, QUERIES, exchanging
from tests.lanes import number_of
from tests.spark_cluster import SparkCluster, spark_cluster

__all__ = ["spark_cluster"]

ROLES = {"bob": ("one",), "still": ("one",)}
# Records that flow after each revocation.
AFTER = 40


@pytest.mark.long
def test_nothing_arrives_after_any_of_many_revocations(
    runtime: Runtime, tmp_path: Path, spark_cluster: SparkCluster
) -> None:
    """The right to the second stream comes and goes. In the middle a worker is lost."""
    turns = number_of("CLUSTER_REVOCATIONS", sample=2, long=50)
    with (
        on_a_cluster(runtime, tmp_path, spark_cluster) as settings,
        exchanging(runtime, tmp_path / "state", ROLES, {EACH: QUERIES[EACH]}, settings) as exchange,
    ):
        admin, flow = exchange.admin, exchange.flow
        bob, still = (exchange.subscribe(name, name) for name in ROLES)
        for reader in (bob, still):
            await_that(reader.is_fed, "its class is fed")
        hostile = Listener(bob.listener.folder, "parked", PARKED).start()
        try:
            flow.start()
            await_that(partial(bob.has, "one", 0, AFTER), "the first stream flows")
            for turn in range(turns):
                if turn == turns // 2:
                    spark_cluster.kill(0)
                    spark_cluster.add_worker()
                admin.run("grant", "bob", "READ TUPLE", "stream", "two")
                granted = flow.count("two")
                await_that(partial(got, bob, granted), "the second stream comes")
                admin.run("revoke", "bob", "READ TUPLE", "stream", "two")
                returned = flow.count("two")
                await_that(lambda: flow.count("two") > returned + AFTER, "records flow")  # noqa: B023
                late = {n for n in bob.numbers("two") if n >= returned}
                late |= {n for n in numbers_of(hostile) if n >= returned}
                assert late == set(), f"turn {turn}: came after the revocation"
            flow.close()
            for reader in (bob, still):
                await_that(partial(reader.has, "one", 0, flow.count("one")), "all of the first")
        finally:
            hostile.close()


def got(reader: Reader, number: int, stream: str = "two") -> bool:
    """Whether a record of the stream with this number or a later one has come."""
    return max(reader.numbers(stream), default=-1) >= number


def numbers_of(listener: Listener) -> set[int]:
    """The numbers of the second stream's records that came."""
    values = [each.value for each in tuple(listener.deliveries)]
    return {value["n"] for value in values if value["stream"] == "two"}

"""The scenario of seed 004 §4.1 on the whole platform, with plain Kafka consumers and kcat.

What must arrive is computed here, from the input files, in plain Python. On a Spark cluster a
worker is killed before the revocation.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import confluent_kafka
import pytest

from catalog.store import Catalog
from deploy.runtime import Runtime
from deploy.scenario.story import BATCH_MS, Story
from deploy.settings import local_kafka, write_settings
from deploy.stack import Stack, StackOptions
from tests.integration.brokers import CONTAINER, EMBEDDED
from tests.integration.cluster.kafka_cluster import running
from tests.integration.cluster.whole_platform import table_of
from tests.integration.container_broker import ContainerBroker, require_image
from tests.integration.on_a_cluster import on_a_cluster
from tests.integration.results import Result, expected, last_day_sent, only, received
from tests.integration.trail import Commands, assert_all_stand_in, assert_tampering_shows
from tests.postgresql_pair import pair
from tests.requirements import missing
from tests.spark_cluster import SparkCluster, spark_cluster

__all__ = ["spark_cluster"]


CLUSTER, BROKERS, ALL = "Spark cluster", "three brokers", "all of it on clusters"
_LONG = (EMBEDDED, CONTAINER, BROKERS, ALL)
# A worker's tasks begin anew elsewhere after less than a minute, on slow machines after two.
_BACK_S = 300.0


@pytest.fixture(params=[CLUSTER, *(pytest.param(each, marks=pytest.mark.long) for each in _LONG)])
def elsewhere(
    request: pytest.FixtureRequest, runtime: Runtime, tmp_path: Path
) -> Iterator[Path | None]:
    """Settings as an operator writes them: of a Kafka elsewhere, of a Spark cluster, of all parts.

    Without them, all of the platform is on this machine and its own.
    """
    if request.param == EMBEDDED:
        yield None
        return
    if request.param == CLUSTER:
        with on_a_cluster(runtime, tmp_path, request.getfixturevalue("spark_cluster")) as settings:
            yield settings
        return
    if request.param == BROKERS:
        with running(tmp_path / "kafka", runtime) as brokers:
            yield write_settings({"kafka": brokers.table}, tmp_path / "operator.toml")
        return
    if request.param == ALL:
        workers = request.getfixturevalue("spark_cluster")
        with running(tmp_path / "kafka", runtime) as brokers, pair() as database:
            database.confirm_on_both()
            yield write_settings(table_of(brokers, workers, database), tmp_path / "operator.toml")
        return
    # Its own: two platforms on one Kafka would take each other's ACLs for left-overs.
    with ContainerBroker(require_image(), tmp_path / "container") as broker:
        table = local_kafka(
            broker.platform_bootstrap, broker.bootstrap, broker.ca_file, broker.secadmin
        )
        yield write_settings({"kafka": table}, tmp_path / "operator.toml")


@pytest.fixture
def lose_a_machine(request: pytest.FixtureRequest) -> Callable[[], None]:
    """Kill one of two workers of Spark with all that it runs. Elsewhere nothing is lost."""
    if request.node.callspec.params["elsewhere"] != CLUSTER:
        return lambda: None
    cluster: SparkCluster = request.getfixturevalue("spark_cluster")
    return partial(cluster.kill, 0)


@pytest.fixture
def story(runtime: Runtime, elsewhere: Path | None, tmp_path: Path) -> Iterator[Story]:
    """The platform, started as `deploy demo` does it, on free ports."""
    options = StackOptions(
        tmp_path / "state", broker_port=0, secadmin_port=0, settings=elsewhere, batch_ms=BATCH_MS
    )
    with Stack(options, runtime) as stack:
        told = Story(stack, print)
        try:
            yield told
        finally:
            told.close()


def test_the_scenario(
    story: Story,
    lose_a_machine: Callable[[], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog = Catalog(story.stack.settings.catalog_url)
    commands = Commands(catalog)
    commands.watch(monkeypatch)
    story.admit()
    story.define()
    story.query()
    story.send(1999, 2003)
    before_bob = last_day_sent(story)
    al = expected(before_bob)
    assert {label for *_, label in al} == {"1", "2", "3"}
    story.listeners["al"].wait_for(al.total())
    assert received(story.listeners["al"].deliveries) == al

    refused = story.people["bob"].attempt("subscribe", "out1", "--dir", str(tmp_path / "out1"))
    assert refused.returncode and not (tmp_path / "out1").exists()
    story.share()
    story.send(2004, 2010)
    bob = only("1", expected(last_day_sent(story), before_bob))
    story.listeners["bob"].wait_for(bob.total())
    assert received(story.listeners["bob"].deliveries) == bob
    parked = story.listeners["parked"]

    lose_a_machine()
    story.revoke_while_sending([2011, 2012, 2013])
    al = expected(last_day_sent(story))
    story.listeners["al"].wait_for(al.total(), _BACK_S)
    for name in ("bob", "parked"):
        story.listeners[name].wait_for_refusal()
        late = [d for d in story.listeners[name].deliveries if d.offset >= story.fenced_at]
        assert late == [], f"{name} received what was written after the revocation"
    assert parked.refusals, "the parked consumer was let go"

    story.restore()
    bob = only("1", expected(last_day_sent(story), before_bob))
    story.listeners["bob"].wait_for(bob.total())
    assert received(story.listeners["bob"].deliveries) == bob
    assert received(story.listeners["al"].deliveries) == al
    assert by_kcat(story.people["bob"].folder / "out1", tmp_path) == bob
    assert {d.label for d in story.listeners["bob"].deliveries} == {"1"}

    verified = story.people["joe"].ask("audit", "verify")
    assert verified["intact"] is True
    assert all(anchor["newest"] and not anchor["behind"] for anchor in verified["anchors"])
    assert_all_stand_in(catalog)
    silent = [(who, what) for who, what, entries in commands.added if not entries]
    assert len(commands.added) > 30 and silent == [], "decided and not written down"
    assert_tampering_shows(catalog, tmp_path, story.stack.settings.secadmin)
    catalog.close()


def by_kcat(folder: Path, scratch: Path) -> Counter[Result]:
    """What kcat, which knows only what `subscribe` wrote, reads from the beginning."""
    if shutil.which("kcat") is None:
        missing("kcat")
    group = json.loads((folder / "subscription.json").read_text())["group_prefix"] + "kcat"
    topic = json.loads((folder / "subscription.json").read_text())["topic_pattern"]
    command = ["kcat", "-F", str(folder / "librdkafka.conf"), "-X", "auto.offset.reset=earliest"]
    done = subprocess.run(
        [*command, "-G", group, "-e", "-q", "-f", "%h\t%s\n", topic],
        env={**os.environ, "LD_LIBRARY_PATH": str(newer_librdkafka(scratch))},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    results: Counter[Result] = Counter()
    seen = set()
    for line in done.stdout.splitlines():
        pairs, _, text = line.partition("\t")
        marks = dict(pair.split("=", 1) for pair in pairs.split(",") if "=" in pair)
        if "fence" in marks or marks["id"] in seen:
            continue
        seen.add(marks["id"])
        value = json.loads(text)
        key = (value["window_start"], value["percent"], value["days"], value["volume"])
        results[(*key, marks["label"])] += 1
    return results


def newer_librdkafka(scratch: Path) -> Path:
    """A folder with the library of the confluent-kafka wheel, under the name that kcat loads.

    Debian 12's own librdkafka cannot log in with SCRAM to Kafka 4 (mended in 2.6.1).
    """
    bundled = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    library = next(bundled.glob("librdkafka*.so*"))
    (scratch / "librdkafka.so.1").symlink_to(library)
    return scratch

"""The whole platform on PostgreSQL, where SecAdmin, ingest and the query engines have a role each.

The scenario runs, and engines are killed and come back, with no right but those of
`catalog.engine_rights`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import ProgrammingError

from catalog.engines import FIRST, INGEST
from deploy.broker import BrokerSettings, EmbeddedBroker
from deploy.runtime import Runtime
from deploy.scenario.story import BATCH_MS, Story
from deploy.settings import local_kafka, write_settings
from deploy.stack import Stack, StackOptions
from tests.integration.brokers import HEAP_MB
from tests.integration.results import expected, last_day_sent, only, received
from tests.postgresql import PostgresqlServer

PARTS = {"owner": "settings.toml", "ingest": "settings-ingest.toml", "query": "settings-query.toml"}
HIDDEN = ("users", "sessions", "grants", "audit", "refills")


@dataclass(frozen=True)
class Place:
    """A story, and the URL of each role in its database."""

    story: Story
    urls: Mapping[str, str]

    def role(self, part: str) -> str:
        """The name of the part's role."""
        return str(make_url(self.urls[part]).username)

    def connected(self) -> set[str]:
        """The roles that are connected to the database now."""
        engine = create_engine(_driver(self.urls["owner"]))
        query = "SELECT usename FROM pg_stat_activity WHERE datname = current_database()"
        with engine.connect() as connection:
            found = set(connection.scalars(text(query)))
        engine.dispose()
        return found


def _driver(url: str) -> str:
    made = make_url(url).set(drivername="postgresql+psycopg")
    return made.render_as_string(hide_password=False)


@pytest.fixture
def place(runtime: Runtime, postgresql: PostgresqlServer, tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "broker").mkdir()
    settings = BrokerSettings(tmp_path / "broker", 0, runtime.java, runtime.jars.broker, HEAP_MB)
    with EmbeddedBroker(settings) as broker, postgresql.owned_database("ingest", "query") as urls:
        kafka = local_kafka(
            broker.platform_bootstrap, broker.bootstrap, broker.ca_file, broker.secadmin
        )
        catalog = {
            "url": urls["owner"],
            "ingest": {"url": urls["ingest"]},
            "query": {"url": urls["query"]},
        }
        file = write_settings({"kafka": kafka, "catalog": catalog}, tmp_path / "operator.toml")  # type: ignore[dict-item]
        options = StackOptions(
            tmp_path / "state", secadmin_port=0, settings=file, batch_ms=BATCH_MS
        )
        with Stack(options, runtime) as stack:
            told = Story(stack, print)
            try:
                yield Place(told, urls)
            finally:
                told.close()


@pytest.mark.slow
@pytest.mark.long
def test_each_part_works_with_its_own_role(place: Place) -> None:
    story = place.story
    roles = {part: place.role(part) for part in PARTS}
    for part, name in PARTS.items():
        said = (story.stack.state / name).read_text()
        known = {each for each, role in roles.items() if role in said}
        assert known == (set(PARTS) if part == "owner" else {part}), name

    story.admit()
    story.define()
    story.query()
    story.send(1999, 2003)
    before_bob = last_day_sent(story)
    al = expected(before_bob)
    story.listeners["al"].wait_for(al.total())
    story.share()
    assert place.connected() == set(roles.values()), "each as itself"

    # The death of an engine is noted, its queries are tried, and go home.
    for engine in (FIRST, INGEST):
        story.stack.engines[engine].kill()
        story.stack.start_engines([engine])
    story.send(2004, 2010)
    al = expected(last_day_sent(story))
    bob = only("1", expected(last_day_sent(story), before_bob))
    story.listeners["al"].wait_for(al.total())
    story.listeners["bob"].wait_for(bob.total())
    assert received(story.listeners["al"].deliveries) == al
    assert received(story.listeners["bob"].deliveries) == bob

    story.revoke_while_sending([2011, 2012, 2013])
    story.listeners["al"].wait_for(expected(last_day_sent(story)).total())
    story.listeners["bob"].wait_for_refusal()
    late = [d for d in story.listeners["bob"].deliveries if d.offset >= story.fenced_at]
    assert late == []
    assert story.people["joe"].ask("audit", "verify")["intact"] is True
    assert place.connected() == set(roles.values())
    for part in ("ingest", "query"):
        _assert_hidden(place.urls[part])


def _assert_hidden(url: str) -> None:
    engine = create_engine(_driver(url))
    for table in HIDDEN:
        with engine.connect() as connection, pytest.raises(ProgrammingError, match="permission"):
            connection.execute(text(f"SELECT * FROM {table}"))
    engine.dispose()

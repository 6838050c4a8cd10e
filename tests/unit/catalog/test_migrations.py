"""The migrated tables are the models' tables."""

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import select, text

from catalog.analysis import analyse
from catalog.assignments import engine_of
from catalog.audit import AuditReport, Outcome, verify
from catalog.canonical import sharing_key
from catalog.engine import for_writing
from catalog.engines import FIRST
from catalog.errors import InvalidInput
from catalog.executions import to_join
from catalog.limits import MAX_RATE
from catalog.migrations import upgrade
from catalog.models import (
    Access,
    Assignment,
    Base,
    DeliveryClass,
    ExecutionRow,
    QueryRow,
    SenderRow,
    StreamRow,
)
from catalog.plan import Plan, Source
from catalog.pulse import beat
from catalog.relation import Relation, RelationKind
from catalog.runs import QueryRun
from catalog.schema import Attribute, Schema, Type
from catalog.sender_state import SenderState
from catalog.store import Catalog
from catalog.stored_form import to_stored
from catalog.wanted import generation, is_in_step, wanted_runs
from tests.audit_key import AUDIT_KEY


def insert(catalog: Catalog, rows: Iterable[str]) -> None:
    """Insert the rows: each is what follows INSERT INTO."""
    with for_writing(catalog.engine).begin() as connection:
        for row in rows:
            # What follows a colon would be a parameter.
            connection.execute(text(f"INSERT INTO {row}".replace(":", "\\:")))


# What other tests left for the garbage collector is not meant.
@pytest.mark.filterwarnings("error", "ignore::ResourceWarning")
def test_the_migrations_make_what_the_models_say(empty_url: str) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    upgrade(catalog.engine)
    with catalog.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    catalog.close()


def test_upgrading_again_changes_nothing(catalog: Catalog) -> None:
    catalog.record("joe", "x", "y", Outcome.ALLOWED)
    upgrade(catalog.engine)
    with catalog.read() as session:
        assert verify(session, AUDIT_KEY) == AuditReport(1)


def test_an_access_of_the_first_tables_keeps_its_topic_and_its_roles(empty_url: str) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    upgrade(catalog.engine, "v0_2_1")
    insert(catalog, _FIRST_ROWS.strip().splitlines())
    upgrade(catalog.engine)
    with catalog.read() as session:
        accesses = session.scalars(select(Access).order_by(Access.id))
        found = {
            row.principal: [(t.topic, t.class_id, bool(t.allowed_at)) for t in row.topics]
            for row in accesses
        }
        roles = [role.name for role in session.get_one(Access, 1).roles]
    catalog.close()
    assert roles == ["R"]
    assert found == {
        "output-told": [("out.o.c", 1, True)],
        "send-untold": [("in.s", None, False)],
        "output-ended": [],
        "output-nothing": [],
    }


_FIRST_ROWS = """
users VALUES (1, 'bob', '', false, false, 0, NULL, '2026-01-01')
roles VALUES (1, 'R')
objects VALUES (1, 'output', 'relation', 'o', 1, '2026-01-01', NULL, NULL)
delivery_classes VALUES (1, 1, 'c', 'out.o.c', '1', false, '2026-01-01', NULL)
accesses VALUES (1, 'output', 1, NULL, 1, 'output-told', 1, 'out.o.c', 'out.o.c', '2026-01-01', NULL, NULL)
accesses VALUES (2, 'send', 1, NULL, 1, 'send-untold', NULL, 'in.s', NULL, '2026-01-01', NULL, NULL)
accesses VALUES (3, 'output', 1, NULL, 1, 'output-ended', NULL, NULL, 'out.o.c', '2026-01-01', '2026-01-02', NULL)
accesses VALUES (4, 'output', 1, NULL, 1, 'output-nothing', NULL, NULL, NULL, '2026-01-01', NULL, NULL)
access_roles VALUES (1, 1)
"""  # noqa: E501 - a row a line


def test_the_first_tables_get_engines(empty_url: str) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    upgrade(catalog.engine, "v0_2_1")
    with for_writing(catalog.engine).begin() as connection:
        connection.execute(text("UPDATE generation SET value = 7, applied = 7"))
        connection.execute(text("INSERT INTO heartbeats (part, beats) VALUES ('runner', 3)"))
    upgrade(catalog.engine)
    with catalog.read() as session:
        assert generation(session) == 7
        assert not is_in_step(session), "no engine has told what it uses"
    with catalog.bookkeeping() as session:
        assert beat(session, FIRST) == 1
    catalog.close()


def test_a_stream_of_the_first_tables_goes_on_with_its_one_topic(empty_url: str) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    upgrade(catalog.engine, "v0_2_1")
    insert(catalog, _FIRST_STREAMS.strip().splitlines())
    upgrade(catalog.engine)
    with catalog.read() as session:
        senders = session.scalars(select(SenderRow)).all()
        found = [(row.stream_id, row.user_id, row.topic, row.state) for row in senders]
        assert found == [(2, None, "in.s", SenderState.ACTIVE)], "nothing of the removed stream"
        assert all(row.opened_at for row in senders)
        assert session.get_one(StreamRow, 2).shared
    catalog.close()


_FIRST_STREAMS = """
users VALUES (1, 'bob', '', false, false, 0, NULL, '2026-01-01')
objects VALUES (1, 'schema', 'schema', 'x', 1, '2026-01-01', NULL, NULL)
objects VALUES (2, 'stream', 'relation', 's', 1, '2026-01-01', NULL, NULL)
objects VALUES (3, 'stream', 'relation', 'gone', 1, '2026-01-01', '2026-01-02', NULL)
schemas VALUES (1, '{}')
streams VALUES (2, 1, '{}', '{}', 0, 1, 1, 1)
streams VALUES (3, 1, '{}', '{}', 0, 1, 1, 1)
"""


def test_the_topics_of_an_output_that_is_gone_are_removed(empty_url: str) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    upgrade(catalog.engine, "v0_2_4")
    insert(catalog, _CLASSES.strip().splitlines())
    upgrade(catalog.engine)
    with catalog.read() as session:
        rows = session.scalars(select(DeliveryClass))
        assert {row.name: bool(row.removed_at) for row in rows} == {"here": False, "there": True}
    catalog.close()


_CLASSES = """
users VALUES (1, 'bob', '', false, false, 0, NULL, '2026-01-01')
objects VALUES (1, 'output', 'relation', 'o', 1, '2026-01-01', '2026-01-01', NULL)
objects VALUES (2, 'output', 'relation', 'p', 1, '2026-01-01', '2026-01-01', '2026-01-02')
delivery_classes (id, output_id, name, topic, clearance, weak) VALUES (1, 1, 'here', 'a', '1', false)
delivery_classes (id, output_id, name, topic, clearance, weak) VALUES (2, 2, 'there', 'b', '1', false)
"""  # noqa: E501 - a row a line


def test_equal_queries_of_before_keep_their_runs_and_share_nothing(empty_url: str) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    upgrade(catalog.engine, "v0_2_12")
    insert(catalog, [*_QUERIES.strip().splitlines(), *map(_output, (5, 6)), *_ASSIGNED])
    upgrade(catalog.engine)
    with catalog.read() as session:
        runs = [run for run in wanted_runs(session) if isinstance(run, QueryRun)]
        assert [(run.name, run.output.name) for run in runs] == [
            ("query-5", "o5"),
            ("query-6", "o6"),
        ]
        assert [run.starting_offsets for run in runs] == [{"lab.s": {"0": 7}}] * 2
        assert len({run.plan for run in runs}) == 1
        assert engine_of(session, "query-6") == "query-2"
        assert [session.get_one(ExecutionRow, number).slots for number in (5, 6)] == [3, 3]
        key = sharing_key(analyse(runs[0].plan), None)
        assert to_join(session, key) is None
    with catalog.bookkeeping() as session:
        new = ExecutionRow(key="", plan={}, starting_offsets={}, slots=1)
        session.add(new)
        session.flush()
        assert new.id > 6, "no id is given again"
    catalog.close()


_SCHEMA = Schema((Attribute("a", Type.STRING),))
_READ = Relation(2, "s", RelationKind.STREAM, _SCHEMA, None, 0)
_QUERIES = """
users VALUES (1, 'bob', '', false, false, 0, NULL, '2026-01-01')
objects VALUES (1, 'schema', 'schema', 'x', 1, '2026-01-01', NULL, NULL)
objects VALUES (2, 'stream', 'relation', 's', 1, '2026-01-01', NULL, NULL)
objects VALUES (3, 'query', 'query', 'q3', 1, '2026-01-01', NULL, NULL)
objects VALUES (4, 'query', 'query', 'q4', 1, '2026-01-01', NULL, NULL)
objects VALUES (5, 'output', 'relation', 'o5', 1, '2026-01-01', NULL, NULL)
objects VALUES (6, 'output', 'relation', 'o6', 1, '2026-01-01', NULL, NULL)
queries (object_id, language, text, running, stopped_because) VALUES (3, 'sql', '', true, '')
queries (object_id, language, text, running, stopped_because) VALUES (4, 'sql', '', true, '')
"""
_ASSIGNED = (
    "assignments VALUES (5, 'query-1', 'query-1', 1, false, false, NULL, 0, 0, '', 5)",
    "assignments VALUES (6, 'query-2', 'query-2', 1, false, false, NULL, 0, 0, '', 6)",
)


def _output(number: int, placement: str | None = "sink") -> str:
    """An output of the query two numbers before, as tables of v0_2_12 have it.

    Those before v0_2_11 have no placement.
    """
    relation = replace(_READ, object_id=number, name=f"o{number}", kind=RelationKind.OUTPUT)
    stored = json.dumps(to_stored(relation)), json.dumps(to_stored(Plan(Source(_READ))))
    columns = "object_id, query_id, relation, plan, starting_offsets, slots, weak, retention_ms"
    offsets = json.dumps({"lab.s": {"0": 7}})
    values = f"{number}, {number - 2}, '{stored[0]}', '{stored[1]}', '{offsets}', 3, false, 1"
    if placement is None:
        return f"outputs ({columns}) VALUES ({values})"
    return f"outputs ({columns}, placement) VALUES ({values}, '{placement}')"


def test_what_is_on_trial_already_is_tried_alone(empty_url: str) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    upgrade(catalog.engine, "v0_2_6")
    outputs = [_output(number, None) for number in (5, 6)]
    insert(catalog, [*_QUERIES.strip().splitlines(), *outputs, *_ON_TRIAL])
    upgrade(catalog.engine)
    with catalog.read() as session:
        found = {row.execution_id: row for row in session.scalars(select(Assignment))}
        assert {number: row.trial_group for number, row in found.items()} == {5: 5, 6: 6}
        assert (found[5].on_trial, found[5].tried, found[5].tried_beat) == (True, True, 4)
    catalog.close()


_ON_TRIAL = (
    "assignments VALUES (5, 'query-1', 'probation', 1, true, true, 4, 1, 2, '')",
    "assignments VALUES (6, 'query-1', 'probation', 1, true, false, NULL, 0, 0, '')",
)


def test_a_query_that_named_a_role_is_still_for_this_role_alone(empty_url: str) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    upgrade(catalog.engine, "v0_2_13")
    insert(catalog, _NAMED.strip().splitlines())
    upgrade(catalog.engine)
    with catalog.read() as session:
        queries = {row.object_id: row for row in session.scalars(select(QueryRow))}
        found = {
            number: (row.narrowed, [r.name for r in row.as_roles], len(row.roles))
            for number, row in queries.items()
        }
        assert found == {3: (True, ["S"], 2), 4: (False, [], 1)}
        assert not session.get_one(StreamRow, 2).floored
        sender = session.get_one(SenderRow, 1)
        assert (sender.floor, sender.stamped, sender.lowered) == (None, None, False)
        assert session.get_one(DeliveryClass, 1).ways is None
    catalog.close()


_NAMED = """
users VALUES (1, 'bob', '', false, false, 0, NULL, '2026-01-01')
roles VALUES (1, 'R')
roles VALUES (2, 'S')
objects VALUES (1, 'schema', 'schema', 'x', 1, '2026-01-01', NULL, NULL)
objects VALUES (2, 'stream', 'relation', 's', 1, '2026-01-01', NULL, NULL)
objects VALUES (3, 'query', 'query', 'q3', 1, '2026-01-01', NULL, NULL)
objects VALUES (4, 'query', 'query', 'q4', 1, '2026-01-01', NULL, NULL)
objects VALUES (5, 'output', 'relation', 'o5', 1, '2026-01-01', NULL, NULL)
schemas VALUES (1, '{}')
streams VALUES (2, 1, '{}', '{}', 0, 1, 1, 1, false, NULL, NULL)
senders (id, stream_id, user_id, topic, state, readmits) VALUES (1, 2, 1, 'in.s.a', 'active', false)
queries VALUES (3, 'sql', '', true, '', 2)
queries VALUES (4, 'sql', '', true, '', NULL)
query_roles VALUES (3, 1)
query_roles VALUES (3, 2)
query_roles VALUES (4, 1)
delivery_classes (id, output_id, name, topic, clearance, weak) VALUES (1, 5, 'c', 'out.o5.c', '1', false)
"""  # noqa: E501 - a row a line


def test_a_stream_of_before_has_declared_no_rate(empty_url: str) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    upgrade(catalog.engine, "v0_2_22")
    insert(catalog, _BEFORE_RATES.strip().splitlines())
    upgrade(catalog.engine)
    with catalog.bookkeeping() as session:
        stream = session.get_one(StreamRow, 2)
        assert (stream.rate, stream.max_bytes, stream.floored) == (None, 7, True)
        stream.rate = MAX_RATE
    with catalog.read() as session:
        assert session.get_one(StreamRow, 2).rate == MAX_RATE
    catalog.close()


_BEFORE_RATES = """
users VALUES (1, 'bob', '', false, false, 0, NULL, '2026-01-01')
objects VALUES (1, 'schema', 'schema', 'x', 1, '2026-01-01', NULL, NULL)
objects VALUES (2, 'stream', 'relation', 's', 1, '2026-01-01', NULL, NULL)
schemas VALUES (1, '{}')
streams (object_id, schema_id, relation, record_format, max_ahead_ms, max_bytes, partitions, shared, floored, ingest_group) VALUES (2, 1, '{}', '{}', 0, 7, 1, false, true, 1)
"""  # noqa: E501 - a row a line


def test_tables_of_another_version_are_refused(catalog: Catalog) -> None:
    with for_writing(catalog.engine).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    with pytest.raises(InvalidInput, match=r"another version made .* 0001"):
        upgrade(catalog.engine)


def test_no_working_directory_and_no_plain_path_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "100% %(here)s"
    folder.mkdir()
    monkeypatch.chdir(folder)
    catalog = Catalog(f"sqlite:///{folder}/catalog.db", AUDIT_KEY)
    upgrade(catalog.engine)
    catalog.record("joe", "x", "y", Outcome.ALLOWED)
    catalog.close()
    assert sorted(os.listdir(folder)) == ["catalog.db"]  # noqa: PTH208 - names are wanted

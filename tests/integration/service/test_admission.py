"""What an engine cannot carry is refused when it is added or started, and says what is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fastapi.testclient import TestClient
from sqlalchemy import func, select

from catalog.admission import taken_slots
from catalog.engines import FIRST
from catalog.limits import Limits
from catalog.models import Object, StreamRow
from secadmin.control.platform import Platform
from secadmin.service.app import create_app
from tests.integration.service.conftest import Api, add_stream

Fresh = Callable[[str], str]


def test_a_query_that_is_too_much_by_itself_is_refused(admin: Api, fresh: Fresh) -> None:
    stream = fresh("in")
    add_stream(admin, stream, fresh("s"))
    many = " UNION ALL ".join([f"SELECT * FROM {stream}"] * 65)
    over = (
        f"SELECT count(*) AS n FROM {stream} GROUP BY HOP(ts, INTERVAL '1' DAY, INTERVAL '61' DAY)"
    )
    for text, words in ((many, "65 times, and may 64"), (over, "in 61 windows at once")):
        answer = admin.call(
            "POST", "/queries", json={"name": fresh("q"), "language": "sql", "text": text}
        )
        assert answer.status_code == 422
        assert words in answer.json()["detail"]


def free(platform: Platform) -> int:
    """How many slots are left beside all that other tests have added."""
    with platform.catalog.read() as session:
        return platform.limits.slots - taken_slots(session, [FIRST])[FIRST]


def test_each_partition_of_each_source_takes_a_slot(
    admin: Api, fresh: Fresh, platform: Platform
) -> None:
    stream, name = fresh("in"), fresh("q")
    before = free(platform)
    add_stream(admin, stream, fresh("s"))
    assert free(platform) == before, "ingest reads it in an engine of its own"
    both = f"SELECT * FROM {stream} UNION ALL SELECT * FROM {stream}"
    admin.post("/queries", name=name, language="sql", text=both)
    assert free(platform) == before - 2
    admin.post(f"/queries/{name}/stop")
    assert free(platform) == before
    admin.delete(f"/queries/{name}")
    admin.delete(f"/streams/{stream}")
    assert free(platform) == before


def test_a_full_engine_takes_and_starts_no_query(
    admin: Api, fresh: Fresh, platform: Platform
) -> None:
    stream, name = fresh("in"), fresh("q")
    add_stream(admin, stream, fresh("s"))
    text = f"SELECT * FROM {stream}"
    query = {"name": name, "language": "sql", "text": text}
    taken = platform.limits.slots - free(platform)
    full = create_app(replace(platform, limits=Limits(slots=taken)))
    with TestClient(full) as client:
        there = Api(client, admin.token)
        answer = there.call("POST", "/queries", json=query)
        assert answer.status_code == 409
        assert (
            f"takes 1 tasks, one for each partition of each of its sources, and 0 of {taken}"
            in (answer.json()["detail"])
        )
        admin.post("/queries", **query)
        there.post(f"/queries/{name}/start")  # it runs already
        admin.post(f"/queries/{name}/stop")
        assert there.call("POST", f"/queries/{name}/start").status_code == 409
    admin.post(f"/queries/{name}/start")


def test_a_full_ingest_takes_no_stream(admin: Api, fresh: Fresh, platform: Platform) -> None:
    stream, schema = fresh("in"), fresh("s")
    add_stream(admin, stream, schema)
    with platform.catalog.read() as session:
        taken = session.scalar(
            select(func.sum(StreamRow.partitions))
            .join(Object, Object.id == StreamRow.object_id)
            .where(Object.removed_at.is_(None))
        )
    full = create_app(replace(platform, limits=Limits(slots=taken or 0)))
    with TestClient(full) as client:
        more = {"name": fresh("in"), "schema": schema, "event_time": "ts"}
        answer = Api(client, admin.token).call("POST", "/streams", json=more)
    assert answer.status_code == 409
    assert "ingest is full: the stream takes 1 tasks" in answer.json()["detail"]
    assert f"and 0 of {taken} are free" in answer.json()["detail"]
    admin.delete(f"/streams/{stream}")

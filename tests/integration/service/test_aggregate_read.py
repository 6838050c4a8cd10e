"""READ AGGREGATE (004 §3.2): only through what the owner declared, and never the tuples."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import select

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.models import (
    Access,
    AccessTopic,
    CategoryRow,
    DeliveryClass,
    Object,
    OutputRow,
)
from catalog.plan import Plan, sources
from catalog.settings import Settings
from catalog.stored_form import from_stored
from catalog.topics import lab_topic
from secadmin.control.platform import Platform
from tests.integration.kafka.clients import secadmin_producer, write
from tests.integration.service.conftest import (
    Api,
    NewUser,
    add_stream,
    let_take_the_aggregate,
)

DECLARED = {"window_ms": 60_000, "keys": ["symbol"], "functions": ["avg", "count"], "minimum": 5}
RIGHTS = ("VIEW OBJECT", "SUBSCRIBE")
PLAIN = "SELECT symbol, price FROM {stream}"
FITS = """
SELECT window_start, symbol, avg(price) AS mean, count(*) AS n FROM {stream}
GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), symbol
"""
FILTERED = """
SELECT window_start, symbol, avg(price) AS mean FROM {stream} WHERE price > 10
GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), symbol
"""


def test_only_the_declared_aggregate_can_be_read(
    admin: Api, new_user: NewUser, platform: Platform, fresh: Callable[[str], str]
) -> None:
    stream, role = fresh("in"), fresh("R")
    add_stream(admin, stream, fresh("s"), declared_aggregate=DECLARED)
    let_take_the_aggregate(admin, stream)
    outputs = {}
    for text in (FITS, FILTERED, PLAIN):
        outputs[text] = fresh("q")
        admin.post("/queries", name=outputs[text], language="sql", text=text.format(stream=stream))
    analyst = new_user(role)
    grants = [("READ AGGREGATE", "stream", stream)]
    grants += [(right, "output", name) for name in outputs.values() for right in RIGHTS]
    for permission, kind, name in grants:
        admin.post("/grants", role=role, permissions=[permission], kind=kind, name=name)
    reached = {
        text: _clearance(platform, analyst.post(f"/outputs/{name}/subscriptions")["principal"])
        for text, name in outputs.items()
    }
    source, aggregated = _bits(platform, stream)
    assert reached == {FITS: Clearance.of(aggregated), FILTERED: None, PLAIN: None}
    assert not Clearance.of(aggregated).covers(Label.of(source)), "small groups stay hidden"
    admin.post(
        "/revocations", role=role, permissions=["READ AGGREGATE"], kind="stream", name=stream
    )
    again = analyst.post(f"/outputs/{outputs[FITS]}/subscriptions")["principal"]
    assert _clearance(platform, again) is None


def test_one_query_at_a_time_gives_it(
    admin: Api, new_user: NewUser, fresh: Callable[[str], str]
) -> None:
    """Two that were added one after the other would tell the tuples in between."""
    stream = fresh("in")
    add_stream(admin, stream, fresh("s"), declared_aggregate=DECLARED)
    let_take_the_aggregate(admin, stream)
    add = {"language": "sql", "text": FITS.format(stream=stream)}
    first, second = fresh("q"), fresh("q")
    admin.post("/queries", name=first, **add)
    refused = admin.call("POST", "/queries", json={"name": second, **add})
    assert refused.status_code == 409
    assert "the stream's declared aggregate is in use" in refused.json()["detail"]
    admin.post("/queries", name=fresh("q"), language="sql", text=FILTERED.format(stream=stream))
    admin.delete(f"/queries/{first}")
    admin.post("/queries", name=second, **add)


def test_who_may_not_read_it_neither_takes_it_nor_keeps_it_from_being_given_back(
    admin: Api, new_user: NewUser, fresh: Callable[[str], str]
) -> None:
    stream, schema, output, role = fresh("in"), fresh("s"), fresh("q"), fresh("R")
    add_stream(admin, stream, schema, declared_aggregate=DECLARED)
    developer = new_user(role)
    admin.post("/grants", role=role, kind="system", permissions=["ADD QUERY"])
    for kind, name in (("schema", schema), ("stream", stream)):
        admin.post("/grants", role=role, kind=kind, name=name, permissions=["VIEW OBJECT"])
    add = {"name": fresh("q"), "language": "sql", "text": FITS.format(stream=stream)}
    needs = "that needs READ AGGREGATE on the stream"

    def refused(body: dict[str, str]) -> bool:
        answer = developer.call("POST", "/queries", json=body)
        return answer.status_code == 403 and needs in answer.text and stream not in answer.text

    assert refused(add)
    # Whether somebody else has it already, it is told nothing of.
    let_take_the_aggregate(admin, stream)
    admin.post("/queries", **add | {"name": output})
    assert refused(add)
    admin.post("/grants", role=role, kind="output", name=output, permissions=RIGHTS)
    above = {"name": fresh("q"), "language": "sql", "text": f"SELECT mean FROM {output}"}
    assert refused(above), "what reads it keeps it from being removed"
    on_stream = {"role": role, "kind": "stream", "name": stream}
    admin.post("/grants", **on_stream, permissions=["READ AGGREGATE"])
    developer.post("/queries", **above)
    taken = developer.call("POST", "/queries", json=add)
    assert (taken.status_code, "in use" in taken.text, output in taken.text) == (409, True, False)


def test_what_a_query_may_have_seen_in_part_is_not_aggregated(
    admin: Api, platform: Platform, fresh: Callable[[str], str], service_settings: Settings
) -> None:
    stream = fresh("in")
    ahead_ms = 5_000
    add_stream(admin, stream, fresh("s"), declared_aggregate=DECLARED, max_ahead_ms=ahead_ms)
    let_take_the_aggregate(admin, stream)
    add = {"language": "sql", "text": FITS.format(stream=stream)}
    first, second = fresh("q"), fresh("q")
    admin.post("/queries", name=first, **add)
    assert _since_ms(platform, first) == 0, "there was nothing to miss"
    admin.delete(f"/queries/{first}")
    write(secadmin_producer(service_settings.kafka), lab_topic(stream), ["a tuple"])
    before = datetime.now(UTC).timestamp() * 1000
    admin.post("/queries", name=second, **add)
    assert _since_ms(platform, second) >= before + ahead_ms


def _since_ms(platform: Platform, output: str) -> int:
    """From when on the query's windows are whole."""
    with platform.catalog.read() as session:
        found = select(OutputRow).join(Object, Object.id == OutputRow.object_id)
        row = session.scalars(found.where(Object.name == output, Object.removed_at.is_(None))).one()
        (relation,) = sources(from_stored(Plan, row.plan))
    assert relation.declared is not None
    return relation.declared.since_ms


def _clearance(platform: Platform, principal: str) -> Clearance | None:
    """The clearance of the class that the principal reaches, None for no class."""
    with platform.catalog.read() as session:
        query = (
            select(DeliveryClass.clearance)
            .join(AccessTopic, AccessTopic.class_id == DeliveryClass.id)
            .join(Access, Access.id == AccessTopic.access_id)
            .where(Access.principal == principal)
        )
        wire = session.scalar(query)
    label = Label.from_wire(wire)
    return Clearance(label.bits) if label is not None else None


def _bits(platform: Platform, stream: str) -> tuple[int, int]:
    """The stream's two categories."""
    with platform.catalog.read() as session:
        rows = session.execute(
            select(CategoryRow.kind, CategoryRow.bit)
            .join(Object, Object.id == CategoryRow.stream_id)
            .where(Object.name == stream)
        )
        bits = {row.kind: row.bit for row in rows}
    return bits["source"], bits["aggregated"]

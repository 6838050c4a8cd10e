"""A tuple's whole way through the real broker: in, lab, quarantine, out."""

from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Literal
from catalog.plan import Filter, Source, Union
from catalog.runs import IngestRun
from catalog.schema import Type
from tests.integration.secfilter.plane import Plane, headers, tuple_at, values


def test_valid_tuples_reach_the_classes_that_may_see_them(plane: Plane) -> None:
    one, two = plane.stream(0), plane.stream(70)
    dear = Call(">", (AttributeRef("price"), Literal(5, Type.BIGINT)))
    plan = Filter(Union((Source(one.relation), Source(two.relation))), dear)
    run = plane.query(plan, Clearance.of(0), Clearance.of(70), Clearance.of(0, 70), labelled=True)
    plane.start(IngestRun("ingest-1", (one, two)))
    plane.start(run)
    plane.send(one, tuple_at(1, "a", 6), b"no JSON", tuple_at(2, "a", 5))
    plane.send(two, tuple_at(3, None, 7))

    both = plane.read(run.classes[2].topic, 2)
    assert sorted(values(both), key=repr) == [
        {"at": "2026-01-31T12:00:01.000000Z", "key": "a", "price": 6},
        {"at": "2026-01-31T12:00:03.000000Z", "key": None, "price": 7},
    ]
    (first,) = plane.read(run.classes[0].topic, 1)
    (second,) = plane.read(run.classes[1].topic, 1)
    assert values([first])[0]["price"] == 6 and values([second])[0]["price"] == 7
    assert first.key() is None
    assert [key for key, _ in headers(first)] == ["label", "id"]
    assert (headers(first)[0][1], headers(second)[0][1]) == ("1", "0,64")
    (refused,) = plane.read(f"quarantine.{one.relation.name}", 1)
    assert refused.value() == b"no JSON"
    lab = plane.read(run.output.topic, 2)
    ids = {dict(headers(m))["id"] for m in both}
    assert {(m.key() or b"").decode() for m in lab} == ids, "the id is the key"
    assert {key for m in lab for key, _ in headers(m)} == {"tuple-3"}

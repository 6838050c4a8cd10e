"""What is not well, as the commands tell it: to whom, how much."""

from __future__ import annotations

from catalog.engines import INGEST
from catalog.runs import RunReport
from catalog.store import Catalog
from catalog.wanted import report_faults, report_status
from tests.unit.secadmin.cli.people import NewUser
from tests.unit.secadmin.cli.running import Terminal

GONE = "the topic was deleted"


def catalog_of(admin: Terminal) -> Catalog:
    return Catalog(f"sqlite:///{admin.folder.parent}/service/catalog.db")


def test_health_says_to_administrators_alone_what_is_not_well(
    admin: Terminal, new_user: NewUser
) -> None:
    told = admin.json("health")
    assert told["status"] == "degraded"
    assert [problem["what"] for problem in told["problems"]] == [
        "engine ingest",
        "engine query-1",
        "engine probation",
    ]
    assert "engine ingest" in admin.ok("health")
    result = new_user("bob", "R").run("health")
    assert result.exit_code == 0 and result.stdout == "degraded\n"
    assert "CHANGE SYSTEM" in result.stderr


def test_a_stream_says_what_is_wrong_with_its_topics_and_what_was_refused(
    admin: Terminal, new_user: NewUser, stream: str
) -> None:
    catalog = catalog_of(admin)
    shown = admin.json("stream", "show", stream)
    assert (shown["problems"], shown["refused"]) == ([], 0)
    with catalog.bookkeeping() as session:
        report_faults(session, INGEST, {f"lab.{stream}": GONE, "in.other": GONE}, catalog.clock())
        for number in range(2, 9):
            report = RunReport("ingest-1", "running", counted={f"refused_{number}": 2})
            report_status(session, report, catalog.clock())
    shown = admin.json("stream", "show", stream)
    assert (shown["problems"], shown["refused"]) == ([f"lab.{stream}: {GONE}"], 2)
    viewer = new_user("bob", "R")
    admin.ok("grant", "R", "VIEW OBJECT", "stream", stream)
    shown = viewer.json("stream", "show", stream)
    assert shown["problems"] == [f"lab.{stream}: {GONE}"] and "refused" not in shown
    admin.ok("grant", "R", "READ TUPLE", "stream", stream)
    assert viewer.json("stream", "show", stream)["refused"] == 2
    catalog.close()


def test_a_query_is_unknown_while_the_runner_is_dead(admin: Terminal, output: str) -> None:
    shown = admin.json("query", "show", output)
    assert (shown["running"], shown["state"], shown["withheld"]) == (True, "unknown", {})
    assert [row["state"] for row in admin.json("query", "list")] == ["unknown"]

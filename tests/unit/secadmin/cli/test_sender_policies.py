"""policy sender: each data owner says who may see what it sends (000 §3 and §4.2)."""

from __future__ import annotations

import pytest

from catalog.runs import IngestRun
from catalog.wanted import wanted_runs
from tests.unit.secadmin.cli.people import NewUser
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import Service

STREAM = "vitals"


@pytest.fixture
def patients(admin: Terminal, new_user: NewUser) -> tuple[Terminal, Terminal]:
    """Two patients that send to one stream."""
    admin.ok("schema", "add", "s", "pulse:bigint")
    admin.ok("stream", "add", STREAM, "--schema", "s", "--label-rule", "SENDER")
    for role in ("doctor", "nurse", "PATIENT"):
        admin.ok("role", "add", role)
    admin.ok("grant", "PATIENT", "VIEW OBJECT", "SEND", "stream", STREAM)
    return new_user("p1", "PATIENT"), new_user("p2", "PATIENT")


def policies(service: Service) -> list[str | None]:
    """The policy of each sender, as ingest is told it."""
    with service.catalog.read() as session:
        runs = [run for run in wanted_runs(session) if isinstance(run, IngestRun)]
    streams = [each for run in runs for each in run.streams if each.relation.name == STREAM]
    return [sender.policy for of in streams for sender in of.senders if not sender.readmits]


def test_each_sender_has_a_policy_of_its_own(
    service: Service, patients: tuple[Terminal, Terminal]
) -> None:
    one, two = patients
    set_it = ("policy", "sender", STREAM)
    assert "nobody: you have set no policy" in one.ok(*set_it)
    said = one.ok(*set_it, "doctor & (doctor | nurse)", "--no-wait")
    assert said == f"what you send to {STREAM} is for doctor\n", "by the redundancy law"
    two.ok(*set_it, "nurse | doctor", "--no-wait")
    assert one.json(*set_it)["expression"] == "doctor"
    assert two.json(*set_it)["expression"] == "doctor | nurse"
    assert sorted(map(str, policies(service))) == ["doctor", "doctor | nurse"]
    one.ok(*set_it, "nurse", "--no-wait")
    assert sorted(map(str, policies(service))) == ["doctor | nurse", "nurse"]
    assert "refused until you set a policy" in one.ok(*set_it, "--remove")
    assert sorted(map(str, policies(service))) == ["None", "doctor | nurse"]


def test_ingest_has_it_before_the_command_ends(
    service: Service, patients: tuple[Terminal, Terminal]
) -> None:
    one, _ = patients
    one.ok("policy", "sender", STREAM, "doctor", "--no-wait")
    assert one.json("policy", "sender", STREAM)["applied"] is False
    service.feed_all()
    assert one.json("policy", "sender", STREAM)["applied"] is True
    one.ok("policy", "sender", STREAM, "nurse", "--no-wait")
    assert one.json("policy", "sender", STREAM)["applied"] is False


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("surgeon", "no role of that name"),
        ("doctor &", "its end is not expected"),
        ("", "its end is not expected"),
        ("|".join(f"(a{n}&b{n})" for n in range(20)), "more than 64 conditions"),
    ],
)
def test_a_policy_that_cannot_be_used_changes_nothing(
    service: Service, patients: tuple[Terminal, Terminal], expression: str, words: str
) -> None:
    one, _ = patients
    one.ok("policy", "sender", STREAM, "doctor", "--no-wait")
    refused = one.run("policy", "sender", STREAM, expression, "--no-wait")
    assert refused.exit_code != 0 and words in " ".join(refused.output.split())
    assert "doctor" in policies(service)


def test_it_is_for_senders_of_a_stream_that_asks_them(
    admin: Terminal, patients: tuple[Terminal, Terminal], new_user: NewUser
) -> None:
    one, _ = patients
    admin.ok("stream", "add", "plain", "--schema", "s")
    admin.ok("grant", "PATIENT", "VIEW OBJECT", "SEND", "stream", "plain")
    assert "does not ask its senders" in one.run("policy", "sender", "plain", "doctor").output
    viewer = new_user("vera", "VIEWER")
    admin.ok("grant", "VIEWER", "VIEW OBJECT", "stream", STREAM)
    assert viewer.run("policy", "sender", STREAM, "doctor", "--no-wait").exit_code == 4

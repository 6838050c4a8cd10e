"""Revocations of all kinds at random moments, while data flow, against honest and hostile clients.

`REVOCATION_COUNT` says how many (30, and 200 in the long lane), `REVOCATION_SEED` repeats what an
earlier run drew.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest
from fastapi.testclient import TestClient

from catalog.settings import Settings
from secadmin.control.platform import Platform
from secadmin.kafka.fence import Fence
from secadmin.service.app import create_app
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, NewUser
from tests.integration.service.revocations.keepers import Keepers
from tests.integration.service.revocations.library_clients import (
    Assigned,
    GroupMember,
    PatternFollower,
)
from tests.integration.service.revocations.party import ClientsOf, all_kinds, parked_alone
from tests.integration.service.revocations.raw_clients import (
    Fetcher,
    LoggingInAgain,
    SecondConnection,
)
from tests.integration.service.revocations.rounds import Rounds
from tests.integration.service.revocations.surroundings import Surroundings, flowing
from tests.integration.service.revocations.team import (
    LEVEL,
    NO_LEVEL,
    POLICY,
    SENDING,
    Objects,
    Team,
    new_objects,
    personal,
)
from tests.lanes import number_of

SEED = os.environ.get("REVOCATION_SEED") or secrets.token_hex(4)
COUNT = number_of("REVOCATION_COUNT", sample=30, long=200)
TEAMS, MEMBERS = 2, 3
# So many that a kind of which none was drawn is missing.
ENOUGH = 200
KINDS_OF_CLIENTS = {
    GroupMember,
    PatternFollower,
    Assigned,
    Fetcher,
    SecondConnection,
    LoggingInAgain,
}

Fresh = Callable[[str], str]


# Minutes long, and the broker's home does not matter here. The long lane runs it on both databases.
pytestmark = [pytest.mark.slow, embedded_only]


@pytest.fixture
def objects(admin: Api) -> Objects:
    return new_objects(admin)


@pytest.fixture
def surroundings(
    platform: Platform, service_settings: Settings, tmp_path: Path
) -> Iterator[Surroundings]:
    print(f"REVOCATION_SEED={SEED} repeats what was drawn here")
    with flowing(platform, service_settings.kafka, tmp_path) as around:
        yield around


@contextmanager
def teams(
    around: Surroundings, admin: Api, objects: Objects, size: tuple[int, int], clients: ClientsOf
) -> Iterator[list[Rounds]]:
    """Teams that have subscribed, each with a connection of its own to the service."""
    made: list[Rounds] = []
    with ExitStack() as stack:
        for number in range(size[0]):
            client = stack.enter_context(TestClient(create_app(around.platform)))
            team = Team.founded(Api(client, admin.token, admin.user), objects, size[1])
            made.append(Rounds(around, team, Random(f"{SEED}-{number}"), clients))
        try:
            for rounds in made:
                rounds.begin()
            yield made
        finally:
            for rounds in made:
                rounds.end()


def test_nothing_arrives_after_a_revocation(
    surroundings: Surroundings, admin: Api, objects: Objects, new_user: NewUser, fresh: Fresh
) -> None:
    role = fresh("K")
    keeper = new_user(role)
    for permission, kind, name in objects.rights:
        body = {"role": role, "permissions": [permission], "kind": kind, "name": name}
        admin.post("/grants", **body)
    keepers = Keepers(surroundings, objects, keeper)
    try:
        with teams(surroundings, admin, objects, (TEAMS, MEMBERS), all_kinds) as all_rounds:
            begin = time.monotonic()
            with ThreadPoolExecutor(TEAMS) as pool:
                list(pool.map(lambda one: _play(one, COUNT // TEAMS), all_rounds))
            print(f"{time.monotonic() - begin:.0f} s for", _told(all_rounds))
            # Where the broker gets no processor a fence fails, loudly; it is to be the exception.
            assert sum(rounds.unproven for rounds in all_rounds) <= COUNT // 10
        surroundings.flow.stop()
        keepers.expect_all()
        assert keepers.topics() <= surroundings.ledger.taken()
        if COUNT >= ENOUGH:
            expect_all_kinds(all_rounds)
        for rounds in all_rounds:
            assert rounds.leaks() == []
    finally:
        keepers.end()


def expect_all_kinds(all_rounds: Sequence[Rounds]) -> None:
    """Every kind of revocation was carried out, and every kind of client has read something."""
    team = all_rounds[0].team
    kinds = {one.name for one in personal(team.members[0])}
    kinds |= {SENDING, LEVEL, NO_LEVEL, POLICY, *(" ".join(right) for right in team.objects.rights)}
    assert {name for rounds in all_rounds for name in rounds.done} == kinds
    clients = [client for rounds in all_rounds for client in rounds.clients()]
    assert {type(client) for client in clients if client.received} == KINDS_OF_CLIENTS


def _play(rounds: Rounds, count: int) -> None:
    while len(rounds.done) < count:
        rounds.play()


def _told(all_rounds: list[Rounds]) -> Counter[str]:
    return Counter(name for rounds in all_rounds for name in rounds.done)


def test_without_the_fence_it_is_seen_to_arrive(
    surroundings: Surroundings,
    admin: Api,
    objects: Objects,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same, where a revocation does no more than to delete the ACL."""
    with teams(surroundings, admin, objects, (1, 2), parked_alone) as (rounds,):
        monkeypatch.setattr(Fence, "put_up", lambda fence, topics, take_away: take_away())
        with pytest.raises(AssertionError, match="leaked"):
            _play(rounds, 10)
        monkeypatch.undo()
        assert rounds.leaks() != []

"""A call that takes away has not returned before what it takes is gone, whoever took it first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from catalog.errors import Unavailable
from catalog.password_change import change_password
from secadmin.control import logins
from secadmin.kafka.access import PrincipalsOf
from tests.integration.kafka.clients import DENIED_TOPIC, parked_reader
from tests.integration.service.conftest import PASSWORD, Scene, decided_by_the_database, log_in
from tests.integration.service.takings import (
    TAKING,
    Taking,
    deactivate,
    revoke_tuples,
    take_role,
    unsubscribe,
)

GONE = "does not have the role|is active in|no access|not a direct junior"

pytestmark = decided_by_the_database


def hold_through_junior(scene: Scene) -> None:
    """Bob's role holds SUBSCRIBE on the output through a junior one."""
    junior = f"{scene.role}J"
    scene.admin.post("/roles", name=junior)
    scene.admin.post(f"/roles/{scene.role}/juniors", role=junior)
    right = {"permissions": ["SUBSCRIBE"], "kind": "output", "name": scene.output}
    scene.admin.post("/grants", role=junior, **right)
    scene.revoke("SUBSCRIBE", "output", scene.output)


def remove_junior(scene: Scene, principal: str) -> None:
    """Bob's role loses the junior one."""
    scene.admin.delete(f"/roles/{scene.role}/juniors/{scene.role}J")


@pytest.fixture
def kafka_away(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, nothing can be withdrawn."""

    def withdraw(principals_of: PrincipalsOf, banned: PrincipalsOf) -> None:
        raise Unavailable("Kafka is away")

    return lambda: monkeypatch.setattr(scene.platform.kafka, "withdraw", withdraw)


@pytest.mark.parametrize("take", TAKING, ids=lambda take: take.__name__)
def test_what_an_earlier_call_could_not_withdraw_fails_the_later_one(
    scene: Scene, take: Taking, kafka_away: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds nothing left to decide, and must not say that all is done."""
    credentials = scene.subscribe()
    kafka_away()
    with pytest.raises(AssertionError, match="Kafka is away"):
        revoke_tuples(scene, credentials.username)
    with pytest.raises(AssertionError, match="Kafka is away"):
        take(scene, credentials.username)
    monkeypatch.undo()
    scene.platform.alignment.align_pending()


@pytest.mark.parametrize(
    "take",
    [revoke_tuples, take_role, deactivate, unsubscribe, remove_junior],
    ids=lambda take: take.__name__,
)
def test_what_failed_can_be_called_again(
    scene: Scene, take: Taking, kafka_away: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that nothing is left to take only once that is true."""
    hold_through_junior(scene)
    credentials = scene.subscribe()
    topic = scene.topic(credentials.username)
    assert topic is not None
    with parked_reader(scene.settings.kafka, credentials, topic, 1) as hostile:
        kafka_away()
        for _ in range(2):
            with pytest.raises(AssertionError, match="Kafka is away"):
                take(scene, credentials.username)
        monkeypatch.undo()
        with nullcontext() if take is revoke_tuples else pytest.raises(AssertionError, match=GONE):
            take(scene, credentials.username)
        scene.write(topic, "x" * 200_000)
        hostile.read_until(lambda: DENIED_TOPIC in hostile.errors, "the refusal")
        assert hostile.values == []


def test_sessions_that_the_upkeep_ended_first_fail_the_change_of_the_password(
    scene: Scene, kafka_away: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the new password and the end of the accesses, the upkeep may have had its turn."""
    scene.subscribe()
    other = log_in(scene.bob, scene.bob.user, PASSWORD)

    def then_upkeep(*arguments: Any) -> tuple[int, ...]:
        ended = change_password(*arguments)
        with pytest.raises(Unavailable):
            logins.end_leftover_accesses(scene.platform)
        return ended

    kafka_away()
    monkeypatch.setattr("secadmin.control.logins.change_in_catalog", then_upkeep)
    body = {"old": PASSWORD, "new": PASSWORD + " 2"}
    assert other.call("POST", "/password", json=body).status_code == 503
    monkeypatch.undo()
    scene.platform.alignment.align_pending()

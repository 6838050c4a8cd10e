"""Sessions over HTTP: one-time passwords, roles, the end of a session."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore

import pytest

from secadmin.control.platform import Platform
from secadmin.service.hashing import MOST_WAITING, THREADS
from tests.integration.brokers import embedded_only
from tests.integration.kafka.clients import WAIT_S, until
from tests.integration.service.conftest import PASSWORD, Api, NewUser, log_in

pytestmark = embedded_only


def test_nothing_but_a_new_password_is_allowed_with_a_one_time_one(
    admin: Api, anonymous: Api
) -> None:
    one_time = admin.post("/users", name="newcomer")["password"]
    session = log_in(anonymous, "newcomer", one_time)
    assert session.get("/whoami")["must_change_password"] is True
    refused = session.call("GET", "/catalog")
    assert refused.status_code == 403
    assert "one-time password" in refused.json()["detail"]
    session.post("/password", old=one_time, new=PASSWORD)
    assert log_in(anonymous, "newcomer", PASSWORD).get("/whoami")["user"] == "newcomer"


def test_unknown_user_and_wrong_password_read_the_same(anonymous: Api) -> None:
    body = {"user": "admin", "password": "wrong"}
    wrong = anonymous.call("POST", "/login", json=body)
    unknown = anonymous.call("POST", "/login", json=body | {"user": "nobody-here"})
    assert wrong.status_code == unknown.status_code == 401
    assert wrong.json() == unknown.json()


def test_a_session_ends_with_logout(new_user: NewUser) -> None:
    session = new_user("VIEWER")
    session.post("/logout")
    assert session.call("GET", "/whoami").status_code == 401


def test_only_the_activated_roles_count(admin: Api, anonymous: Api, new_user: NewUser) -> None:
    both = new_user("VIEWER", "OTHER")
    one = log_in(anonymous, both.user, PASSWORD, ["OTHER"])
    assert one.get("/whoami")["roles"] == ["OTHER"]
    assert both.get("/whoami")["roles"] == ["OTHER", "VIEWER"]
    one.delete("/whoami/roles/OTHER")
    assert one.get("/whoami")["roles"] == []


def test_a_locked_user_is_out_at_once(admin: Api, new_user: NewUser, anonymous: Api) -> None:
    session = new_user("VIEWER")
    admin.post(f"/users/{session.user}/lock")
    assert session.call("GET", "/whoami").status_code == 401
    body = {"user": session.user, "password": PASSWORD}
    assert anonymous.call("POST", "/login", json=body).status_code == 401


def test_a_body_that_is_too_large_is_refused_unread(anonymous: Api) -> None:
    response = anonymous.call("POST", "/login", content=b"x" * 2_000_000)
    assert response.status_code == 413


def test_only_who_has_a_session_sends_more_than_a_login_needs(admin: Api, anonymous: Api) -> None:
    body = {"name": "q", "language": "sql", "text": "x" * 100_000}
    stranger = Api(anonymous.client, "a token that was never given out")
    for caller, status in ((anonymous, 413), (stranger, 413), (admin, 422)):
        assert caller.call("POST", "/queries", json=body).status_code == status
    assert admin.call("POST", "/queries", content=b"x" * 2_000_000).status_code == 413


def test_no_password_comes_back_in_an_error(anonymous: Api) -> None:
    response = anonymous.call(
        "POST", "/login", json={"user": "admin", "password": ["sesame-sesame"]}
    )
    assert response.status_code == 422
    assert "sesame" not in response.text


def test_a_flood_of_logins_keeps_nobody_from_revoking(
    admin: Api,
    anonymous: Api,
    platform: Platform,
    new_user: NewUser,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    victim, go_on, checking = new_user("VIEWER"), Event(), Semaphore(0)

    def check(password: str, password_hash: str | None) -> bool:
        checking.release()
        return go_on.wait(WAIT_S) and False

    monkeypatch.setattr(platform.passwords, "verify", check)
    body = {"user": "nobody-here", "password": "not this one"}
    with ThreadPoolExecutor(THREADS + MOST_WAITING + 1) as pool:
        try:
            flood = [
                pool.submit(anonymous.call, "POST", "/login", json=body)
                for _ in range(THREADS + MOST_WAITING + 1)
            ]
            for _ in range(THREADS):
                assert checking.acquire(timeout=WAIT_S), "the threads are taken"
            # One more than there is room for.
            until(lambda: any(login.done() for login in flood), "one to be turned away")
            admin.post(f"/users/{victim.user}/lock")
            assert anonymous.get("/health")["status"] in {"ok", "degraded"}
        finally:
            go_on.set()
    answers = sorted(login.result().status_code for login in flood)
    assert answers == [401] * (THREADS + MOST_WAITING) + [503]
    assert victim.call("GET", "/whoami").status_code == 401


def test_without_a_token_there_is_nothing(anonymous: Api) -> None:
    assert anonymous.call("GET", "/catalog").status_code == 401
    assert anonymous.call("GET", "/openapi.json").status_code == 401
    assert anonymous.get("/health")["status"] in {"ok", "degraded"}

"""Logging in and out, against the real service."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.secadmin.cli.people import PASSWORD, NewUser, terminal
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import Service


def test_login_by_prompt_and_what_is_kept(tmp_path: Path, service: Service) -> None:
    at = terminal(tmp_path / "admin", service)
    result = at.run("login", "admin", text=f"{service.first_password}\n")
    assert result.exit_code == 0
    assert "logged in as admin (ADMIN)" in result.stdout
    assert "secadmin passwd" in result.stderr
    assert service.first_password not in result.output
    # The server is remembered.
    assert json.loads(at.run("whoami", "--json", server="").stdout)["must_change_password"] is True
    result = at.run("passwd", text=f"{service.first_password}\n{PASSWORD}\n{PASSWORD}\n")
    assert result.exit_code == 0, result.output
    assert at.json("whoami")["must_change_password"] is False


def test_a_wrong_password_keeps_nothing(tmp_path: Path, service: Service) -> None:
    at = terminal(tmp_path / "p", service)
    result = at.run("login", "admin", "--password-stdin", text="wrong\n")
    assert (result.exit_code, result.stderr.count("\n")) == (3, 1)
    assert not (tmp_path / "p").exists()


def test_a_wrong_old_password_is_told_from_an_ended_session(admin: Terminal) -> None:
    result = admin.run("passwd", "--password-stdin", text=f"wrong\n{PASSWORD}\n")
    assert (result.exit_code, "old password" in result.stderr) == (3, True)
    admin.ok("whoami")


def test_login_ends_the_profiles_former_session(admin: Terminal, service: Service) -> None:
    token = json.loads((admin.folder / "session.json").read_text())["token"]
    result = admin.run("login", "admin", "--password-stdin", text=f"{PASSWORD}\n")
    assert "former session as admin" in result.stderr
    now = json.loads((admin.folder / "session.json").read_text())["token"]
    assert token != now


def test_logout_forgets_the_session(admin: Terminal) -> None:
    admin.ok("logout")
    assert admin.run("whoami").exit_code == 3


def test_roles_of_a_session(new_user: NewUser) -> None:
    bob = new_user("bob", "CUSTOMER 1", "CUSTOMER2")
    assert bob.json("whoami")["roles"] == ["CUSTOMER 1", "CUSTOMER2"]
    bob.ok("deactivate", "CUSTOMER 1")
    assert bob.json("whoami")["roles"] == ["CUSTOMER2"]
    bob.ok("login", "bob", "--role", "CUSTOMER 1", "--password-stdin", text=f"{PASSWORD}\n")
    assert bob.json("whoami")["roles"] == ["CUSTOMER 1"]


def test_a_forgotten_password(admin: Terminal, new_user: NewUser) -> None:
    bob = new_user("bob")
    made = admin.json("user", "reset-password", "bob")["password"]
    assert bob.run("whoami").exit_code == 3
    bob.ok("login", "bob", "--password-stdin", text=f"{made}\n")
    assert bob.json("whoami")["must_change_password"] is True
    assert "one-time password of bob: " in admin.ok("user", "reset-password", "bob")

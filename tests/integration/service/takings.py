"""All the ways in which a call takes an output from Bob."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.service.conftest import PASSWORD, Api, Scene, log_in

Taking = Callable[[Scene, str], None]


def revoke_tuples(scene: Scene, principal: str) -> None:
    """READ TUPLE on the stream is revoked from Bob's role."""
    scene.revoke("READ TUPLE", "stream", scene.stream)


def revoke_subscribe(scene: Scene, principal: str) -> None:
    """SUBSCRIBE on the output is revoked from Bob's role."""
    scene.revoke("SUBSCRIBE", "output", scene.output)


def revoke_view(scene: Scene, principal: str) -> None:
    """VIEW OBJECT on the output is revoked from Bob's role."""
    scene.revoke("VIEW OBJECT", "output", scene.output)


def take_role(scene: Scene, principal: str) -> None:
    """Bob loses his role."""
    scene.admin.delete(f"/users/{scene.bob.user}/roles/{scene.role}")


def remove_role(scene: Scene, principal: str) -> None:
    """Bob's role is removed."""
    scene.admin.delete(f"/roles/{scene.role}")


def lock(scene: Scene, principal: str) -> None:
    """Bob is locked."""
    scene.admin.post(f"/users/{scene.bob.user}/lock")


def log_out(scene: Scene, principal: str) -> None:
    """Bob logs out."""
    scene.bob.post("/logout")


def deactivate(scene: Scene, principal: str) -> None:
    """Bob deactivates his role."""
    scene.bob.delete(f"/whoami/roles/{scene.role}")


def unsubscribe(scene: Scene, principal: str) -> None:
    """Bob ends his subscription."""
    scene.bob.delete(f"/accesses/{principal}")


def turn_weak(scene: Scene, principal: str) -> None:
    """The output turns weak: its classes are closed."""
    scene.admin.put(f"/outputs/{scene.output}/semantics", weak=True)


def remove_query(scene: Scene, principal: str) -> None:
    """The output is removed, with its query."""
    query = scene.admin.get(f"/outputs/{scene.output}")["query"]
    scene.admin.delete(f"/queries/{query}")


def remove_stream(scene: Scene, principal: str) -> None:
    """The stream is removed, with the query that reads it."""
    remove_query(scene, principal)
    scene.admin.delete(f"/streams/{scene.stream}")


def change_password(scene: Scene, principal: str) -> None:
    """Bob changes his password in another session, which ends this one."""
    other = log_in(Api(scene.bob.client), scene.bob.user, PASSWORD)
    other.post("/password", old=PASSWORD, new=PASSWORD + " 2")


TAKING: tuple[Taking, ...] = (
    revoke_tuples,
    revoke_subscribe,
    revoke_view,
    take_role,
    remove_role,
    lock,
    log_out,
    deactivate,
    unsubscribe,
    turn_weak,
    remove_query,
    change_password,
)

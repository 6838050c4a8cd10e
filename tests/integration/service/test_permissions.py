"""Each permission that an operation asks for is taken away in turn: then the operation is refused.

What an operation asks for is learned from the authorizer while somebody who may do everything does
it. It is what docs/rights.md says: an operation that asks for less than it did fails here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from catalog.authorizer import Authorizer
from catalog.decision import Decision
from catalog.models import Object
from catalog.namespace import Namespace
from catalog.permission import APPLIES, ObjectKind, Permission
from catalog.subject import Subject
from secadmin.control.platform import Platform
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, NewUser, sqlite_only
from tests.integration.service.operations import NEED_A_RIGHT, Operation
from tests.integration.service.variants import Variant, variants
from tests.integration.service.world import World, all_powerful, changes, make_world
from tests.lanes import is_long

RIGHTS = Path(__file__).parents[3] / "docs" / "rights.md"
# What is asked for depends on neither the database nor the broker's home.
pytestmark = [embedded_only, sqlite_only]
# It decides on tuples alone: which class a subscription gets (test_aggregate_read.py).
OF_TUPLES = {(Permission.READ_AGGREGATE, ObjectKind.STREAM)}
# What one may do with SYSTEM oneself is nobody's secret.
ASKS_NOTHING = {("GET /explain", "system")}


@dataclass(frozen=True, order=True)
class Asked:
    """A permission on an object, which is named as in `World.names`."""

    permission: Permission
    kind: ObjectKind
    what: str

    def __str__(self) -> str:
        return f"{self.permission} on {self.kind}"


@dataclass
class Heard:
    """What the authorizer was asked for while it was listened to."""

    names: dict[str, str]
    asked: set[Asked] = field(default_factory=set)

    def add(self, permission: Permission, target: Object) -> None:
        """Note the question. That the system is there, everybody may see."""
        kind = ObjectKind(target.kind)
        if (permission, kind) != (Permission.VIEW_OBJECT, ObjectKind.SYSTEM):
            self.asked.add(Asked(permission, kind, self.names[target.name]))


@contextmanager
def listening(world: World) -> Iterator[set[Asked]]:
    """The authorizer decides as ever; what it was asked for is noted."""
    require, find = Authorizer.require, Authorizer.find
    heard = Heard({name: what for what, name in world.names.items()})

    def heard_require(
        self: Authorizer, subject: Subject, permission: Permission, target: Object
    ) -> Decision:
        heard.add(Permission.VIEW_OBJECT, target)
        heard.add(permission, target)
        return require(self, subject, permission, target)

    def heard_find(
        self: Authorizer, subject: Subject, place: ObjectKind | Namespace, name: str
    ) -> Object:
        found = find(self, subject, place, name)
        heard.add(Permission.VIEW_OBJECT, found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Authorizer, "require", heard_require)
        patch.setattr(Authorizer, "find", heard_find)
        yield heard.asked


@dataclass
class Stage:
    """A world and who may do everything in it; made anew when something was deleted there.

    `lacks` says whether something was deleted in it.
    """

    admin: Api
    new_user: NewUser
    world: World = field(init=False)
    user: Api = field(init=False)
    role: str = field(init=False)
    lacks: bool = field(init=False)

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Another world."""
        self.world = make_world(self.admin)
        self.user, self.role = all_powerful(self.world, self.new_user)
        self.lacks = False

    def whole(self) -> None:
        """Another world, if this one lacks something."""
        if self.lacks:
            self.renew()

    def does(self, operation: Operation, variant: Variant) -> set[Asked]:
        """What is asked for while the operation succeeds."""
        # A world takes a second and a half. In the sample lane, one that lacks what this operation
        # does not need does.
        if is_long():
            self.whole()
        response, asked = self._answer(operation, variant)
        if self.lacks and not response.is_success:
            self.renew()
            response, asked = self._answer(operation, variant)
        assert response.is_success, f"{operation} {variant}: {response.text}"
        # What was deleted is gone, and what is read now cannot be.
        self.lacks |= uses_up(operation, variant)
        return asked

    def _answer(self, operation: Operation, variant: Variant) -> tuple[httpx.Response, set[Asked]]:
        with listening(self.world) as asked:
            return variant.call(operation, self.world).send(self.user), asked

    def change(self, path: str, asked: Asked) -> None:
        """Grant or revoke what was asked for."""
        name = self.world.names[asked.what]
        body = {"permissions": [asked.permission], "kind": asked.kind, "name": name}
        self.admin.post(path, role=self.role, **body)


def uses_up(operation: Operation, variant: Variant) -> bool:
    """Whether the world lacks something after the operation has succeeded."""
    return operation.method == "DELETE" or variant.reads != "stream"


@pytest.fixture(scope="module")
def stage(admin: Api, new_user: NewUser) -> Stage:
    return Stage(admin, new_user)


Learned = dict[tuple[str, Variant], set[Asked]]


@pytest.fixture(scope="module")
def learned(stage: Stage) -> Learned:
    """What every operation asks for, in all its variants."""
    return {
        (str(operation), variant): stage.does(operation, variant)
        for operation in NEED_A_RIGHT
        for variant in variants(operation)
    }


def test_every_operation_asks_and_every_permission_is_asked_for(learned: Learned) -> None:
    silent = {(name, variant.kind) for (name, variant), asked in learned.items() if not asked}
    assert silent == ASKS_NOTHING
    asked_for = {(asked.permission, asked.kind) for all_ in learned.values() for asked in all_}
    there_are = {(permission, kind) for kind, held in APPLIES.items() for permission in held}
    assert asked_for == there_are - OF_TUPLES


def test_what_is_asked_for_is_what_the_documentation_says(learned: Learned) -> None:
    documented = [line for line in RIGHTS.read_text().splitlines() if line.startswith("| `")]
    assert list(rows(learned)) == documented


def rows(learned: Learned) -> Iterator[str]:
    """A row for each operation, and for each variant that asks for something else."""
    for operation in NEED_A_RIGHT:
        own = {v: asked for (name, v), asked in learned.items() if name == str(operation)}
        plain, *others = ((variant, _listed(asked)) for variant, asked in own.items())
        yield f"| `{operation}` | {plain[1]} |"
        yield from (f"| `{operation}` {v} | {asked} |" for v, asked in others if asked != plain[1])


def _listed(asked: set[Asked]) -> str:
    return ", ".join(sorted({str(each) for each in asked})) or "nothing"


@pytest.mark.parametrize("operation", NEED_A_RIGHT, ids=str)
def test_without_one_of_them_it_is_refused(
    operation: Operation, learned: Learned, stage: Stage, platform: Platform
) -> None:
    # In a query's text a hidden name is a mistake at its place, as one is that never was.
    refusals = (403, 404, 422) if "text" in (operation.in_body or ()) else (403, 404)
    for variant in variants(operation):
        # It is refused for want of the right, and not because something is gone.
        stage.whole()
        for asked in sorted(learned[str(operation), variant]):
            stage.change("/revocations", asked)
            before = changes(platform, stage.user.user)
            response = variant.call(operation, stage.world).send(stage.user)
            missing = f"{operation} {variant} without {asked}: {response.text}"
            assert response.status_code in refusals, missing
            assert changes(platform, stage.user.user) == before, missing
            stage.change("/grants", asked)
        # Another world takes a second and a half, and `learned` has seen that all rights do.
        if is_long() or not uses_up(operation, variant):
            stage.does(operation, variant)

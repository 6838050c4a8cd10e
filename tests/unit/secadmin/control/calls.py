"""Calls of users to the operations of SecAdmin over a catalog in which accesses are settled."""

from __future__ import annotations

import threading
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from types import SimpleNamespace
from typing import Any, cast

from catalog.limits import Limits
from catalog.models import Session
from catalog.sessions import token_hash
from catalog.user_limits import UserLimits
from secadmin.control.work import Caller
from tests.unit.secadmin.control.place import Place


class Calls:
    """A platform without Kafka; `told` has the topics that each call would align."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.told: list[set[str]] = []
        own = SimpleNamespace(
            catalog=place.catalog,
            alignment=self,
            refills_due=threading.Event(),
            limits=Limits(),
            user_limits=UserLimits(),
            clock=place.catalog.clock,
            pulse=SimpleNamespace(living=lambda _: set()),
            kafka=SimpleNamespace(
                create_stream_topics=lambda *_, **__: None, partitions=lambda _: {}
            ),
        )
        self.platform = cast(Any, own)

    def lock(self, _topics: Collection[str], _patience: object) -> AbstractContextManager[None]:
        """Nobody else is there."""
        return nullcontext()

    def align(self, topics: Collection[str]) -> None:
        self.told.append(set(topics))

    @cached_property
    def administrator(self) -> Caller:
        """A user who may change everything."""
        rights = ("CHANGE SYSTEM", "ADD CONFLICT CLASS", "ADD STREAM")
        return self.user("root", *rights)

    def user(self, name: str, *rights: str) -> Caller:
        """A new user with these rights on the system, in a session of its own."""
        world, role = self._place.world, f"{name}s"
        world.user(name, role)
        for right in rights:
            world.grant(role, right, "system system")
        login = world.session(name, role)
        world.edit(Session, login.id, token_hash=token_hash(f"token of {name}"))
        return Caller(f"token of {name}", name)

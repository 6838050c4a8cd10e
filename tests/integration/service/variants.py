"""The requests of one operation: with each optional part, about each kind of object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from catalog.permission import ObjectKind
from tests.integration.service.operations import Call, Operation
from tests.integration.service.world import World


@dataclass(frozen=True)
class Variant:
    """Optional parts of a request, and choices that change what is asked for."""

    also: tuple[str, ...] = ()
    kind: str | None = None
    public: bool | None = None
    reads: str = "stream"

    def __str__(self) -> str:
        parts = [f"with `{name}`" for name in (*self.also, *(["public"] if self.public else []))]
        parts += [f"of kind {self.kind}"] if self.kind else []
        parts += [f"that reads an {self.reads}"] if self.reads != "stream" else []
        return ", ".join(parts)

    def call(self, operation: Operation, world: World, **given: Any) -> Call:
        """The operation's request about the world; `given` are values of other parts."""
        own = {"kind": self.kind, "public": self.public}
        chosen = given | {name: value for name, value in own.items() if value is not None}
        if self.kind is not None:
            chosen["name"] = chosen["object"] = world.names[self.kind]
        if self.reads != "stream":
            chosen["text"] = f"SELECT * FROM {world.names[self.reads]}"
        return operation.call(world, also=self.also, **chosen)


def variants(operation: Operation) -> Iterator[Variant]:
    """The plain request, each optional part, each kind of object, what a query can read."""
    names = {**operation.in_query, **(operation.in_body or {})}
    kind = ObjectKind.STREAM.value if names.get("kind") else None
    yield Variant(kind=kind)
    if "kind" in names:
        yield from (Variant(kind=other.value) for other in ObjectKind if other != kind)
    # A stream's other parts make sense with an event time only, a policy's window with aggregates.
    base = tuple(name for name in ("event_time", "rights") if name in names)
    optional = [name for name, must in names.items() if not must and name not in ("kind", "name")]
    yield from (Variant((*base, name), kind) for name in optional)
    if "public" in names:
        yield Variant(public=True)
    if "text" in names:
        yield Variant(reads="output")

"""Parts of a Borealis document that the platform does not use, and parts that it refuses by name.

A part is unused if it says only where or how fast a network runs. A part is refused if the results
would differ without it.
"""

from __future__ import annotations

from catalog.errors import InvalidInput
from secadmin.languages.borealis.notes import Notes
from secadmin.languages.borealis.tree import Element

_NODES = "the platform places queries itself, and users get their accesses from it"
_HISTORY = "no history of a stream is kept"
UNUSED_ELEMENTS = {
    **dict.fromkeys(("deploy", "node", "region", "replica_set", "move"), _NODES),
    **dict.fromkeys(("client", "publish", "subscribe", "unsubscribe"), _NODES),
    **dict.fromkeys(("connection_point", "connection_point_view"), _HISTORY),
}
_TABLES = "the platform has no tables; join the stream with the stream that fills the table"
_CHANGES = "a query never changes; remove the query and add the new diagram"
REFUSED_ELEMENTS = {
    "table": _TABLES,
    "access": _TABLES,
    "type": (
        "it names an array type, and diagrams have no arrays here; send one tuple for each value"
    ),
    "modify": _CHANGES,
    "delete": _CHANGES,
    "disconnect": _CHANGES,
}
_QUEUE = ("update_queue", "queue_type", "key")
UNUSED_ATTRIBUTES = frozenset({"node", *_QUEUE})


def check_children(element: Element, allowed: tuple[str, ...], notes: Notes) -> list[Element]:
    """The children that are used, which have one of the allowed tags. Notes the unused ones.

    Raises InvalidInput for any other child.
    """
    found = []
    for child in element.children:
        if child.tag in allowed:
            found.append(child)
        elif child.tag in UNUSED_ELEMENTS:
            notes.add(f"<{child.tag}> is not used: {UNUSED_ELEMENTS[child.tag]}", child.position)
        elif child.tag in REFUSED_ELEMENTS:
            raise InvalidInput(
                f"<{child.tag}> is not possible: {REFUSED_ELEMENTS[child.tag]}", child.position
            )
        else:
            raise InvalidInput(
                f"<{child.tag[:40]}> is not allowed in <{element.tag}>", child.position
            )
    return found


def note_attributes(element: Element, notes: Notes) -> None:
    """Note the attributes of an element that are not used."""
    if "node" in element.attributes:
        notes.add(f"node is not used: {_NODES}", element.attributes["node"].place())
    queue = element.attributes.get("update_queue")
    if queue is not None and queue.text != "0":
        notes.add(
            "update_queue is not used: no tuple is left out for a newer one of the same key",
            queue.place(),
        )

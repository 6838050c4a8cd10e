"""The level of a session: it narrows the level of its user (001 §3).

A session names parts for some conflict classes. What is subscribed in it sees the greatest level
that both this one and the level of the user dominate, also after the user's level has changed. In
the other classes the session has the user's level.

What is stored of it needs no version of its own. It is in columns of tables, so another form comes
with another revision of these (`catalog.migrations`). And what is not named by the ids of conflict
classes is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import orm, select

from catalog.conflict_class import NOTHING, TRUSTED, ConflictClass, narrowed
from catalog.conflict_classes import conflict_classes
from catalog.errors import Denied
from catalog.label import Label
from catalog.models import UserLevel

SessionLevel = Mapping[int, str]
"""The parts of a session's level, by the ids of conflict classes."""


def chosen_level(session: orm.Session, user_id: int, wanted: Mapping[str, str]) -> SessionLevel:
    """The level of a new session, from parts by the names of conflict classes.

    Raises Denied for a part that the user's level does not dominate. The words are the same for a
    conflict class that the user has no level in, and for one that there is not. A user that has not
    chosen its company yet may name one.
    """
    rows = session.scalars(select(UserLevel).where(UserLevel.user_id == user_id)).all()
    classes = conflict_classes(session, [row.class_id for row in rows])
    own = {classes[row.class_id].name: (classes[row.class_id], row) for row in rows}
    level: dict[int, str] = {}
    for name, part in wanted.items():
        known = own.get(name)
        written = None if known is None else _written(*known, part)
        if known is None or written is None:
            raise Denied(
                f"your level does not dominate {part[:80]!r} in the conflict class {name[:80]!r}; "
                "secadmin wall show tells your level"
            )
        level[known[0].id] = written
    return level


def _written(found: ConflictClass, own: UserLevel, part: str) -> str | None:
    """The part as it is kept. None if the user's level does not dominate it."""
    label = found.label_of(part)
    if label is None:
        return None
    written = part if part == TRUSTED or part in found.companies else NOTHING
    if own.by_choice and own.part is None:
        return None if written == TRUSTED else written
    return written if own.part == TRUSTED or written in (own.part, NOTHING) else None


def to_stored(level: SessionLevel | None) -> dict[str, str] | None:
    """The level as the catalog keeps it."""
    return None if level is None else {str(class_id): part for class_id, part in level.items()}


def from_stored(stored: Mapping[str, str] | None) -> SessionLevel | None:
    """The level that `to_stored` gave. Raises ValueError for what has other keys."""
    return None if stored is None else {int(class_id): part for class_id, part in stored.items()}


def classes_of(
    session: orm.Session, levels: Iterable[SessionLevel | None]
) -> Mapping[int, ConflictClass]:
    """The conflict classes that these levels name, by their ids."""
    ids = {class_id for level in levels for class_id in level or ()}
    return conflict_classes(session, ids) if ids else {}


def within(own: Label, level: SessionLevel | None, classes: Mapping[int, ConflictClass]) -> Label:
    """The level of a user, narrowed to that of its session."""
    return own if level is None else narrowed(own, level, classes)


def level_words(session: orm.Session, level: SessionLevel | None) -> tuple[str, ...]:
    """The level for people: CLASS=PART for each class that it names."""
    names = {each.id: each.name for each in classes_of(session, [level]).values()}
    return tuple(f"{names[class_id]}={part}" for class_id, part in sorted((level or {}).items()))

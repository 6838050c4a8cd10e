"""Floors: what a user writes carries at least what the user may have read (001 §3, no laundering).

The floor of a sender is a set of categories that ingest adds to the label of all that it sends. It
holds all that its user can read by any role, active or not, and all that it held before: the user
may still know it. A floor is made of *rights*: in place of the role clauses that the user satisfies
it has the roles. So whoever may read what the user writes holds each of these roles, and satisfies
each clause that the user satisfied, also one that is registered later.

A sender has a floor from the change that gives SEND on. Until ingest may add it, ingest does not
read the sender's topic, and nothing is withheld from the user. So the first floor remembers what
was readable meanwhile (`remember_readable`), also what has been taken by the time at which ingest
adds it.

A floor rises in three steps, each when the one before has been applied (`secadmin.control.floors`):

1. Its categories belong to the reach of the stream, in all runs that read the stream. Before that
   a run would take a tuple that has them for an invisible one.
2. Ingest adds them to what the sender sends.
3. The user gets what they show. Until then they are withheld from all of its accesses.

A stored floor that cannot be read must not become a smaller one, and must not hold up others: what
its sender sends is not ingested, and it does not rise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import orm, select

from catalog.authorizer import Authorizer
from catalog.category_kind import CategoryKind
from catalog.label import PUBLIC, Label, combine
from catalog.models import (
    CategoryRow,
    ClauseRole,
    FloorCategory,
    Object,
    SenderRow,
    StreamRow,
    User,
)
from catalog.sender_state import SenderState
from catalog.subject import subject_of_user

_READ = (CategoryKind.SOURCE, CategoryKind.AGGREGATED)
# Every operation runs it. It is built once, because that takes longer.
_WAITING = (
    select(SenderRow)
    .join(StreamRow, StreamRow.object_id == SenderRow.stream_id)
    .join(Object, Object.id == SenderRow.stream_id)
    .where(
        SenderRow.stamped.is_(None),
        SenderRow.user_id.is_not(None),
        SenderRow.state.in_((SenderState.ACTIVE, SenderState.DRAINING)),
        StreamRow.floored,
        Object.removed_at.is_(None),
    )
    .order_by(SenderRow.id)
)


def readable(session: orm.Session, user: User) -> Label:
    """All that the user can read now, by any of its roles, as rights.

    Of its roles it has those that a condition of a stream names which the user can read. A lock
    changes nothing: the user knows what it has read, and reads on when it is unlocked.
    """
    subject = subject_of_user(session, user, lock_counts=False)
    rights = Authorizer(session).clearance_of(subject).bits
    if not rights:
        return PUBLIC
    rows = session.execute(select(CategoryRow.bit, CategoryRow.kind))
    kinds = {row.bit: row.kind for row in rows}
    held = Label(rights).categories()
    streams = select(CategoryRow.stream_id).where(
        CategoryRow.bit.in_([bit for bit in held if kinds.get(bit) in _READ])
    )
    named = (
        select(ClauseRole.role_bit)
        .join(CategoryRow, CategoryRow.bit == ClauseRole.clause_bit)
        .where(CategoryRow.kind == CategoryKind.ROLE_CLAUSE, CategoryRow.stream_id.in_(streams))
    )
    deciding = {bit for bit in held if kinds.get(bit) != CategoryKind.ROLE}
    return Label.of(*deciding.union(set(session.scalars(named)).intersection(held)))


def floor_of_user(session: orm.Session, user_id: int) -> Label | None:
    """What all that the user sends should carry: what it can read, and each floor that it had.

    None if one of these cannot be read: then nobody can say.
    """
    own = select(SenderRow.floor).where(SenderRow.user_id == user_id, SenderRow.floor.is_not(None))
    found = list(map(read_floor, session.scalars(own)))
    before = [each for each in found if each is not None]
    if len(before) < len(found):
        return None
    return readable(session, session.get_one(User, user_id)) | combine(before)


def remember_readable(session: orm.Session) -> None:
    """Let each floor that waits hold what its user can read now. Call it before rights are taken.

    Changes run one by one, so what a change finds is all that was readable since the one before.
    """
    found: dict[int, Label] = {}
    for row in session.scalars(_WAITING):
        if row.user_id is None:
            continue
        if row.user_id not in found:
            found[row.user_id] = readable(session, session.get_one(User, row.user_id))
        before = PUBLIC if row.floor is None else read_floor(row.floor)
        if before is not None:
            row.floor = (before | found[row.user_id]).to_wire()
    session.flush()


def read_floor(text: str | None) -> Label | None:
    """A stored floor, or None for what is none."""
    return Label.from_wire(text)


def withheld_from(session: orm.Session, users: Iterable[int]) -> Mapping[int, Label]:
    """What is withheld from each of these users that has a floor in a stream: rights.

    It is what the user can read and ingest may not yet add to what it sends. The categories of a
    stream itself are in each label there, so its senders need not wait for them. For a floor that
    is not `stamped` nothing is withheld, because ingest does not read that topic. All is withheld
    where nobody can say what ingest adds. A user that is not in the result has no floor.
    """
    rows = session.execute(
        select(SenderRow.user_id, SenderRow.stream_id, SenderRow.stamped).where(
            SenderRow.user_id.in_(sorted(set(users))),
            SenderRow.state == SenderState.ACTIVE,
            SenderRow.floor.is_not(None),
            SenderRow.lowered.is_(False),
        )
    ).all()
    own = _own_categories(session, {row.stream_id for row in rows})
    found: dict[int, int] = {}
    for user, stream, stamped in rows:
        if user is None or stamped is None:
            continue
        added = read_floor(stamped)
        held = 0 if added is None else added.bits | own.get(stream, PUBLIC).bits
        found[user] = found.get(user, held) & held
    nothing = {row.user_id: PUBLIC for row in rows if row.user_id is not None}
    return nothing | {
        user: Label(readable(session, session.get_one(User, user)).bits & ~stamped)
        for user, stamped in found.items()
    }


def _own_categories(session: orm.Session, streams: Collection[int]) -> Mapping[int, Label]:
    """What READ TUPLE on each of these streams gives."""
    own = select(CategoryRow.stream_id, CategoryRow.bit).where(
        CategoryRow.stream_id.in_(sorted(streams)), CategoryRow.kind.in_(_READ)
    )
    found: dict[int, Label] = {}
    for stream, bit in session.execute(own):
        if stream is not None:
            found[stream] = found.get(stream, PUBLIC) | Label.of(bit)
    return found


def not_applied(session: orm.Session, stream: int) -> Label:
    """The categories of floors that a run which reads the stream may not know yet."""
    own = (FloorCategory.stream_id == stream, FloorCategory.applied.is_(False))
    return Label.of(*session.scalars(select(FloorCategory.bit).where(*own)))


def let_carry(session: orm.Session, stream: int, categories: Label) -> None:
    """Add these categories to those that floors bring into the stream. Call it inside a change.

    A role's category is then in labels, so it is given by itself, as a company's is.
    """
    bits: Sequence[int] = categories.categories()
    session.add_all(FloorCategory(stream_id=stream, bit=bit, applied=False) for bit in bits)
    roles = select(CategoryRow.bit).where(
        CategoryRow.bit.in_(bits), CategoryRow.kind == CategoryKind.ROLE
    )
    for bit in session.scalars(roles).all():
        session.merge(ClauseRole(clause_bit=bit, role_bit=bit))
    session.flush()

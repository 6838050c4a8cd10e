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
from dataclasses import dataclass

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
from catalog.subject import subjects_of_users

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
    return readable_by(session, [user.id])[user.id]


def readable_by(session: orm.Session, users: Collection[int]) -> Mapping[int, Label]:
    """As `readable`, for each of these users by id. What they have in common is read once."""
    rows = session.scalars(select(User).where(User.id.in_(sorted(users)))).all()
    subjects = subjects_of_users(session, rows, lock_counts=False)
    authorizer = Authorizer(session)
    rights = {each.user_id: authorizer.clearance_of(each).bits for each in subjects}
    if not any(rights.values()):
        return dict.fromkeys(rights, PUBLIC)
    deciding = _Deciding.read(session)
    return {user: deciding.of(Label(bits)) for user, bits in rights.items()}


@dataclass(frozen=True, slots=True)
class _Deciding:
    """Which rights decide what is visible.

    `roles` are the categories of all roles. `sources` has the categories that a right to read a
    stream gives, with their stream. `named` has the roles that the conditions of a stream name.
    """

    roles: Label
    sources: Mapping[int, int]
    named: Mapping[int, Label]

    @classmethod
    def read(cls, session: orm.Session) -> _Deciding:
        kinds = (*_READ, CategoryKind.ROLE)
        rows = session.execute(
            select(CategoryRow.bit, CategoryRow.kind, CategoryRow.stream_id).where(
                CategoryRow.kind.in_(kinds)
            )
        ).all()
        clauses = (
            select(CategoryRow.stream_id, ClauseRole.role_bit)
            .join(ClauseRole, CategoryRow.bit == ClauseRole.clause_bit)
            .where(CategoryRow.kind == CategoryKind.ROLE_CLAUSE)
            .distinct()
        )
        named: dict[int, set[int]] = {}
        for stream, role in session.execute(clauses):
            if stream is not None:
                named.setdefault(stream, set()).add(role)
        return cls(
            Label.of(*(row.bit for row in rows if row.kind == CategoryKind.ROLE)),
            {row.bit: row.stream_id for row in rows if row.stream_id and row.kind in _READ},
            {stream: Label.of(*roles) for stream, roles in named.items()},
        )

    def of(self, rights: Label) -> Label:
        """The part of these rights that decides."""
        streams = {self.sources[bit] for bit in rights.categories() if bit in self.sources}
        named = combine(self.named.get(stream, PUBLIC) for stream in streams)
        return Label(rights.bits & (~self.roles.bits | named.bits))


def floor_of_user(session: orm.Session, user_id: int) -> Label | None:
    """What all that the user sends should carry: what it can read, and each floor that it had.

    None if one of these cannot be read: then nobody can say.
    """
    return floors_of_users(session, [user_id])[user_id]


def floors_of_users(session: orm.Session, users: Collection[int]) -> Mapping[int, Label | None]:
    """As `floor_of_user`, for each of these users. What they have in common is read once."""
    own = select(SenderRow.user_id, SenderRow.floor).where(
        SenderRow.user_id.in_(sorted(users)), SenderRow.floor.is_not(None)
    )
    found: dict[int, Label | None] = dict(readable_by(session, users))
    for user, text in session.execute(own):
        if user is not None:
            now, before = found[user], read_floor(text)
            found[user] = None if now is None or before is None else now | before
    return found


def remember_readable(session: orm.Session) -> None:
    """Let each floor that waits hold what its user can read now. Call it before rights are taken.

    Changes run one by one, so what a change finds is all that was readable since the one before.
    """
    waiting = [row for row in session.scalars(_WAITING) if row.user_id is not None]
    if not waiting:
        return
    found = readable_by(session, {row.user_id for row in waiting if row.user_id is not None})
    for row in waiting:
        before = PUBLIC if row.floor is None else read_floor(row.floor)
        if before is not None and row.user_id is not None:
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
    can = readable_by(session, found) if found else {}
    return nothing | {user: Label(can[user].bits & ~stamped) for user, stamped in found.items()}


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

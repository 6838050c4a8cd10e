"""The role expressions that the tuples of a stream have, and the categories of their clauses.

A text is registered once. Its clauses become categories of the stream, and the roles in them get a
category each. Two texts with the same clauses have the same label.

Clauses are never free again. So one sender brings only a part of those that a stream can have, and
some are kept for the label rule: a role that it names may come back, and has new clauses then.
Several senders together could take the rest. So some texts and clauses are kept for senders that
have few.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, delete, exists, func, or_, select
from sqlalchemy.orm import Session

from catalog.categories import next_category, role_clauses
from catalog.category_kind import CategoryKind
from catalog.category_shares import has_share, require_share
from catalog.errors import Conflict, InvalidInput
from catalog.label import PUBLIC, Label
from catalog.label_rule import ByExpression, ByHeader, BySender, LabelRule, fixed_texts
from catalog.models import (
    CategoryRow,
    ClauseRole,
    LabelText,
    Object,
    Role,
    SenderPolicy,
    StreamRow,
)
from catalog.role_expression import Clause, RoleExpression, read_role_expression
from catalog.store import bump_generation
from catalog.stored_form import from_stored

MAX_TEXTS = 4_096
MAX_TEXTS_OF_SENDER = 1_024
MAX_CLAUSES_OF_STREAM = 1_024
MAX_CLAUSES_OF_SENDER = 128
"""How many clauses can be new in a stream with the texts of one sender."""
CLAUSES_OF_RULE = 128
"""How many of a stream's clauses no sender can take, because its label rule may need them."""
FEW_TEXTS, KEPT_TEXTS = 64, 1_024
"""How many of a stream's texts are kept for senders that have few, and how many texts are few."""
FEW_CLAUSES, KEPT_CLAUSES = 16, 256
"""The same for its clauses."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^"\s&|()]+')


@dataclass(frozen=True, slots=True)
class Registered:
    """A registered text: the label of its clauses, and which categories are new with it."""

    label: Label
    new_clauses: bool = False
    new_roles: bool = False


def rule_from_stored(data: Mapping[str, Any]) -> LabelRule:
    """The label rule of a stream's row. Raises ValueError as `from_stored`."""
    found = from_stored(object, data)
    if not isinstance(found, BySender | ByHeader | ByExpression):
        raise ValueError("not a stored LabelRule")
    return found


def texts_of(session: Session) -> Mapping[int, Mapping[str, Label]]:
    """The registered texts of each stream, with the label of their clauses."""
    return _by_stream(session, select(LabelText))


def fixed_texts_of(session: Session) -> Mapping[int, Mapping[str, Label]]:
    """Those of them that label rules have, or policies of senders. There are few."""
    policy = exists().where(
        SenderPolicy.stream_id == LabelText.stream_id, SenderPolicy.text == LabelText.text
    )
    return _by_stream(session, select(LabelText).where(or_(LabelText.user_id.is_(None), policy)))


def check_text(session: Session, text: str) -> None:
    """Raise InvalidInput for a text that is no role expression, or names an unknown role."""
    read_role_expression(text)
    _role_ids(session, text)


def _by_stream(session: Session, query: Select[LabelText]) -> Mapping[int, Mapping[str, Label]]:
    found: dict[int, dict[str, Label]] = {}
    for row in session.scalars(query.order_by(LabelText.id)):
        label = Label.from_wire(row.clauses)
        # A label that cannot be read must not become a smaller one.
        if label is not None:
            found.setdefault(row.stream_id, {})[row.text] = label
    return found


def register(session: Session, stream: int, text: str, user: int | None) -> Registered:
    """Register a text of a stream, which `user` sent first, or its label rule has (None).

    Call it inside `Catalog.change`. Raises InvalidInput for a text that is no role expression, that
    names a role which does not exist, or for which there is no room; then nothing is written. The
    message says whether there is a role that the text names. It is for whoever chose the text as a
    policy or a rule, since that user must learn of a mistake. The message on the text of a record
    is only for those that may read the stream's quarantine.
    """
    row = session.scalar(
        select(LabelText).where(LabelText.stream_id == stream, LabelText.text == text)
    )
    known = None if row is None else Label.from_wire(row.clauses)
    if known is not None:
        return Registered(known)
    expression = read_role_expression(text)
    ids = _role_ids(session, text)
    ruled = _is_of_rule(session, stream, text)
    user = None if ruled else user
    _require_room(session, stream, user)
    made = _Allocation(session, stream, ids)
    made.require_room(expression, user, ruled=ruled)
    label = made.label_of(expression)
    session.add(LabelText(stream_id=stream, text=text, clauses=label.to_wire(), user_id=user))
    session.flush()
    bump_generation(session)
    return Registered(label, made.new_clauses, made.new_roles)


def roles_named(text: str) -> frozenset[str]:
    """The names of all roles in a text that is a role expression, also of dropped clauses."""
    return frozenset(
        next(iter(read_role_expression(token).roles)) for token in _TOKEN.findall(text)
    )


def forget_role(session: Session, role: Role) -> None:
    """Drop the texts that name a role which is about to be removed, and let nobody hold it.

    A tuple that has such a text later is refused. What was labelled before keeps its label: it is
    visible to those that have another role of each of its clauses.
    """
    named = [
        row.id for row in session.scalars(select(LabelText)) if role.name in roles_named(row.text)
    ]
    if named:
        session.execute(delete(LabelText).where(LabelText.id.in_(named)))
        bump_generation(session)
    own = select(CategoryRow).where(CategoryRow.role_id == role.id)
    for category in session.scalars(own):
        category.role_id = None
    session.flush()


def _role_ids(session: Session, text: str) -> Mapping[str, int]:
    names = roles_named(text)
    rows = session.execute(select(Role.name, Role.id).where(Role.name.in_(names)))
    found = {row.name: row.id for row in rows}
    if unknown := sorted(names - found.keys()):
        raise InvalidInput(
            f"the role expression names {unknown[0]!r}, and there is no role of that name"
        )
    return found


def _require_room(session: Session, stream: int, user: int | None) -> None:
    counted = select(func.count()).where(LabelText.stream_id == stream)
    there = session.scalar(counted) or 0
    if there >= MAX_TEXTS:
        raise InvalidInput(
            f"the stream has {MAX_TEXTS} different role expressions, which is the most there can be"
        )
    if user is None:
        return
    own = session.scalar(counted.where(LabelText.user_id == user)) or 0
    if own >= FEW_TEXTS and there >= MAX_TEXTS - KEPT_TEXTS:
        raise InvalidInput(
            f"the stream has {there} different role expressions, and the last {KEPT_TEXTS} are "
            f"kept for senders that have used fewer than {FEW_TEXTS}"
        )
    if own >= MAX_TEXTS_OF_SENDER:
        raise InvalidInput(
            f"the sender has used {MAX_TEXTS_OF_SENDER} different role expressions in the stream, "
            "which is the most there can be"
        )


def _is_of_rule(session: Session, stream: int, text: str) -> bool:
    """Whether the stream's own label rule has the text, whoever brings it."""
    stored = session.scalar(select(StreamRow.label_rule).where(StreamRow.object_id == stream))
    return stored is not None and text in fixed_texts(rule_from_stored(stored))


def _brought_by(session: Session, stream: int, user: int) -> int:
    """How many clauses were new in the stream with the texts that this sender used first."""
    rows = select(LabelText.clauses, LabelText.user_id).where(LabelText.stream_id == stream)
    seen = brought = 0
    for row in session.execute(rows.order_by(LabelText.id)):
        label = Label.from_wire(row.clauses) or PUBLIC
        if row.user_id == user:
            brought |= label.bits & ~seen
        seen |= label.bits
    return brought.bit_count()


class _Allocation:
    """Finds the categories of roles and clauses of one stream, and makes those that are missing."""

    def __init__(self, session: Session, stream: int, role_ids: Mapping[str, int]) -> None:
        self._session, self._stream, self._role_ids = session, stream, role_ids
        self.new_clauses = self.new_roles = False
        self._roles = self._categories_of_roles()
        self._clauses = self._categories_of_clauses()
        self._used = {each for roles in self._clauses for each in roles.categories()}

    def require_room(self, expression: RoleExpression, user: int | None, *, ruled: bool) -> None:
        """Raise InvalidInput if the stream, or the sender there, would have too many clauses."""
        new = sum(not self._known(clause) for clause in expression.clauses)
        if new == 0:
            return
        self._require_categories(expression, new)
        most = MAX_CLAUSES_OF_STREAM - (0 if ruled else CLAUSES_OF_RULE)
        if len(self._clauses) + new > most:
            raise InvalidInput(
                f"the role expressions of the stream have up to {most} different conditions, and "
                "there is no room for those of a new one; use conditions that it has already"
            )
        if user is None:
            return
        brought = _brought_by(self._session, self._stream, user)
        if brought + new > FEW_CLAUSES and len(self._clauses) + new > most - KEPT_CLAUSES:
            raise InvalidInput(
                f"the stream has {len(self._clauses)} different conditions, and the last "
                f"{KEPT_CLAUSES} are kept for senders that bring up to {FEW_CLAUSES}; use "
                "conditions that the stream has already"
            )
        if brought + new > MAX_CLAUSES_OF_SENDER:
            raise InvalidInput(
                f"the sender has brought {brought} different conditions into the stream, and can "
                f"bring {MAX_CLAUSES_OF_SENDER}; use conditions that the stream has already"
            )

    def _require_categories(self, expression: RoleExpression, clauses: int) -> None:
        roles = {self._role_ids[name] for name in expression.roles} - self._roles.keys()
        owner = self._session.get_one(Object, self._stream).owner_id
        try:
            next_category(self._session, clauses + len(roles))
            if owner is not None and has_share(self._session, owner):
                require_share(self._session, owner, clauses)
        except Conflict:
            # Who sends learns nothing of what the owner has.
            raise InvalidInput(
                "there are no categories left for the new conditions of the role expression; use "
                "conditions that the stream has already. A stream of somebody who holds CHANGE "
                "SYSTEM has the most"
            ) from None

    def _known(self, clause: Clause) -> bool:
        ids = [self._role_ids[name] for name in clause]
        if not self._roles.keys() >= set(ids):
            return False
        return Label.of(*(self._roles[id_] for id_ in ids)) in self._clauses

    def label_of(self, expression: RoleExpression) -> Label:
        """The label of the expression's clauses."""
        # The order decides which bits are given, so it must not change.
        clauses = sorted(expression.clauses, key=sorted)
        return Label.of(*map(self._clause, clauses))

    def _clause(self, clause: Clause) -> int:
        roles = Label.of(*(self._role(name) for name in sorted(clause)))
        if roles not in self._clauses:
            bit = self._add(CategoryRow(kind=CategoryKind.ROLE_CLAUSE, stream_id=self._stream))
            self._session.add_all(
                ClauseRole(clause_bit=bit, role_bit=role) for role in roles.categories()
            )
            self._session.flush()
            self._clauses[roles] = bit
            self.new_clauses = True
            self.new_roles |= not self._used.issuperset(roles.categories())
        return self._clauses[roles]

    def _role(self, name: str) -> int:
        id_ = self._role_ids[name]
        if id_ not in self._roles:
            self._roles[id_] = self._add(CategoryRow(kind=CategoryKind.ROLE, role_id=id_))
        return self._roles[id_]

    def _add(self, row: CategoryRow) -> int:
        row.bit = next_category(self._session)
        self._session.add(row)
        self._session.flush()
        return row.bit

    def _categories_of_roles(self) -> dict[int, int]:
        wanted = select(CategoryRow.role_id, CategoryRow.bit).where(
            CategoryRow.kind == CategoryKind.ROLE,
            CategoryRow.role_id.in_(self._role_ids.values()),
        )
        return {row.role_id: row.bit for row in self._session.execute(wanted)}

    def _categories_of_clauses(self) -> dict[Label, int]:
        own = select(CategoryRow.bit).where(
            CategoryRow.kind == CategoryKind.ROLE_CLAUSE, CategoryRow.stream_id == self._stream
        )
        roles = role_clauses(self._session).roles
        return {roles[bit]: bit for bit in self._session.scalars(own) if bit in roles}

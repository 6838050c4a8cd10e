"""The authorizer decides which subject may do what on which object (OxRBAC, 004 §2 and §3.1).

A subject holds a permission by a grant to one of its roles. An owner also holds the permissions
in `permission.OWNER_HOLDS`. There is no other way for anybody, and all else is denied. A grant of
READ AGGREGATE does not count for a user that may SEND to the stream (`catalog.senders`).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BindParameter,
    CompoundSelect,
    Select,
    and_,
    bindparam,
    false,
    or_,
    orm,
    select,
    union,
)

from catalog.category_kind import KINDS, CategoryKind
from catalog.clearance import Clearance
from catalog.decision import Decision
from catalog.errors import Denied
from catalog.label import MAX_CATEGORIES, Label
from catalog.models import CategoryRow, Grant, Object
from catalog.namespace import SYSTEM_NAME, Namespace, namespace_of, not_found
from catalog.permission import APPLIES, OWNER_HOLDS, ObjectKind, Permission
from catalog.subject import Subject

# A subject that may read single tuples may read their aggregates too (docs/architecture.md).
_GIVEN_BY: dict[Permission, frozenset[Permission]] = {
    Permission.READ_AGGREGATE: frozenset({Permission.READ_AGGREGATE, Permission.READ_TUPLE})
}
# With more categories than this, it is faster to fetch all than to name each one.
_MAX_NAMED_BITS = 500
_IN_LABELS = Label((1 << MAX_CATEGORIES) - 1)

# Statements are built once, because building one takes longer than running it.
_ROLES: BindParameter[int] = bindparam("roles")
_SYSTEM = select(Object).where(Object.namespace == Namespace.SYSTEM, Object.removed_at.is_(None))
# All live objects on which `decide` would allow VIEW OBJECT.
_VISIBLE = select(Object).where(
    Object.removed_at.is_(None),
    or_(
        Object.kind == ObjectKind.SYSTEM,
        Object.owner_id == bindparam("user"),
        Object.id.in_(
            select(Grant.object_id).where(
                Grant.permission == Permission.VIEW_OBJECT, Grant.role_id.in_(_ROLES)
            )
        ),
    ),
)
_VISIBLE_NAMED = _VISIBLE.where(
    Object.name == bindparam("name"), Object.namespace == bindparam("namespace")
)
_HOLDING = (
    select(Grant.role_id, Grant.permission)
    .where(
        Grant.object_id == bindparam("object"),
        Grant.role_id.in_(_ROLES),
        Grant.permission.in_(bindparam("permissions")),
    )
    .order_by(Grant.permission)
)
_NAMED = CategoryRow.bit.in_(bindparam("bits"))
# The categories of live streams that grants give to the roles of a user that may send to `sent`.
_GRANTED = (
    select(CategoryRow.bit)
    .join(Grant, Grant.object_id == CategoryRow.stream_id)
    .join(Object, Object.id == CategoryRow.stream_id)
    .where(
        Grant.role_id.in_(_ROLES),
        Object.removed_at.is_(None),
        or_(
            *(
                and_(
                    CategoryRow.kind == kind,
                    or_(
                        Grant.permission.in_(entry.given_by - entry.kept_from_senders),
                        and_(
                            Grant.permission.in_(entry.kept_from_senders),
                            CategoryRow.stream_id.not_in(bindparam("sent")),
                        ),
                    ),
                )
                for kind, entry in KINDS.items()
                if entry.given_by
            )
        ),
    )
    .distinct()
)
_OF_ROLES = select(CategoryRow.bit).where(
    CategoryRow.kind == CategoryKind.ROLE, CategoryRow.role_id.in_(_ROLES)
)
_READABLE = union(_GRANTED, _OF_ROLES)
_READABLE_NAMED = union(_GRANTED.where(_NAMED), _OF_ROLES.where(_NAMED))


def describe(target: Object) -> str:
    """The kind and name of an object, as decisions and the audit log write them."""
    return SYSTEM_NAME if target.kind == ObjectKind.SYSTEM else f"{target.kind} {target.name}"


class Authorizer:
    """Makes decisions on the data that one database session sees.

    `trail` collects each decision that `require` makes, for the audit log.
    """

    def __init__(self, session: orm.Session) -> None:
        self._session = session
        self.trail: list[Decision] = []

    def decide(self, subject: Subject, permission: Permission, target: Object) -> Decision:
        """Whether the subject holds the permission on the object, and why or why not."""
        if (early := _without_grants(subject, permission, target)) is not None:
            return early
        if _owns(subject, permission, target):
            return _by_ownership(subject, permission, target)
        holding = self._holding(subject, permission, target)
        own_first = sorted(holding, key=lambda role: (role not in subject.active_role_ids, role))
        ways = [_by_role(subject, permission, target, role, holding[role]) for role in own_first]
        for way in sorted(ways, key=lambda way: not way.allowed):
            return way
        roles = ", ".join(sorted(subject.role_names.values())) or "no role is active"
        return Decision(
            False, permission, describe(target), f"no active role holds {permission} ({roles})"
        )

    def require(self, subject: Subject, permission: Permission, target: Object) -> Decision:
        """Return the decision if it allows.

        Raises NotFound if the subject may not VIEW OBJECT the object. The words are the same as for
        an object that never existed (user abstraction layer, 004 §2). Otherwise raises Denied with
        the reason.
        """
        view = self.decide(subject, Permission.VIEW_OBJECT, target)
        if not view.allowed:
            self.trail.append(view)
            raise not_found(ObjectKind(target.kind), target.name)
        looks = permission is Permission.VIEW_OBJECT
        decision = view if looks else self.decide(subject, permission, target)
        self.trail.append(decision)
        if not decision.allowed:
            raise Denied(f"{permission} on {decision.object} is denied: {decision.reason}")
        return decision

    def system(self) -> Object:
        """The object SYSTEM. Raises NotFound before bootstrap."""
        found = self._session.scalar(_SYSTEM)
        if found is None:
            raise not_found(Namespace.SYSTEM, SYSTEM_NAME)
        return found

    def find(self, subject: Subject, place: ObjectKind | Namespace, name: str) -> Object:
        """The object of that name and kind (or in that namespace) that the subject may view.

        Raises NotFound if there is none. Query and answer are the same for an absent object and a
        hidden one.
        """
        if not name.isascii() or "\0" in name:
            # No object has such a name, and some databases do not accept it.
            raise not_found(place, name)
        namespace = place if isinstance(place, Namespace) else namespace_of(place)
        asked = {**_asker(subject), "name": name, "namespace": namespace}
        found = self._session.scalar(_to(subject, _VISIBLE_NAMED), asked)
        if found is None or (isinstance(place, ObjectKind) and found.kind != place):
            raise not_found(place, name)
        return found

    def visible_objects(
        self, subject: Subject, kind: ObjectKind | None = None
    ) -> tuple[Object, ...]:
        """All objects that the subject may view, by kind and name.

        Raises Denied without VIEW CATALOG on SYSTEM.
        """
        self.require(subject, Permission.VIEW_CATALOG, self.system())
        query = _to(subject, _VISIBLE).order_by(Object.kind, Object.name)
        if kind is not None:
            query = query.where(Object.kind == kind)
        return tuple(self._session.scalars(query, _asker(subject)))

    def explain(
        self, subject: Subject, permission: Permission, target: Object
    ) -> tuple[Decision, ...]:
        """Each way in which the subject could hold the permission, with its decision.

        The subject holds the permission if at least one way allows it.
        """
        if (early := _without_grants(subject, permission, target)) is not None:
            return (early,)
        holding = self._holding(subject, permission, target)
        ways = [_by_ownership(subject, permission, target)]
        for role in sorted(subject.role_ids, key=lambda role: subject.role_names[role]):
            ways.append(_by_role(subject, permission, target, role, holding.get(role)))
        return tuple(ways)

    def clearance_of(self, subject: Subject, within: Label | None = None) -> Clearance:
        """The rights of the subject: the categories that it holds, in one query.

        READ TUPLE on a stream gives its source and aggregated categories. READ AGGREGATE gives the
        aggregated one, but not to a user that may SEND there by any role. A role gives its own
        category, and the user's level those of its companies or of T; what clauses and companies
        follow from them is said by `RoleClauses.cleared`. Nobody gets a
        category of another kind, of a removed stream, or that no label can have. `within` limits
        the answer to these categories, which is faster if they are few.
        """
        if subject.barred is not None or not subject.role_ids:
            return Clearance()
        query: CompoundSelect[int] = _READABLE
        asked = {"roles": list(subject.role_ids), "sent": list(subject.sends_to)}
        bits = within.categories() if within is not None else None
        if bits is not None and len(bits) <= _MAX_NAMED_BITS:
            query, asked["bits"] = _READABLE_NAMED, list(bits)
        held = Clearance.of(*self._session.scalars(query, asked))
        clearance = Clearance(held.bits | subject.level.bits)
        clearance = clearance.cut_to(_IN_LABELS)
        return clearance if within is None else clearance.cut_to(within)

    def _holding(
        self, subject: Subject, permission: Permission, target: Object
    ) -> dict[int, Permission]:
        """The subject's roles with a grant that gives the permission, each with the grant.

        If a role has several, it is the last by name: READ TUPLE wins over READ AGGREGATE.
        """
        given_by = _GIVEN_BY.get(permission, frozenset({permission}))
        asked = {
            "object": target.id,
            "roles": list(subject.role_ids),
            "permissions": list(given_by),
        }
        return {role: Permission(held) for role, held in self._session.execute(_HOLDING, asked)}


def _without_grants(subject: Subject, permission: Permission, target: Object) -> Decision | None:
    """The decision if it needs neither grants nor ownership, otherwise None."""
    what = describe(target)
    kind = ObjectKind(target.kind)
    if subject.barred is not None:
        return Decision(False, permission, what, subject.barred)
    if target.removed_at is not None:
        return Decision(False, permission, what, "the object was removed")
    if kind is ObjectKind.SYSTEM and permission is Permission.VIEW_OBJECT:
        return Decision(True, permission, what, "every user may see that the system is there")
    if permission not in APPLIES[kind]:
        return Decision(
            False, permission, what, f"{permission} does not exist on objects of kind {kind}"
        )
    return None


def _owns(subject: Subject, permission: Permission, target: Object) -> bool:
    return target.owner_id == subject.user_id and permission in OWNER_HOLDS


def _by_ownership(subject: Subject, permission: Permission, target: Object) -> Decision:
    what = describe(target)
    if target.owner_id != subject.user_id:
        reason = f"{subject.user_name} does not own {what}"
    elif permission not in OWNER_HOLDS:
        reason = f"{subject.user_name} owns {what}, but owning never gives {permission}"
    else:
        reason = f"{subject.user_name} owns {what}"
    return Decision(_owns(subject, permission, target), permission, what, reason)


def _by_role(
    subject: Subject, permission: Permission, target: Object, role: int, held: Permission | None
) -> Decision:
    """The decision by one role. `held` is its grant, or None if no grant gives the permission."""
    name = subject.role_names[role]
    senior = subject.through.get(role)
    inherited = f" (through {senior})" if senior else ""
    what = describe(target)
    if held is None:
        return Decision(
            False, permission, what, f"role {name}{inherited} does not hold {permission}"
        )
    includes = "" if held is permission else f", which includes {permission}"
    reason = f"role {name}{inherited} holds {held} on {what}{includes}"
    sender = subject.sends_to.get(target.id) if held is Permission.READ_AGGREGATE else None
    if sender is not None:
        reason += (
            f", but it does not count: role {sender} lets {subject.user_name} SEND there, "
            "and a sender could compute single tuples of others"
        )
    return Decision(sender is None, permission, what, reason, None if sender else name)


def _to(subject: Subject, visible: Select[Object]) -> Select[Object]:
    """Those of these objects that the subject may see. A barred subject sees none."""
    return visible if subject.barred is None else visible.where(false())


def _asker(subject: Subject) -> dict[str, Any]:
    """The user and roles of the subject, as parameters of `_VISIBLE`."""
    return {"user": subject.user_id, "roles": list(subject.role_ids)}

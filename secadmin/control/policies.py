"""Policies of roles on streams: adding, showing and removing them (002, section 2.2).

A change takes effect at once: nothing that a role does not see any more arrives after the call has
returned. Queries whose roles see another part of the stream now are merged anew and go on
(`secadmin.control.new_merging`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from sqlalchemy import bindparam, func, or_, select

from catalog.audit import bounded
from catalog.errors import Conflict, InvalidInput, NotFound
from catalog.models import Object, PolicyRow, Role, StreamRow
from catalog.names import check_object_name
from catalog.permission import ObjectKind, Permission
from catalog.relation import Relation
from catalog.role_view import RoleView
from catalog.roles import seniors_of
from catalog.stored_form import from_stored, to_stored
from secadmin.control.changed_views import note_changed
from secadmin.control.platform import Platform
from secadmin.control.policy_text import WrittenView, written_view
from secadmin.control.query_rights import ViewChange, change_of_views, queries_over, running_of
from secadmin.control.query_views import outputs_of
from secadmin.control.settlement import of_holders, of_objects
from secadmin.control.work import Caller, Reading, Work, reading, working

MAX_POLICIES_OF_A_ROLE = 20
MAX_POLICIES_OF_A_STREAM = 1_000
# Statements are built once, because building one takes longer than running it.
_OF_STREAM = PolicyRow.stream_id == bindparam("stream")
_NAMED = select(PolicyRow).where(_OF_STREAM, PolicyRow.name == bindparam("name"))
_OF_ROLE = (
    select(PolicyRow, Object.name)
    .join(Object, Object.id == PolicyRow.stream_id)
    .where(PolicyRow.role_id == bindparam("role"))
    .order_by(Object.name, PolicyRow.name)
)
_COUNTED = select(func.count(), func.count().filter(PolicyRow.role_id == bindparam("role"))).where(
    _OF_STREAM
)


@dataclass(frozen=True, slots=True)
class PolicyDefinition:
    """A new policy of a role on a stream. With `replace`, it takes the place of its namesake.

    `read` gives the view of the stream, or raises InvalidInput. `xacml` is the text that it was
    read from, if it was.
    """

    name: str
    stream: str
    role: str
    read: Callable[[Relation], RoleView]
    replace: bool = False
    xacml: str = ""


@dataclass(frozen=True, slots=True)
class ShownPolicy:
    """A policy as who may change it sees it."""

    name: str
    stream: str
    role: str
    view: WrittenView
    xacml: str


def add_policy(platform: Platform, caller: Caller, wanted: PolicyDefinition) -> list[int]:
    """Add a policy. Gives the ids of the executions that begin anew, with what it shows.

    Needs CHANGE PERM on the stream. Subscriptions that the policy does not allow any more are cut
    and fenced. Raises InvalidInput, with the position in a condition, if it cannot be enforced.
    """
    check_object_name(wanted.name)
    target = _target(wanted.stream, wanted.name)
    with working(platform, caller, "add policy", target, {"role": wanted.role}) as work:
        stream = stream_to_change(work, wanted.stream)
        role = work.role(wanted.role)
        view = wanted.read(relation_of(work, stream))
        if view.minimum > 1 and work.session.get_one(StreamRow, stream.id).shared:
            raise InvalidInput(
                "a shared topic is one sender, and a minimum needs several: leave the minimum out"
            )
        touched = {role.id} | _make_way(work, stream, wanted)
        _require_room(work, stream, role)
        work.session.add(
            PolicyRow(
                stream_id=stream.id,
                role_id=role.id,
                name=wanted.name,
                view=to_stored(view),
                xacml=wanted.xacml,
            )
        )
        work.detail["view"] = _noted(view)
        return _enforce(work, stream, touched)


def _make_way(work: Work, stream: Object, wanted: PolicyDefinition) -> set[int]:
    """Remove the policy that the new one replaces, and note what it showed. Gives its role."""
    before = find_policy(work, stream, wanted.name)
    work.detail["replaced"] = before is not None
    if before is None:
        work.detail["before"] = None
        return set()
    if not wanted.replace:
        raise Conflict(
            f"{stream.name} has a policy {wanted.name!r} already; replace it with --replace, or "
            "choose another name"
        )
    work.detail["before"] = _before(work, before)
    work.session.delete(before)
    work.session.flush()
    return {before.role_id}


def remove_policy(platform: Platform, caller: Caller, stream: str, name: str) -> list[int]:
    """Remove a policy. Gives the ids of the executions that begin anew. Needs CHANGE PERM."""
    with working(platform, caller, "remove policy", _target(stream, name)) as work:
        obj = stream_to_change(work, stream)
        policy = require_policy(work, obj, name)
        work.detail["before"] = before = _before(work, policy)
        work.detail["role"] = before["role"]
        work.session.delete(policy)
        return _enforce(work, obj, {policy.role_id})


def note_policies_of(work: Work, role: Role) -> None:
    """Note the policies of a role that is about to be removed with them, and what they show."""
    rows = work.session.execute(_OF_ROLE, {"role": role.id}).all()
    noted = [
        {"policy": row.name, "stream": stream, "view": _noted(from_stored(RoleView, row.view))}
        for row, stream in rows
    ]
    if noted:
        work.detail["policies"] = bounded(noted)


def list_policies(platform: Platform, caller: Caller, stream: str) -> list[ShownPolicy]:
    """The policies on a stream, by role and name. Needs CHANGE PERM on the stream."""
    with reading(platform, caller, "list policies", f"stream {stream}") as view:
        obj = stream_to_change(view, stream)
        rows = (
            select(PolicyRow, Role.name)
            .join(Role, Role.id == PolicyRow.role_id)
            .where(PolicyRow.stream_id == obj.id)
            .order_by(Role.name, PolicyRow.name)
        )
        return [_shown(obj, row, role) for row, role in view.session.execute(rows)]


def show_policy(platform: Platform, caller: Caller, stream: str, name: str) -> ShownPolicy:
    """One policy. Needs CHANGE PERM on the stream."""
    with reading(platform, caller, "show policy", _target(stream, name)) as view:
        obj = stream_to_change(view, stream)
        policy = require_policy(view, obj, name)
        return _shown(obj, policy, view.session.get_one(Role, policy.role_id).name)


def _before(work: Work, policy: PolicyRow) -> dict[str, object]:
    """What a policy shows that is about to be removed, and to whom."""
    role = work.session.get_one(Role, policy.role_id).name
    return {"role": role, "view": _noted(from_stored(RoleView, policy.view))}


def _noted(view: RoleView) -> object:
    """What a policy shows, for the audit log: the catalog does not keep it for ever."""
    return bounded(asdict(written_view(view)))


def _target(stream: str, name: str) -> str:
    return f"policy {name} on stream {stream}"


def stream_to_change(view: Reading, name: str) -> Object:
    """The stream, whose policies the caller may change. Raises NotFound, Denied."""
    obj = view.find(ObjectKind.STREAM, name)
    view.require(Permission.CHANGE_PERM, obj)
    return obj


def relation_of(view: Reading, stream: Object) -> Relation:
    """The stream as a relation."""
    return from_stored(Relation, view.session.get_one(StreamRow, stream.id).relation)


def find_policy(view: Reading, stream: Object, name: str) -> PolicyRow | None:
    """The policy of that name on the stream, or None."""
    return view.session.scalar(_NAMED, {"stream": stream.id, "name": name})


def require_policy(view: Reading, stream: Object, name: str) -> PolicyRow:
    """The policy of that name on the stream. Raises NotFound."""
    found = find_policy(view, stream, name)
    if found is None:
        raise NotFound(f"{stream.name} has no policy {name[:80]!r}")
    return found


def _require_room(work: Work, stream: Object, role: Role) -> None:
    asked = {"stream": stream.id, "role": role.id}
    of_stream, of_role = work.session.execute(_COUNTED, asked).one()
    if of_stream >= MAX_POLICIES_OF_A_STREAM:
        raise Conflict(f"a stream has at most {MAX_POLICIES_OF_A_STREAM} policies; remove one")
    if of_role >= MAX_POLICIES_OF_A_ROLE:
        raise Conflict(
            f"a role has at most {MAX_POLICIES_OF_A_ROLE} policies on a stream; replace one"
        )


def _shown(stream: Object, row: PolicyRow, role: str) -> ShownPolicy:
    view = written_view(from_stored(RoleView, row.view))
    return ShownPolicy(row.name, stream.name, role, view, row.xacml)


def _enforce(work: Work, stream: Object, roles: set[int]) -> list[int]:
    """Note the queries that see another part of the stream now, and settle what these roles read.

    Gives the ids of the executions that begin anew.
    """
    session = work.session
    session.flush()
    holders = frozenset[int]().union(*seniors_of(session, roles).values())
    changed: list[int] = []
    wider = True
    for query in queries_over(session, stream.id, holders):
        obj = session.get_one(Object, query.object_id)
        outputs = [output.id for output in outputs_of(work, obj)]
        change = change_of_views(session, query, outputs)
        changed += outputs if change is not ViewChange.NONE else []
        wider = wider and change is not ViewChange.OTHER
    noted = note_changed(session, changed, work.change.now, wider=wider)
    anew = running_of(session, noted) if noted else []
    work.detail["begun anew"] = anew
    work.settlement.settle(or_(of_objects(*noted), of_holders(holders)))
    return anew

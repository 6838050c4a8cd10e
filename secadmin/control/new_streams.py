"""Adding a stream: what is checked, and what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from sqlalchemy import String, cast, func, or_, select

from catalog.admission import ingesting_by_group, require_ingest_slots
from catalog.aggregates import DECLARABLE_FUNCTIONS
from catalog.categories import next_category
from catalog.category_kind import KINDS, CategoryKind
from catalog.errors import InvalidInput
from catalog.label_rule import BySender, LabelRule, fixed_texts
from catalog.label_texts import check_text
from catalog.level_rule import LevelRule
from catalog.models import CategoryRow, Object, SchemaRow, StreamRow
from catalog.names import check_object_name
from catalog.namespace import Namespace
from catalog.permission import ObjectKind, Permission
from catalog.plan import Window
from catalog.plan_check import check_window
from catalog.record_format import RecordFormat
from catalog.relation import DeclaredAggregate, Relation, RelationKind
from catalog.runs import stream_topics
from catalog.schema import Schema, Type
from catalog.stored_form import from_stored, to_stored
from catalog.time_source import TimeSource
from secadmin.control.level_rules import read_level_rule
from secadmin.control.new_topics import new_topics
from secadmin.control.platform import Platform
from secadmin.control.role_texts import register_texts
from secadmin.control.room import require_room_for_categories, require_room_for_topics
from secadmin.control.sender_topics import add_senders
from secadmin.control.work import (
    Caller,
    Reading,
    Work,
    carry_out,
    changing,
    reading,
)
from secadmin.languages import parse_label_rule

# With more than about 50 partitions, a small machine needs seconds to start a batch's tasks.
PARTITIONS_A_GROUP = 50
_NO_SENDER = "in a shared topic nobody knows the sender; let each sender have its own topic"
# A tuple needs some time on its way from its event to the broker.
USUAL_LATENESS_MS = 10_000


@dataclass(frozen=True, slots=True)
class Declaration:
    """The owner's declaration for READ AGGREGATE; see `DeclaredAggregate`."""

    window_ms: int
    keys: tuple[str, ...]
    functions: tuple[str, ...]
    minimum: int


@dataclass(frozen=True, slots=True)
class StreamDefinition:
    """The definition of a new stream. Durations are in milliseconds, sizes in bytes.

    `label_rule` is written as `secadmin.languages.label_rule` says. `company_rules` says
    which company of a conflict class a tuple is of (`secadmin.languages.level_rule`). If it is
    `floored`, all that a user sends carries what the user may have read (`catalog.floors`). None is
    what is usual for the caller: no floors with CHANGE SYSTEM, and floors without it.

    `rate` is what its owner declares, in tuples a second (`secadmin.control.stream_rates`).

    If it is `shared`, all users write one topic. `lateness_ms` is None for the usual lateness: ten
    seconds if the broker's time moves the stream's time, and nothing if the data does.
    """

    name: str
    schema: str
    event_time: str | None
    time: TimeSource
    lateness_ms: int | None
    max_ahead_ms: int
    max_bytes: int
    partitions: int
    public: bool
    declaration: Declaration | None
    record_format: RecordFormat
    shared: bool = False
    label_rule: str | None = None
    company_rules: Mapping[str, str] = field(default_factory=dict)
    floored: bool | None = None
    rate: int | None = None


def add_stream(platform: Platform, caller: Caller, wanted: StreamDefinition) -> None:
    """Add a stream with its topics.

    Needs ADD STREAM, and VIEW OBJECT on the schema. A public stream, whose tuples everybody may
    see, also needs CHANGE SYSTEM, and so does one without floors (001 §3). The stream gets a
    category of its own, and one more for its declared aggregate. Raises InvalidInput, Conflict
    (also if ingest is full), Unavailable.
    """
    check_object_name(wanted.name)
    target = f"stream {wanted.name}"
    # All is checked before Kafka is called, so that no refused call makes topics.
    with reading(platform, caller, "prepare stream", target) as view:
        _check(view, wanted)
        _require_room(platform, view, wanted)
    ruled = wanted.label_rule is not None
    create = partial(
        platform.kafka.create_stream_topics, wanted.name, wanted.partitions, ruled=ruled
    )
    with (
        new_topics(platform, stream_topics(wanted.name, ruled=ruled), create),
        changing(platform, caller, "add stream", target) as work,
    ):
        checked = _check(work, wanted)
        _require_room(platform, work, wanted)
        _store(platform, work, wanted, checked)
    carry_out(platform, work)


def _require_room(platform: Platform, view: Reading, wanted: StreamDefinition) -> None:
    """Raise Conflict if the name is taken, the caller owns too much, or ingest is full."""
    view.require_free(Namespace.RELATION, wanted.name)
    require_room_for_topics(platform.user_limits, view, 1)
    require_ingest_slots(view.session, wanted.partitions, platform.limits)


def _store(platform: Platform, work: Work, wanted: StreamDefinition, checked: _Checked) -> None:
    rule, levels = checked.rule, checked.levels
    obj = Object(
        kind=ObjectKind.STREAM,
        namespace=Namespace.RELATION,
        name=wanted.name,
        owner_id=work.subject.user_id,
        created_at=platform.clock(),
    )
    work.session.add(obj)
    work.session.flush()
    relation = _relation(work, obj, wanted, checked.schema)
    if levels is not None:
        relation = replace(relation, conflict_classes=levels.conflict_classes)
    apart = rule is not None or levels is not None or checked.floored
    work.session.add(
        StreamRow(
            object_id=obj.id,
            schema_id=checked.schema_object.id,
            relation=to_stored(relation),
            record_format=to_stored(wanted.record_format),
            label_rule=None if rule is None else to_stored(rule),
            level_rule=None if levels is None else to_stored(levels),
            max_ahead_ms=wanted.max_ahead_ms,
            max_bytes=wanted.max_bytes,
            partitions=wanted.partitions,
            shared=wanted.shared,
            floored=checked.floored,
            rate=wanted.rate,
            ingest_group=_group(work, wanted.partitions, checked.schema, apart=apart),
        )
    )
    work.detail["floors"] = checked.floored
    work.detail["rate"] = wanted.rate
    if wanted.shared:
        add_senders(work, {(obj.id, None): wanted.name})
    if rule is not None:
        add_senders(work, {(obj.id, None): wanted.name}, readmits=True)
        register_texts(work.settlement, obj.id, sorted(fixed_texts(rule)))
    work.change.bump_generation()


@dataclass(frozen=True, slots=True)
class _Checked:
    """What a definition of a stream means, for a caller that may add it."""

    schema_object: Object
    schema: Schema
    rule: LabelRule | None
    levels: LevelRule | None
    floored: bool


def _check(view: Reading, wanted: StreamDefinition) -> _Checked:
    view.require_system(Permission.ADD_STREAM)
    if wanted.public:
        view.require_system(Permission.CHANGE_SYSTEM)
    schema_object = view.find(ObjectKind.SCHEMA, wanted.schema)
    view.require(Permission.VIEW_OBJECT, schema_object)
    schema = from_stored(Schema, view.session.get_one(SchemaRow, schema_object.id).definition)
    _check_event_time(wanted, schema)
    if wanted.declaration is not None:
        _check_declaration(wanted, wanted.declaration, schema)
    require_room_for_categories(view, view.subject.user_id, len(_begins_with(wanted)))
    levels = read_level_rule(view, wanted.company_rules, schema)
    if levels is not None and wanted.public:
        raise InvalidInput("everybody may see a public stream, so its tuples are of no company")
    if levels is not None and wanted.shared and levels.asks_senders:
        raise InvalidInput(f"{_NO_SENDER}, or choose another rule for the companies")
    floored = _is_floored(view, wanted)
    rule = _label_rule(view, wanted, schema)
    return _Checked(schema_object, schema, rule, levels, floored)


def _is_floored(view: Reading, wanted: StreamDefinition) -> bool:
    """Whether the stream has floors.

    Who adds a stream gives the rights to read it. So without floors its owner could show to others
    what only the senders may read. Only who holds CHANGE SYSTEM decides that. Raises Denied, and
    InvalidInput where floors cannot be.
    """
    if wanted.floored is None and not wanted.shared:
        return not wanted.public and not view.holds_system(Permission.CHANGE_SYSTEM)
    if not wanted.floored:
        view.require_system(Permission.CHANGE_SYSTEM)
        return False
    if wanted.public:
        raise InvalidInput("everybody may see a public stream, so its senders have no floors")
    if wanted.shared:
        raise InvalidInput(f"{_NO_SENDER}, or leave the floors out")
    return True


def _label_rule(view: Reading, wanted: StreamDefinition, schema: Schema) -> LabelRule | None:
    if wanted.label_rule is None:
        return None
    if wanted.public:
        raise InvalidInput("everybody may see a public stream, so it has no label rule")
    rule = parse_label_rule(wanted.label_rule, schema)
    if rule == BySender() and wanted.shared:
        raise InvalidInput(f"{_NO_SENDER}, or choose another label rule")
    for text in sorted(fixed_texts(rule)):
        check_text(view.session, text)
    return rule


def _check_event_time(wanted: StreamDefinition, schema: Schema) -> None:
    if wanted.event_time is None:
        return
    attribute = schema.get(wanted.event_time)
    if attribute is None or attribute.type is not Type.TIMESTAMP or not attribute.required:
        raise InvalidInput(
            f"event time {wanted.event_time!r} is not a required timestamp of the schema "
            f"{wanted.schema!r}"
        )


def _check_declaration(wanted: StreamDefinition, declaration: Declaration, schema: Schema) -> None:
    if wanted.event_time is None:
        raise InvalidInput("a declared aggregate has a window, so the stream needs an event time")
    if wanted.public:
        raise InvalidInput("a public stream needs no declared aggregate: everybody may read it")
    if wanted.shared:
        raise InvalidInput(
            "a shared topic is one sender, and a declared aggregate needs several: let each sender "
            "have its own topic"
        )
    check_window(Window(declaration.window_ms, declaration.window_ms))
    for key in declaration.keys:
        if schema.get(key) is None:
            raise InvalidInput(f"the declared key {key!r} is not an attribute of the schema")
    if len(set(declaration.keys)) != len(declaration.keys):
        raise InvalidInput("a declared key is there twice")
    if not set(declaration.functions) <= DECLARABLE_FUNCTIONS:
        raise InvalidInput(f"functions to declare are {', '.join(sorted(DECLARABLE_FUNCTIONS))}")


def _lateness_ms(wanted: StreamDefinition) -> int:
    if wanted.lateness_ms is not None:
        return wanted.lateness_ms
    return USUAL_LATENESS_MS if wanted.time is TimeSource.BROKER else 0


def _begins_with(wanted: StreamDefinition) -> Mapping[CategoryKind, int]:
    """The categories that the stream begins with, each with its distance from the first one."""
    return {
        kind: entry.after
        for kind, entry in KINDS.items()
        if entry.after is not None
        and (wanted.declaration is not None or not entry.needs_declaration)
    }


def _relation(work: Work, obj: Object, wanted: StreamDefinition, schema: Schema) -> Relation:
    """The stream as queries see it. Its new categories are in the order of their creation."""
    begins = _begins_with(wanted)
    first = next_category(work.session, len(begins))
    bits = {kind: first + after for kind, after in begins.items()}
    work.session.add_all(
        CategoryRow(bit=bit, kind=kind, stream_id=obj.id) for kind, bit in bits.items()
    )
    source = bits[CategoryKind.SOURCE]
    relation = Relation(
        object_id=obj.id,
        name=wanted.name,
        kind=RelationKind.STREAM,
        schema=schema,
        event_time=wanted.event_time,
        lateness_ms=_lateness_ms(wanted),
        public=wanted.public,
        time=wanted.time,
    )
    if wanted.declaration is None:
        return relation
    declaration = wanted.declaration
    return replace(
        relation,
        declared=DeclaredAggregate(
            window_ms=declaration.window_ms,
            keys=declaration.keys,
            functions=declaration.functions,
            minimum=declaration.minimum,
            source=source,
            aggregated=bits[CategoryKind.AGGREGATED],
        ),
    )


def _group(work: Work, partitions: int, schema: Schema, *, apart: bool) -> int:
    """The ingest group with the most tasks that still has room, or a new one.

    A stream with a label rule, a level rule or floors is `apart`, in a group of its own: what its
    senders have of these changes, and each change starts the group anew. Streams with nested
    attributes are among themselves, because reading them slows down a whole group.
    """
    # In a stored relation only a nested type has this sign.
    nested = select(StreamRow.ingest_group).where(cast(StreamRow.relation, String).contains("<"))
    of_nested = set(work.session.scalars(nested))
    loads = ingesting_by_group(work.session).items()
    ruled = select(StreamRow.ingest_group).where(
        or_(
            StreamRow.label_rule.is_not(None),
            StreamRow.level_rule.is_not(None),
            StreamRow.floored,
        )
    )
    closed = set(work.session.scalars(ruled))
    room = [
        (load, group)
        for group, load in loads
        if load + partitions <= PARTITIONS_A_GROUP
        and group not in closed
        and (group in of_nested) == any(not isinstance(a.type, Type) for a in schema.attributes)
    ]
    if room and not apart:
        return max(room)[1]
    highest = work.session.scalar(select(func.max(StreamRow.ingest_group)))
    return 1 if highest is None else highest + 1

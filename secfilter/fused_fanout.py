"""The fan-out of a fused run: one scan of a relation, and the results of many plans over it.

Each tuple is there once for each member whose conditions it fulfils, with the values of the
member's plan. A plan without state changes neither label nor lineage. So each result has the label
and the id that it would have if the member ran by itself, and goes to the same topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.label import Label
from catalog.run_counts import LARGE
from catalog.runs import FedOutput, FusedRun, QueryRun
from catalog.schema import Schema
from catalog.topics import ID_HEADER, LABEL_HEADER, RESULT_ECHO_TOPIC
from secfilter.beginnings import having_begun
from secfilter.columns import BEGUN, ECHO, ID, ValueOf
from secfilter.compiler import Compiled
from secfilter.expressions import to_column
from secfilter.fanout import DEFAULT_MAX_BYTES, keyed_id, text_bytes, to_json
from secfilter.fused_plan import FusedPlan, fused_plan
from secfilter.lab import encode_label, encode_value, headers, lab_headers, label_word
from secfilter.label_words import unpacked_words, words
from secfilter.visibility import in_layout, visible_to

FUSED_LARGE = "too_large_of"
"""The observation that counts results that are too large. It has a column for each member."""
_MEMBER, _JSON, _LAB, _LARGE, _LABEL = "__member", "__json", "__lab", "__large", "__wire"
_ROWS, _ROW, _TO = "__rows", "__row", "__to"
_TICK = -1
_RESULT = f"struct<{_MEMBER}:int,{_JSON}:string,{_LAB}:string,{_LARGE}:boolean>"
_TARGET = "struct<topic:string,output:string,inside:boolean>"


def count_of(member: str) -> str:
    """Under which name the too large results of a member are counted."""
    return f"{member}/{LARGE}"


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of the run: its number there, and its plan over the common source."""

    number: int
    run: QueryRun
    plan: FusedPlan

    @property
    def column(self) -> str:
        """The column with its result, or NULL."""
        return f"__result_{self.number}"

    @property
    def value_of(self) -> ValueOf:
        """Gives an attribute of its result. An attribute's name may contain dots."""
        places = {name: f"v{place}" for place, name in enumerate(self.plan.schema.names)}
        return lambda name: fn.col(self.column)[places[name]]


def fan_out_fused(
    compiled: Compiled,
    run: FusedRun,
    id_key: str,
    max_bytes: int = DEFAULT_MAX_BYTES,
    late: Sequence[FedOutput] = (),
    *,
    echoes: bool = False,
) -> DataFrame:
    """Records for Kafka's sink, as `secfilter.fanout.fan_out` makes them for each member.

    `compiled` are the tuples of the source that all members read. Raises ValueError for a member
    that must run by itself.
    """
    members = [_member(number, each) for number, each in enumerate(run.members)]
    layout = compiled.layout
    sources = layout.packed(run.sources)
    begun = having_begun(late)
    carried = [
        *(label_word(index) for index in words(layout)),
        fn.col(ID),
        *([fn.col(BEGUN)] if late else []),
        *([fn.col(ECHO)] if echoes else []),
    ]
    labelled = compiled.frame.select(
        *carried,
        encode_label(unpacked_words(layout)).alias(_LABEL),
        *(_result(each, compiled.schema, echoes=echoes) for each in members),
    )
    visible = [_visible(each.run, compiled, sources) for each in members]
    made = [_row(each, seen, max_bytes) for each, seen in zip(members, visible, strict=True)] + (
        [_tick_row()] if echoes else []
    )
    rows = labelled.select(*carried, _LABEL, fn.array(*made).alias(_ROWS))
    spread = rows.select(*carried, _LABEL, fn.explode(_ROWS).alias(_ROW))
    results = spread.where(fn.col(_ROW).isNotNull()).select(*carried, _LABEL, f"{_ROW}.*")
    within = _within(results, members, max_bytes)
    to = _targets(members, visible, begun, echoes=echoes)
    addressed = within.select(*carried, _LABEL, _JSON, _LAB, to.alias(_TO))
    single = addressed.withColumn(_TO, fn.explode(_TO)).where(fn.col(_TO).isNotNull())
    return _records(single, id_key, echoes=echoes)


def _member(number: int, run: QueryRun) -> _Member:
    plan = fused_plan(run.plan)
    if plan is None:
        raise ValueError(f"the plan of {run.name} is not one that others run with")
    return _Member(number, run, plan)


def _result(member: _Member, given: Schema, *, echoes: bool) -> Column:
    """The values of the member's result, or NULL if the tuple does not fulfil its conditions."""
    values = [
        to_column(each, given).alias(f"v{place}") for place, each in enumerate(member.plan.values)
    ]
    wanted = [to_column(each, given) for each in member.plan.conditions]
    # A tick is no tuple, and has no results.
    wanted += [fn.col(ECHO).isNull()] if echoes else []
    made = fn.struct(*values)
    all_ = reduce(lambda a, b: a & b, wanted, fn.lit(True))
    return fn.when(all_, made).alias(member.column)


def _visible(run: QueryRun, compiled: Compiled, sources: Label) -> dict[str, Column]:
    """topic -> whether its class takes a result with the tuple's label."""
    layout = compiled.layout
    return {
        each.topic: visible_to(in_layout(each, layout), words(layout), sources)
        for each in run.classes
    }


def _row(member: _Member, visible: dict[str, Column], max_bytes: int) -> Column:
    """The member's result as texts, or NULL if there is none."""
    schema, value_of = member.plan.schema, member.value_of
    fits = text_bytes(schema, value_of) <= fn.lit(max_bytes)
    nothing = fn.lit(None).cast("string")
    taken = reduce(lambda a, b: a | b, visible.values(), fn.lit(False))
    json = fn.when(fits & taken, to_json(schema, value_of))
    lab = fn.when(fits, encode_value(schema, value_of)) if member.run.labelled else nothing
    row = fn.struct(fn.lit(member.number), json, lab, ~fits).cast(_RESULT)
    return fn.when(fn.col(member.column).isNotNull(), row)


def _tick_row() -> Column:
    """A row for a tick, which becomes its echo."""
    nothing = fn.lit(None).cast("string")
    row = fn.struct(fn.lit(_TICK), nothing, nothing, fn.lit(False)).cast(_RESULT)
    return fn.when(fn.col(ECHO).isNotNull(), row)


def _within(results: DataFrame, members: Sequence[_Member], max_bytes: int) -> DataFrame:
    """The results that are not too large. The others are counted for their members."""
    large = fn.col(_LARGE)
    for text in (_JSON, _LAB):
        longer = fn.octet_length(fn.col(text)) > fn.lit(max_bytes)
        large = large | fn.coalesce(longer, fn.lit(False))
    counts = (
        fn.count_if(large & (fn.col(_MEMBER) == fn.lit(each.number))).alias(count_of(each.run.name))
        for each in members
    )
    return results.observe(FUSED_LARGE, *counts).where(~large)


def _targets(
    members: Sequence[_Member],
    visible: Sequence[dict[str, Column]],
    begun: dict[str, Column],
    *,
    echoes: bool,
) -> Column:
    """The topics to which a result goes, each with its output. An entry is NULL if it does not."""
    found = fn.when(fn.lit(False), fn.array(fn.lit(None).cast(_TARGET)))
    for each, seen in zip(members, visible, strict=True):
        own = [
            fn.when(taken & begun.get(output.relation.name, fn.lit(True)), target)
            for output in each.run.outputs
            for taken, target in _ways(output, seen)
        ]
        if own:
            found = found.when(fn.col(_MEMBER) == fn.lit(each.number), fn.array(*own))
    if echoes:
        echo = fn.array(_target(RESULT_ECHO_TOPIC, "", inside=False))
        found = found.when(fn.col(_MEMBER) == fn.lit(_TICK), echo)
    return found


def _ways(output: FedOutput, visible: dict[str, Column]) -> list[tuple[Column, Column]]:
    """When a result goes to a topic of the output, and the topic."""
    name = output.relation.name
    ways = [(visible[c.topic], _target(c.topic, name, inside=False)) for c in output.classes]
    if output.labelled:
        ways.append((fn.lit(True), _target(output.relation.topic, name, inside=True)))
    return ways


def _target(topic: str, output: str, *, inside: bool) -> Column:
    return fn.struct(fn.lit(topic), fn.lit(output), fn.lit(inside)).cast(_TARGET)


def _records(single: DataFrame, id_key: str, *, echoes: bool) -> DataFrame:
    inside, label = fn.col(_TO)["inside"], fn.col(_LABEL)
    id_ = keyed_id(id_key, fn.col(_TO)["output"])
    key = fn.when(inside, id_)
    value = fn.when(inside, fn.col(_LAB)).otherwise(fn.col(_JSON))
    marks = fn.when(inside, lab_headers(label)).otherwise(
        headers((LABEL_HEADER, label), (ID_HEADER, id_))
    )
    if echoes:
        echo = fn.col(ECHO).isNotNull()
        value = fn.when(echo, fn.col(ECHO)).otherwise(value)
        marks = fn.when(~echo, marks)
    topic = fn.col(_TO)["topic"].alias("topic")
    return single.select(topic, key.alias("key"), value.alias("value"), marks.alias("headers"))

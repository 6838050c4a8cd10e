"""The fan-out of a fused run: one scan of a relation, and the results of many plans over it.

A tuple is there once for each member whose conditions it fulfils. Then it gets the values of that
member's plan, and goes to that member's topics. A plan without state changes neither label nor
lineage. So each result has the label and the id that it would have if the member ran by itself, and
goes to the same topics.

The JVM takes no method of more than 64 KB, and Spark generates one for a whole stage. So what
members have in common is computed once: which classes see a label, and the values of plans that
select the same. What is left for each member is its conditions. Its topics are in a table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.label import Label
from catalog.label_layout import LabelLayout
from catalog.run_counts import LARGE
from catalog.runs import FanOutClass, FedOutput, FusedRun, QueryRun
from catalog.schema import Schema
from catalog.topics import ID_HEADER, LABEL_HEADER, RESULT_ECHO_TOPIC
from secfilter.beginnings import having_begun
from secfilter.columns import ECHO, ID, ValueOf, attribute
from secfilter.compiler import Compiled
from secfilter.expressions import to_column
from secfilter.fanout import DEFAULT_MAX_BYTES, keyed_id, text_bytes, to_json
from secfilter.fused_plan import FusedPlan, fused_plan
from secfilter.lab import encode_label, encode_value, headers, lab_headers
from secfilter.label_words import unpacked_words, words
from secfilter.visibility import in_layout, visible_to

FUSED_LARGE = "too_large_of"
"""The observation that counts results that are too large. It has a column for each member."""
_MEMBER, _JSON, _LAB, _LARGE, _LABEL = "__member", "__json", "__lab", "__large", "__wire"
_MEMBERS, _TAKEN, _FLAGS, _TO = "__members", "__taken", "__flags", "__to"
_RESULT = f"struct<{_JSON}:string,{_LAB}:string,{_LARGE}:boolean>"
_TARGET = "struct<topic:string,output:string,inside:boolean,flag:int>"


def count_of(member: str) -> str:
    """Under which name the too large results of a member are counted."""
    return f"{member}/{LARGE}"


@dataclass(frozen=True, slots=True)
class _Shape:
    """What members select that give the same values, and their numbers.

    `labelled` are those of the members whose results go to a labelled topic, too.
    """

    number: int
    plan: FusedPlan
    members: tuple[int, ...]
    labelled: tuple[int, ...]

    @property
    def column(self) -> str:
        """The column with the values, or NULL if the result is of another shape."""
        return f"__values_{self.number}"

    @property
    def is_its(self) -> Column:
        """Whether the result is one of its members'."""
        return fn.col(_MEMBER).isin([*self.members])

    @property
    def value_of(self) -> ValueOf:
        """Gives an attribute of the result. An attribute's name may contain dots."""
        places = {name: f"v{place}" for place, name in enumerate(self.plan.schema.names)}
        return lambda name: fn.col(self.column)[places[name]]


class _Flags:
    """Conditions on a tuple that members have in common. Each is there once."""

    def __init__(self, layout: LabelLayout, sources: Label, begun: Mapping[str, Column]) -> None:
        self._layout, self._sources, self._begun = layout, sources, begun
        self._found: dict[object, tuple[int, Column]] = {}

    @property
    def columns(self) -> list[Column]:
        """All conditions, each at its number."""
        return [column for _, column in self._found.values()]

    def always(self) -> int:
        """The number of the condition that all fulfil."""
        return self._number((), fn.lit(True))

    def has_begun(self, output: FedOutput) -> int:
        """The number of the condition that the output has begun when the tuple came."""
        name = output.relation.name
        begun = self._begun.get(name)
        return self.always() if begun is None else self._number(name, begun)

    def takes(self, output: FedOutput, class_: FanOutClass) -> int:
        """The number of the condition that the class of the output takes the tuple."""
        name = output.relation.name
        begun, seen = self._begun.get(name), self._sees(class_)
        if begun is None:
            return self._number(class_.delivery, seen)
        return self._number((name, class_.delivery), seen & begun)

    def is_taken(self, output: FedOutput) -> Column:
        """Whether any class of the output takes the tuple (never NULL)."""
        seen = [fn.coalesce(self._sees(each), fn.lit(False)) for each in output.classes]
        taken = reduce(lambda a, b: a | b, seen, fn.lit(False))
        begun = self._begun.get(output.relation.name)
        return taken if begun is None else taken & fn.coalesce(begun, fn.lit(False))

    def _sees(self, class_: FanOutClass) -> Column:
        """Whether the class may see a tuple with such a label."""
        return visible_to(in_layout(class_, self._layout), words(self._layout), self._sources)

    def _number(self, key: object, condition: Column) -> int:
        return self._found.setdefault(key, (len(self._found), condition))[0]


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
    plans = [_plan_of(each) for each in run.members]
    flags = _Flags(compiled.layout, compiled.layout.packed(run.sources), having_begun(late))
    targets = [_targets(each, flags) for each in run.members]
    if echoes:
        targets.append([_target(RESULT_ECHO_TOPIC, "", flags.always(), inside=False)])
    carried = [fn.col(ID), *([fn.col(ECHO)] if echoes else [])]
    labelled = compiled.frame.select(
        *map(attribute, compiled.schema.names),
        *carried,
        encode_label(unpacked_words(compiled.layout)).alias(_LABEL),
        fn.array(*flags.columns).alias(_FLAGS),
        fn.array(*(_is_taken(each, flags) for each in run.members)).alias(_TAKEN),
        _members(plans, compiled.schema, echoes=echoes).alias(_MEMBERS),
    )
    carried += [fn.col(_LABEL), fn.col(_FLAGS), fn.col(_MEMBER)]
    spread = labelled.withColumn(_MEMBER, fn.explode(_MEMBERS)).where(fn.col(_MEMBER).isNotNull())
    shapes = _shapes(run.members, plans)
    values = spread.select(
        *carried,
        fn.get(fn.col(_TAKEN), fn.col(_MEMBER)).alias(_TAKEN),
        *(_values(shape, compiled.schema) for shape in shapes),
    )
    result = _result(shapes, max_bytes)
    results = values.select(*carried, result.alias("__result")).select(*carried, "__result.*")
    within = _within(results, run.members, max_bytes)
    to = fn.get(fn.array(*(fn.array(*own).cast(f"array<{_TARGET}>") for own in targets)), _MEMBER)
    single = within.withColumn(_TO, fn.explode(to))
    return _records(single.where(_is_flagged()), id_key, echoes=echoes)


def _plan_of(run: QueryRun) -> FusedPlan:
    plan = fused_plan(run.plan)
    if plan is None:
        raise ValueError(f"the plan of {run.name} is not one that others run with")
    return plan


def _shapes(runs: Sequence[QueryRun], plans: Sequence[FusedPlan]) -> list[_Shape]:
    alike: defaultdict[object, list[int]] = defaultdict(list)
    for number, plan in enumerate(plans):
        alike[plan.values, plan.schema].append(number)
    return [
        _Shape(number, plans[own[0]], tuple(own), tuple(n for n in own if runs[n].labelled))
        for number, own in enumerate(alike.values())
    ]


def _members(plans: Sequence[FusedPlan], given: Schema, *, echoes: bool) -> Column:
    """The numbers of the members whose conditions the tuple fulfils, among NULLs.

    A tick is no tuple, and fulfils none. Its number is the one behind theirs.
    """
    is_tuple = [fn.col(ECHO).isNull()] if echoes else []
    found = []
    for number, plan in enumerate(plans):
        wanted = [*is_tuple, *(to_column(each, given) for each in plan.conditions)]
        all_ = reduce(lambda a, b: a & b, wanted, fn.lit(True))
        found.append(fn.when(all_, fn.lit(number)))
    if echoes:
        found.append(fn.when(fn.col(ECHO).isNotNull(), fn.lit(len(plans))))
    return fn.array(*found)


def _is_taken(run: QueryRun, flags: _Flags) -> Column:
    """Whether the tuple goes to any class of the member."""
    return reduce(lambda a, b: a | b, map(flags.is_taken, run.outputs), fn.lit(False))


def _values(shape: _Shape, given: Schema) -> Column:
    values = (
        to_column(each, given).alias(f"v{place}") for place, each in enumerate(shape.plan.values)
    )
    return fn.when(shape.is_its, fn.struct(*values)).alias(shape.column)


def _result(shapes: Sequence[_Shape], max_bytes: int) -> Column:
    """The result as texts. A tick has none."""
    nothing = fn.lit(None).cast("string")
    found = fn.when(fn.lit(False), fn.struct(nothing, nothing, fn.lit(False)).cast(_RESULT))
    for shape in shapes:
        schema, value_of = shape.plan.schema, shape.value_of
        fits = text_bytes(schema, value_of) <= fn.lit(max_bytes)
        json = fn.when(fits & fn.col(_TAKEN), to_json(schema, value_of))
        # Of others it would count as too large where nobody takes it.
        inside = fits & fn.col(_MEMBER).isin([*shape.labelled])
        lab = fn.when(inside, encode_value(schema, value_of)) if shape.labelled else nothing
        found = found.when(shape.is_its, fn.struct(json, lab, ~fits).cast(_RESULT))
    return found.otherwise(fn.struct(nothing, nothing, fn.lit(False)).cast(_RESULT))


def _within(results: DataFrame, runs: Sequence[QueryRun], max_bytes: int) -> DataFrame:
    """The results that are not too large. The others are counted for their members."""
    large = fn.col(_LARGE)
    for text in (_JSON, _LAB):
        longer = fn.octet_length(fn.col(text)) > fn.lit(max_bytes)
        large = large | fn.coalesce(longer, fn.lit(False))
    counts = (
        fn.count_if(large & (fn.col(_MEMBER) == fn.lit(number))).alias(count_of(each.name))
        for number, each in enumerate(runs)
    )
    return results.observe(FUSED_LARGE, *counts).where(~large)


def _targets(run: QueryRun, flags: _Flags) -> list[Column]:
    """The topics to which results of the member go, each with its output and its condition."""
    found = []
    for output in run.outputs:
        name = output.relation.name
        for class_ in output.classes:
            found.append(_target(class_.topic, name, flags.takes(output, class_), inside=False))
        if output.labelled:
            topic = output.relation.topic
            found.append(_target(topic, name, flags.has_begun(output), inside=True))
    return found


def _target(topic: str, output: str, flag: int, *, inside: bool) -> Column:
    return fn.struct(fn.lit(topic), fn.lit(output), fn.lit(inside), fn.lit(flag)).cast(_TARGET)


def _is_flagged() -> Column:
    """Whether the tuple fulfils the condition of the target (never NULL)."""
    return fn.coalesce(fn.get(fn.col(_FLAGS), fn.col(_TO)["flag"]), fn.lit(False))


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

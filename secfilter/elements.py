"""One tuple for each element of an array (UNNEST)."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.expression import type_of
from catalog.plan import Unnest
from catalog.plan_check import MAX_ELEMENTS
from catalog.schema import ArrayType, AttributeType, Schema
from secfilter.columns import ID
from secfilter.expressions import to_column
from secfilter.nested import held_value, spark_value

_ELEMENT, _PLACE = "__element", "__place"
# So many digits has the place of an element in a lineage: so lineages are in the order of places.
_DIGITS = len(str(MAX_ELEMENTS))


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of the array of a node, over tuples of a schema.

    A frame that is `spread` also has a row for each tuple without elements.
    """

    node: Unnest
    array: Column
    kind: AttributeType

    @classmethod
    def of(cls, node: Unnest, schema: Schema) -> Elements:
        """The elements of the node's array. Raises TypeError for anything but an array."""
        whole = type_of(node.array, schema)
        if not isinstance(whole, ArrayType):
            raise TypeError("the elements of something that is no array")
        return cls(node, spark_value(to_column(node.array, schema), whole), whole.element)

    def spread(self, frame: DataFrame) -> DataFrame:
        """The frame's tuples once for each element, with lineages of their own."""
        first = fn.slice(self.array, 1, MAX_ELEMENTS)
        rows = frame.select("*", fn.posexplode_outer(first).alias(_PLACE, _ELEMENT))
        place = fn.lpad(fn.coalesce(fn.col(_PLACE), fn.lit(-1)).cast("string"), _DIGITS, "0")
        return rows.withColumn(ID, fn.concat(fn.col(ID), fn.lit("/"), place))

    def is_there(self) -> Column:
        """Whether a row has an element, which may be NULL."""
        return fn.col(_PLACE).isNotNull()

    def columns(self) -> list[Column]:
        """The element and its place, under their names."""
        number = [] if self.node.number is None else [self.node.number]
        place = fn.col(_PLACE).cast("bigint") + fn.lit(1)
        return [
            held_value(fn.col(_ELEMENT), self.kind).alias(self.node.name),
            *(place.alias(name) for name in number),
        ]

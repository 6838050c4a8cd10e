"""Labels that ingest adds to the label of a record: those of its companies, and of its floor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.label import MAX_WORDS, Label
from secfilter.lab import short_label


@dataclass(frozen=True, slots=True)
class Added:
    """A label that is looked up by a text of the record, `key`. Another text adds nothing."""

    labels: Mapping[str, Label]
    key: Column

    def word(self, index: int) -> Column:
        """The word at `index` of the label that is added."""
        pairs = [
            fn.lit(part)
            for text, label in self.labels.items()
            for part in (text, label.word(index))
        ]
        if not pairs:
            return fn.lit(0).cast("bigint")
        found = fn.try_element_at(fn.create_map(*pairs).cast("map<string,bigint>"), self.key)
        return fn.coalesce(found, fn.lit(0).cast("bigint"))


def with_added(label: Column, added: Sequence[Added]) -> Column:
    """The text of a label with these labels added. NULL stays NULL: it is not known yet."""
    labels = [found for each in added for found in each.labels.values()]
    count = max((-(-found.bits.bit_length() // 64) for found in labels), default=0)
    parts = fn.split(label, ",", -1)
    words = []
    for index in range(max(count, 1)):
        own = fn.coalesce(fn.get(parts, fn.lit(index)), fn.lit("0")).cast("bigint")
        words.append(reduce(lambda a, b: a.bitwiseOR(b), (e.word(index) for e in added), own))
    # A label that is sent again may have more words than these.
    rest = fn.slice(parts, len(words) + 1, MAX_WORDS)
    texts = [word.cast("string") for word in words]
    written = fn.when(fn.size(rest) > 0, fn.concat_ws(",", *texts, rest))
    short = short_label(fn.concat_ws(",", *texts), last=words[-1])
    return fn.when(label.isNotNull(), written.otherwise(short))

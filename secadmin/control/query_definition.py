"""What a caller says of a new query."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueryDefinition:
    """The definition of a new query. `output` is the name of the output, if there is only one.

    `language` is sql, borealis, or user-query: the XML of paper 002's customised query.

    With `as_roles`, the query reads its streams as these roles see them, and its results come by no
    other role of a subscriber. A text in SQL can name them, too: AS doctor SELECT ... So can the
    name, which is then in the space of one role: doctor.alarms. With `accept_empty`, it is added
    even if policies leave it no tuple of a stream. At a `level`, such as [Company1, _], it reads
    only what the level dominates (001 §3): AT LEVEL [...] SELECT ...
    `semantics` is `strong` (None is the same), or `view`: each subscriber gets what the query gives
    over the tuples that the subscriber may see, or `isolated`: the same, and each delivery class
    has a run of its own. With `exact`, a result comes by one role alone, and not by several
    together (000 §5.2.1). SEMANTICS VIEW SELECT ... says it in the text.
    """

    name: str
    language: str
    text: str
    output: str | None = None
    as_roles: tuple[str, ...] = ()
    accept_empty: bool = False
    level: str | None = None
    semantics: str | None = None

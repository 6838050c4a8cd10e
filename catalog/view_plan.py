"""Rewrites a plan so that it reads of each stream no more than a view shows (002, section 3.1).

The rows and attributes are cut directly above the source. So nothing that the view hides reaches
another node: no state, no group, no error and no count reveals it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from catalog.conflict_class import LEVEL
from catalog.expression import AttributeRef
from catalog.plan import Column, Filter, Node, Plan, Project, Source, at_sources
from catalog.relation import Relation
from catalog.role_view import RoleView, null_unless
from catalog.schema import Schema
from catalog.view_aggregates import require_aggregates
from catalog.view_windows import require_one_window


@dataclass(frozen=True, slots=True)
class ViewedStream:
    """A stream, and the view through which a query reads it."""

    stream: Relation
    view: RoleView

    @property
    def relation(self) -> Relation:
        """The stream as the query's author knows it: without what the view does not show.

        It has no declared aggregate, because that is an aggregate of all tuples.
        """
        view, stream = self.view, self.stream
        shown = []
        for attribute in stream.schema.attributes:
            right = view.right(attribute.name)
            if right is not None:
                required = attribute.required and right.when is None
                shown.append(replace(attribute, required=required))
        names = {attribute.name for attribute in shown}
        event_time = stream.event_time if stream.event_time in names else None
        return replace(stream, schema=Schema(tuple(shown)), event_time=event_time, declared=None)

    def in_place_of(self, source: Source) -> Node:
        """What a query reads in place of the stream."""
        stream, view = replace(self.stream, declared=None), self.view
        node: Node = replace(source, relation=stream)
        if view.rows is not None:
            node = Filter(node, view.rows)
        if view.visible_when is not None:
            node = Filter(node, view.visible_when)
        if view.attributes is None:
            return node
        # The level is the platform's, so no view hides it.
        level = (Column(LEVEL, AttributeRef(LEVEL)),) if source.shows_level else ()
        shown = (self._column(name) for name in self.relation.schema.names)
        return Project(node, (*shown, *level))

    def _column(self, name: str) -> Column:
        right, attribute = self.view.right(name), self.stream.schema.get(name)
        if right is None or right.when is None or attribute is None:
            return Column(name, AttributeRef(name))
        return Column(name, null_unless(right.when, name, attribute.type))


def through_views(plan: Plan, views: Mapping[int, ViewedStream]) -> Plan:
    """The plan that reads the streams through these views, which are by the stream's id.

    `plan` was made over `ViewedStream.relation` of each of these streams. Raises InvalidInput if
    the plan shows what a view allows only in aggregates, with what is allowed.
    """
    if not views:
        return plan
    checked = require_aggregates(plan, {id_: each.view for id_, each in views.items()})
    require_one_window(plan, [id_ for id_, each in views.items() if each.view.window is not None])

    def viewed(source: Source) -> Node:
        found = views.get(source.relation.object_id)
        return source if found is None else found.in_place_of(source)

    return at_sources(checked, viewed)

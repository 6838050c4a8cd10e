"""What ingest and queries know of levels: the rules of streams, the levels of senders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import orm, select

from catalog.conflict_class import ConflictClass
from catalog.conflict_classes import conflict_classes
from catalog.level_rule import LevelRule
from catalog.models import SenderRow, StreamRow, UserLevel
from catalog.plan import Plan, source_nodes
from catalog.runs import IngestStream
from catalog.stored_form import from_stored


class StreamLevels:
    """Adds the level rules of streams to what ingest reads of them, in one transaction."""

    def __init__(self, session: orm.Session) -> None:
        self._session = session
        self._classes: Mapping[int, ConflictClass] | None = None
        self._parts: Mapping[tuple[int, int], str | None] | None = None

    def added(self, row: StreamRow, stream: IngestStream | None) -> IngestStream | None:
        """The stream with its level rule, if it has one."""
        if stream is None or row.level_rule is None:
            return stream
        rule = from_stored(LevelRule, row.level_rule)
        if self._classes is None:
            self._classes = conflict_classes(self._session)
        classes = tuple(self._classes[id_] for id_ in rule.conflict_classes)
        users = self._users(row.object_id)
        senders = tuple(
            replace(each, parts=self._parts_of(users.get(each.id), rule)) for each in stream.senders
        )
        return replace(stream, level_rule=rule, conflict_classes=classes, senders=senders)

    def _users(self, stream: int) -> Mapping[int, int | None]:
        query = select(SenderRow.id, SenderRow.user_id).where(SenderRow.stream_id == stream)
        return {row.id: row.user_id for row in self._session.execute(query)}

    def _parts_of(self, user: int | None, rule: LevelRule) -> tuple[str | None, ...]:
        if self._parts is None:
            rows = self._session.scalars(select(UserLevel))
            self._parts = {(row.user_id, row.class_id): row.part for row in rows}
        if user is None:
            return tuple(None for _ in rule.companies)
        return tuple(self._parts.get((user, each)) for each in rule.conflict_classes)


def shown_classes(session: orm.Session, plan: Plan) -> tuple[ConflictClass, ...]:
    """The conflict classes whose companies a plan shows as levels."""
    shown = {
        id_
        for source in source_nodes(plan)
        if source.shows_level
        for id_ in source.relation.conflict_classes
    }
    return tuple(conflict_classes(session, shown).values()) if shown else ()

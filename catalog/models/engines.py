"""What engines should run and what they report, and leases."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from catalog.models.base import Base, Key


class Lease(Base):
    """A lock across processes that ends by itself when its holder is dead.

    `expires_at` is by the holder's clock, for people who read the table. Nothing depends on it.
    """

    __tablename__ = "leases"
    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    holder: Mapped[str] = mapped_column(String(64))
    expires_at: Mapped[datetime]


class RunStatus(Base):
    """An engine's report on a run: its state, and a message that never holds data.

    `since` is the time when this state began. None of its `topics` may be deleted. `counts` has the
    numbers of tuples and records that it withheld so far, by kind. `delivered_ms` and `through` are
    those of `catalog.runs.RunReport`.
    """

    __tablename__ = "run_statuses"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    state: Mapped[str] = mapped_column(String(16))  # starting, running, restarting, failed, stopped
    message: Mapped[str] = mapped_column(default="")
    fingerprint: Mapped[str] = mapped_column(String(64), default="")
    updated_at: Mapped[datetime]
    since: Mapped[datetime]
    topics: Mapped[list[str]] = mapped_column(JSON, default=list)
    counts: Mapped[dict[str, int]] = mapped_column(JSON, default=dict)
    delivered_ms: Mapped[int | None]
    through: Mapped[bool] = mapped_column(default=False)


class Heartbeat(Base):
    """The heartbeat of an engine: a count of beats. It has no time, because clocks differ.

    Other processes watch whether the count goes on (`catalog.pulse`). `applied` is the generation
    that the engine has applied: the `RunStatus` of each of its runs has the topics of that
    generation. Its process began at the beat `began`. It has died `deaths` times since it last
    lived long.
    """

    __tablename__ = "heartbeats"
    engine: Mapped[str] = mapped_column(String(32), primary_key=True)
    beats: Mapped[int] = mapped_column(default=0)
    applied: Mapped[int] = mapped_column(default=-1)
    began: Mapped[int] = mapped_column(default=0)
    deaths: Mapped[int] = mapped_column(default=0)
    ended: Mapped[bool] = mapped_column(default=False)


class Assignment(Base):
    """Where an execution runs; `catalog.assignments` has the rules.

    `home` is the engine whose slots it takes. `engine` is the only one that may run it now. While
    it is `on_trial` it belongs in the engine `probation`, where one `trial_group` is `tried` at a
    time. `tried_beat` is a beat of `probation`, and all other beats are of the home engine.
    `parked_because` is the reason why it is parked, and empty if it is not.
    """

    __tablename__ = "assignments"
    execution_id: Mapped[int] = mapped_column(ForeignKey("executions.id"), primary_key=True)
    home: Mapped[str] = mapped_column(String(32))
    engine: Mapped[str] = mapped_column(String(32), index=True)
    changed_beat: Mapped[int] = mapped_column(default=0)
    on_trial: Mapped[bool] = mapped_column(default=False)
    trial_group: Mapped[int] = mapped_column(default=0)
    tried: Mapped[bool] = mapped_column(default=False)
    tried_beat: Mapped[int | None]
    trials: Mapped[int] = mapped_column(default=0)
    deaths: Mapped[int] = mapped_column(default=0)
    parked_because: Mapped[str] = mapped_column(String(200), default="")


class TopicFault(Base):
    """A topic that an engine found to differ from what the catalog says.

    Only the runs that use the topic stop.
    """

    __tablename__ = "topic_faults"
    topic: Mapped[str] = mapped_column(String(160), primary_key=True)
    engine: Mapped[str] = mapped_column(String(32), primary_key=True)
    reason: Mapped[str] = mapped_column(String(200))
    since: Mapped[datetime]


class Generation(Base):
    """One row that counts the changes of the wanted runs. Engines read it to notice changes."""

    __tablename__ = "generation"
    id: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    value: Mapped[int] = mapped_column(default=0)

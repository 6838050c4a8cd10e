"""The catalog's storage: transactions that read, and changes, each with its audit entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, select, update
from sqlalchemy.orm import Session

from catalog import audit
from catalog.audit import AuditReport, Outcome
from catalog.audit_head import Head, KeptHeads
from catalog.audit_key import AuditKey
from catalog.clock import Clock, utc_now
from catalog.decision import Decision
from catalog.engine import for_reading, for_writing, open_engine
from catalog.errors import Unavailable
from catalog.models import AuditHead, Generation
from catalog.outage import outages_translated

GENERATION_ID = 1
# Every change runs it. It is built once, because that takes longer.
_LOCKED_HEAD = select(AuditHead).where(AuditHead.id == audit.HEAD_ID).with_for_update()


def bump_generation(session: Session) -> None:
    """Tell the engines that the wanted runs may have changed."""
    row = update(Generation).where(Generation.id == GENERATION_ID)
    session.execute(row.values(value=Generation.value + 1))


class Change:
    """One transaction that changes the catalog: the change and its audit entries, or nothing."""

    def __init__(
        self, session: Session, head: AuditHead, actor: str, now: datetime, key: AuditKey
    ) -> None:
        self.session = session
        self.actor = actor
        self.now = now
        self.entries = 0
        self.changed = False
        self._head = head
        self._key = key

    @property
    def head(self) -> Head:
        """The head of the audit log after the entries of this change so far."""
        return Head(self._head.seq, self._head.hash)

    def audit(
        self,
        action: str,
        object: str,  # noqa: A002 - the audit log's own word
        outcome: Outcome | str = Outcome.CHANGED,
        reason: str = "",
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Write an entry. `object` is kind and name. Raises ValueError for a detail with a secret.

        `outcome` is allowed, denied, changed or failed.
        """
        fields = {
            "actor": self.actor,
            "action": action,
            "object": object,
            "outcome": outcome,
            "reason": reason,
            "detail": detail or {},
        }
        audit.append(self.session, self._head, self.now, fields, self._key)
        self.entries += 1
        self.changed |= outcome == Outcome.CHANGED

    def audit_decision(self, action: str, decision: Decision) -> None:
        """Write the decision as an entry of its own."""
        outcome = Outcome.ALLOWED if decision.allowed else Outcome.DENIED
        self.audit(action, decision.object, outcome, decision.reason, decision.as_detail())

    def bump_generation(self) -> None:
        """Tell the engines that the wanted runs may have changed."""
        bump_generation(self.session)


class Catalog:
    """The database of one deployment. Safe to share between threads."""

    def __init__(
        self,
        url: str,
        audit_key: AuditKey | None = None,
        clock: Clock = utc_now,
        lock_timeout_ms: int = 10_000,
    ) -> None:
        """Open `sqlite:///<file>` or `postgresql://...`; the tables are made by `bootstrap`.

        Without the audit log's key no change is possible. SecFilter has no key. Raises
        InvalidInput for an unusable URL, Unavailable if the database cannot be reached.
        """
        self.clock = clock
        self._audit_key = audit_key
        self._committed: Callable[[Head], None] = lambda head: None
        self.engine: Engine = open_engine(url, lock_timeout_ms)
        self._reading = for_reading(self.engine)
        self._writing = for_writing(self.engine)

    def tell_heads(self, committed: Callable[[Head], None]) -> None:
        """Call `committed` with the head after each committed change. It must not wait."""
        self._committed = committed

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session over one snapshot, which cannot write. Raises Unavailable."""
        with outages_translated(), Session(self._reading, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def change(self, actor: str) -> Iterator[Change]:
        """A change by `actor` (a user's name, or `audit.PLATFORM`).

        The audit head is locked first. So the changes of all services run one by one, and nobody
        changes what the block reads. It is committed when the block ends and rolled back when the
        block raises. Raises Unavailable if the lock is not free in time or the database cannot be
        reached. Raises RuntimeError if the block wrote no audit entry, or the catalog was opened
        without the audit key. Do nothing slow in the block.
        """
        if self._audit_key is None:
            raise RuntimeError("only who has the audit key changes the catalog")
        with self.bookkeeping() as session:
            head = session.scalar(_LOCKED_HEAD)
            if head is None:
                raise Unavailable("the catalog is not initialised; start secadmin first")
            change = Change(session, head, actor, self.clock(), self._audit_key)
            yield change
            if change.entries == 0:
                raise RuntimeError("a change without an audit entry")
            newest = change.head
        if change.changed:
            self._committed(newest)

    def newest_head(self) -> Head:
        """The audit log's head now. Raises Unavailable, or LookupError if there is none."""
        with self.read() as session:
            return audit.head(session)

    def has_audit_key(self) -> bool:
        """Whether this catalog was opened with the key of its audit log. Raises Unavailable."""
        if self._audit_key is None:
            return False
        with self.read() as session:
            return audit.is_made_with(session, self._audit_key)

    def verify_audit(self, kept: Collection[KeptHeads] = ()) -> AuditReport:
        """Check the audit log, also against the kept heads. Raises Unavailable."""
        if self._audit_key is None:
            raise RuntimeError("only who has the audit key can verify the audit log")
        with self.read() as session:
            return audit.verify(session, self._audit_key, kept)

    def record(
        self,
        actor: str,
        action: str,
        object: str,  # noqa: A002 - the audit log's own word
        outcome: Outcome | str,
        reason: str = "",
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Write only an audit entry, such as for a denial, whose change was rolled back."""
        with self.change(actor) as change:
            change.audit(action, object, outcome, reason, detail)

    @contextmanager
    def bookkeeping(self) -> Iterator[Session]:
        """A transaction without audit entries, only for reports of engines and for leases."""
        with (
            outages_translated(writing=True),
            Session(self._writing, expire_on_commit=False) as session,
            session.begin(),
        ):
            yield session

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

"""ACLs that Kafka has and the catalog does not know: how they are deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass

from catalog.audit import PLATFORM
from catalog.models import Withdrawal
from catalog.store import Catalog
from secadmin.control.alignment import TOGETHER, TOPIC_PATIENCE, TopicLocks
from secadmin.control.slices import slices
from secadmin.kafka.access import PrincipalsOf
from secadmin.kafka.acl import Acl, ForeignAcl, GroupAcl, TopicAcl, TransactionAcl
from secadmin.kafka.reconcile import OF_NOBODY

# The longest names of the platform's principals and topics. Kafka allows longer names.
_PRINCIPAL, _TOPIC = 64, 160
# Of an object in the audit log.
_NOTED = 200


@dataclass(frozen=True)
class UnknownAcls:
    """Records ACLs that reconciliation deletes: in the audit log, and as withdrawals."""

    catalog: Catalog
    lock: TopicLocks

    @contextmanager
    def hold(self, topics: Collection[str]) -> Iterator[None]:
        """Hold the topics' locks. In the meantime nobody gets access, and no withdrawal runs.

        The locks are taken in the order of their names, so that two callers never wait for each
        other.
        """
        with ExitStack() as stack:
            for group in slices(sorted({topic[:_TOPIC] for topic in topics}), TOGETHER):
                stack.enter_context(self.lock(group, TOPIC_PATIENCE))
            yield

    def intend(self, unknown: Collection[Acl], fence: PrincipalsOf) -> None:
        """Record that these ACLs are deleted, and the topics to be fenced after that.

        An ACL on groups or on transactions gives no right to data, so it is not recorded.
        """
        on_topics = [acl for acl in unknown if not isinstance(acl, GroupAcl | TransactionAcl)]
        if not on_topics:
            return
        with self.catalog.change(PLATFORM) as change:
            change.session.add_all(
                Withdrawal(principal=_storable(name), topic=topic, decided_at=change.now)
                for topic, names in fence.items()
                for name in names
            )
            for acl in on_topics:
                change.audit("take away unknown ACL", _place(acl), detail=asdict(acl))


def _place(acl: TopicAcl | ForeignAcl) -> str:
    """What the ACL is on, such as `topic out.o.a`; cut off where that is too long to be noted."""
    if isinstance(acl, TopicAcl):
        return f"topic {acl.topic}"[:_NOTED]
    return f"{acl.resource.lower()} {acl.name}"[:_NOTED]


def _storable(principal: str) -> str:
    """The principal, or None if it cannot be one of the platform's."""
    return principal if len(principal) <= _PRINCIPAL else OF_NOBODY

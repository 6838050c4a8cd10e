"""What Kafka allows and the catalog does not know of: how it is taken away."""

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

# Of a principal and of a topic of ours; Kafka lets others' be longer.
_PRINCIPAL, _TOPIC = 64, 160
# Of an object in the audit log.
_NOTED = 200


@dataclass(frozen=True)
class UnknownAcls:
    """Keeps what reconciliation takes away: in the audit log, and as withdrawals to be fenced."""

    catalog: Catalog
    lock: TopicLocks

    @contextmanager
    def hold(self, topics: Collection[str]) -> Iterator[None]:
        """Hold the topics' locks: meanwhile nobody is let in, and no withdrawal is carried out.

        In the order of their names, so that two who do this do not wait for each other.
        """
        with ExitStack() as stack:
            for group in slices(sorted({topic[:_TOPIC] for topic in topics}), TOGETHER):
                stack.enter_context(self.lock(group, TOPIC_PATIENCE))
            yield

    def intend(self, unknown: Collection[Acl], fence: PrincipalsOf) -> None:
        """Keep that these ACLs are taken away, and the topics to be fenced behind that.

        An ACL on groups or on transactions gives no right to data: it is not noted.
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
    """The principal, if it can be one of ours; it is named for who looks, and its ACL is gone."""
    return principal if len(principal) <= _PRINCIPAL else OF_NOBODY

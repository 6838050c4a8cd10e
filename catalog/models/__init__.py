"""The catalog's tables. Every change to them goes through `catalog.store.Catalog.change`."""

from catalog.models.audit import AuditEntry, AuditHead
from catalog.models.base import Base
from catalog.models.categories import (
    CategoryRow,
    ClauseRole,
    Company,
    ConflictClassRow,
    LabelText,
    SenderPolicy,
    UserLevel,
)
from catalog.models.delivery import (
    Access,
    AccessRole,
    AccessTopic,
    Backfill,
    DeliveryClass,
    Refill,
    UnansweredGrant,
    Withdrawal,
)
from catalog.models.engines import Assignment, Generation, Heartbeat, Lease, RunStatus, TopicFault
from catalog.models.objects import Grant, Object, OperatorLimitsRow
from catalog.models.people import Membership, Role, Seniority, Session, SessionRole, User
from catalog.models.queries import (
    ExecutionRow,
    OutputInput,
    OutputRow,
    OutputView,
    PolicyRow,
    QueryAsRole,
    QueryRole,
    QueryRow,
)
from catalog.models.streams import FloorCategory, IndependentSender, SchemaRow, SenderRow, StreamRow

__all__ = [
    "Access",
    "AccessRole",
    "AccessTopic",
    "Assignment",
    "AuditEntry",
    "AuditHead",
    "Backfill",
    "Base",
    "CategoryRow",
    "ClauseRole",
    "Company",
    "ConflictClassRow",
    "DeliveryClass",
    "ExecutionRow",
    "FloorCategory",
    "Generation",
    "Grant",
    "Heartbeat",
    "IndependentSender",
    "LabelText",
    "Lease",
    "Membership",
    "Object",
    "OperatorLimitsRow",
    "OutputInput",
    "OutputRow",
    "OutputView",
    "PolicyRow",
    "QueryAsRole",
    "QueryRole",
    "QueryRow",
    "Refill",
    "Role",
    "RunStatus",
    "SchemaRow",
    "SenderPolicy",
    "SenderRow",
    "Seniority",
    "Session",
    "SessionRole",
    "StreamRow",
    "TopicFault",
    "UnansweredGrant",
    "User",
    "UserLevel",
    "Withdrawal",
]

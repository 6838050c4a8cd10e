"""Milestones: a broker that lists one has applied all changes that the cluster made before it.

That a broker lists none of some ACLs says nothing alone. It may be cut off from the controllers
since before they were made: then it knows neither them nor their topics, and its answers about
topics are old, too. When it is back, it learns of the ACLs before it learns that they are gone.

A milestone is an ACL that lets nobody in. All changes of the cluster are one log, which each broker
applies in order. So a broker that lists a milestone has applied the deletions that came before it.
"""

from __future__ import annotations

import secrets
from threading import Lock

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from secadmin.kafka.acl import USER
from secadmin.kafka.acl_filter import AclFilter

NOBODY = f"{USER}-milestone"
"""The principal of each milestone. No user has such a name."""
_BYTES = 16


class Milestones:
    """Makes milestones, and knows those that are of no use any more. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        # At first all that there are: a service that has ended left its own.
        self._passed = [AclFilter(principal=NOBODY)]

    def new(self) -> AclBinding:
        """One that never was."""
        return AclBinding(
            ResourceType.TRANSACTIONAL_ID,
            f"milestone-{secrets.token_hex(_BYTES)}",
            ResourcePatternType.LITERAL,
            NOBODY,
            "*",
            AclOperation.DESCRIBE,
            AclPermissionType.DENY,
        )

    def take_passed(self) -> list[AclFilter]:
        """Those that may be deleted. `add_passed` gives them back if that fails."""
        with self._lock:
            passed, self._passed = self._passed, []
            return passed

    def add_passed(self, *milestones: AclFilter) -> None:
        """Let these be deleted beside what is deleted next."""
        with self._lock:
            self._passed += milestones

"""A filter of ACLs as a value. A field that is None or ANY matches everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)


@dataclass(frozen=True, slots=True)
class ListedAcl:
    """An ACL on a resource as a broker lists it. Operation and permission are Kafka's numbers."""

    principal: str | None
    host: str | None
    operation: int
    permission: int


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Matches ACLs. `principal` has Kafka's form (`User:name`)."""

    resource: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: ResourcePatternType = ResourcePatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermissionType = AclPermissionType.ANY

    @classmethod
    def exactly(cls, binding: AclBinding) -> AclFilter:
        """The filter that matches this ACL alone."""
        return cls(
            ResourceType(binding.restype),
            binding.name,
            ResourcePatternType(binding.resource_pattern_type),
            binding.principal,
            binding.host,
            AclOperation(binding.operation),
            AclPermissionType(binding.permission_type),
        )

    def place(self) -> AclFilter:
        """The filter that matches every ACL on the same resource."""
        return AclFilter(self.resource, self.name, self.pattern)

    def accepts(self, acl: ListedAcl) -> bool:
        """Say whether an ACL matches, given that its resource matches."""
        return (
            self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation.value in (AclOperation.ANY.value, acl.operation)
            and self.permission.value in (AclPermissionType.ANY.value, acl.permission)
        )

    def for_client(self) -> AclBindingFilter:
        """The filter as an object of the client library, whose annotations do not allow None."""
        texts: tuple[Any, Any, Any] = (self.name, self.principal, self.host)
        name, principal, host = texts
        return AclBindingFilter(
            self.resource, name, self.pattern, principal, host, self.operation, self.permission
        )

"""Policies from XACML texts (paper 002, section 2.2)."""

from __future__ import annotations

from secadmin.control.platform import Platform
from secadmin.control.policies import PolicyDefinition, add_policy
from secadmin.control.work import Caller
from secadmin.control.xacml_views import xacml_view
from secadmin.xacml.role_policy import read_role_policy


def add_xacml_policy(
    platform: Platform, caller: Caller, text: str, name: str | None, replace: bool
) -> tuple[PolicyDefinition, list[int]]:
    """Add the policy of an XACML text, whose target names a role and a stream.

    Gives the policy, and the ids of the executions that begin anew. Without a `name` it has that
    of its PolicyId. Raises as `add_policy`, and InvalidInput with the position in the text.
    """
    wanted = defined(text, name, replace)
    return wanted, add_policy(platform, caller, wanted)


def defined(text: str, name: str | None = None, replace: bool = False) -> PolicyDefinition:
    """The policy of an XACML text. Raises InvalidInput, with the position in the text."""
    found = read_role_policy(text)
    return PolicyDefinition(
        name or found.name,
        found.stream,
        found.role,
        lambda stream: xacml_view(found.view, stream),
        replace,
        text,
    )

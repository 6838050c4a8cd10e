"""A user's query merged into what the policies show (paper 002, section 3.1).

Stricter than the paper in two points. A condition of the user names only attributes that the view
shows: else the number of its results tells of hidden values. Under a window of time the user has
no condition: it could leave a single tuple in a window.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog.errors import Denied
from secadmin.xacml.condition import attributes_of, both
from secadmin.xacml.stream_view import StreamView, Window


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged view, and what the user asked for and does not get."""

    view: StreamView
    left_out: frozenset[str] = frozenset()


def merge(policy: StreamView, query: StreamView) -> Merged:
    """Filters by AND, attributes and functions by intersection, the user's coarser window.

    Raises Denied if nothing is left, or if the query asks for finer windows than the policy.
    """
    _check_condition(policy, query)
    attributes = _common(policy.attributes, query.attributes)
    if attributes is not None and not attributes:
        raise Denied("the policies show none of the attributes that the query asks for")
    window = _window(policy.window, query.window, attributes)
    return Merged(
        StreamView(both(policy.condition, query.condition), attributes, window),
        _left_out(query, attributes, window),
    )


def _check_condition(policy: StreamView, query: StreamView) -> None:
    if query.condition is None:
        return
    if policy.window is not None and policy.window.type == "time":
        raise Denied("a query has no condition of its own under a policy with a window of time")
    usable = policy.usable()
    hidden = set() if usable is None else attributes_of(query.condition) - usable
    if hidden:
        raise Denied(f"the condition names attributes without a right: {', '.join(sorted(hidden))}")


def _common(first: frozenset[str] | None, second: frozenset[str] | None) -> frozenset[str] | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _window(
    policy: Window | None, query: Window | None, attributes: frozenset[str] | None
) -> Window | None:
    coarse = query or policy
    if coarse is None:
        return None
    functions = coarse.functions
    if policy and query:
        if policy.type != query.type:
            raise Denied(f"the policies allow only windows of the type {policy.type}")
        if query.size < policy.size or query.step < policy.step:
            raise Denied(
                f"the policies allow windows of size {policy.size} and step {policy.step} or more"
            )
        functions = policy.functions & query.functions
    if attributes is not None:
        functions = frozenset(one for one in functions if one[0] in attributes)
    if not functions:
        raise Denied("the policies allow none of the functions that the query asks for")
    return Window(coarse.type, coarse.size, coarse.step, functions)


def _left_out(
    query: StreamView, attributes: frozenset[str] | None, window: Window | None
) -> frozenset[str]:
    missing = set(query.attributes or ()) - set(attributes or ())
    asked = query.window.functions if query.window else frozenset()
    given = window.functions if window else frozenset()
    return frozenset(missing | {f"{function}({name})" for name, function in asked - given})

"""A query's plans as a text of one of the two languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from catalog.plan import Plan
from secadmin.languages import sql_text, xml_text

Language = Literal["sql", "borealis"]


def plan_text(plans: Mapping[str, Plan], language: Language) -> str:
    """The text of a query with these outputs. In SQL each output is a query of its own.

    Raises InvalidInput if the language cannot say a plan.
    """
    if language == "borealis":
        return xml_text(plans)
    if len(plans) == 1:
        return "".join(map(sql_text, plans.values()))
    return "\n\n".join(f"-- output {name}\n{sql_text(plan)}" for name, plan in plans.items())

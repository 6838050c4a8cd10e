"""The customised query of paper 002 (section 3.1, figure 4a), as SQL.

Its filter, map and window become WHERE, the columns, and HOP. What policies show is merged into it
as into every query (`catalog.view_plan`).
"""

from __future__ import annotations

from collections.abc import Callable

from catalog.errors import InvalidInput
from catalog.relation import Relation
from secadmin.control.xacml_views import aggregated, condition_text, own_name
from secadmin.languages.writing.expression_text import name_text
from secadmin.xacml.stream_view import Window
from secadmin.xacml.user_query import UserQuery, read_user_query


def user_query_sql(text: str, relation: Callable[[str], Relation]) -> str:
    """The SQL of a UserQuery in XML, whose names are compared without case.

    `relation` gives a stream by its name, as the user sees it. Each function of a window is a
    column `function_attribute`. Raises InvalidInput, and what `relation` raises.
    """
    query = read_user_query(text)
    stream = relation(query.stream)
    if query.view.window is None:
        columns, grouping = _columns(query, stream), ""
    else:
        columns, grouping = _windows(query, query.view.window, stream)
    where = ""
    if query.view.condition is not None:
        where = f"\nWHERE {condition_text(query.view.condition, stream)}"
    return f"SELECT {', '.join(columns)}\nFROM {name_text(stream.name)}{where}{grouping}"


def _columns(query: UserQuery, stream: Relation) -> list[str]:
    if query.view.attributes is None:
        return ["*"]
    wanted = {own_name(attribute, stream) for attribute in query.view.attributes}
    return [name_text(name) for name in stream.schema.names if name in wanted]


def _windows(query: UserQuery, window: Window, stream: Relation) -> tuple[list[str], str]:
    if window.type != "time":
        raise InvalidInput("use the window type time, whose sizes are in seconds")
    if stream.event_time is None:
        raise InvalidInput(f"{stream.name} shows you no event time, so it has no windows")
    columns = ["window_start"]
    rights = aggregated(query.view, window, stream)
    for right in sorted(rights, key=lambda each: stream.schema.names.index(each.name)):
        attribute = name_text(right.name)
        for function in right.functions or ():
            column = name_text(f"{function}_{right.name}")
            columns.append(f"{function}({attribute}) AS {column}")
    if len(columns) == 1:
        raise InvalidInput("the map leaves none of the attributes that the window aggregates")
    time = name_text(stream.event_time)
    step, size = (f"INTERVAL '{number}' SECOND" for number in (window.step, window.size))
    return columns, f"\nGROUP BY HOP({time}, {step}, {size})"

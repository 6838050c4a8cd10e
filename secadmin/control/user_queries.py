"""The customised query of paper 002 (section 3.1, figure 4a), as SQL.

Its filter, map and window become WHERE, the columns, and HOP, or a window of tuples behind the
filter. What policies show is merged into it as into every query (`catalog.view_plan`).
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
    where, own = "", name_text(stream.name)
    if query.view.condition is not None:
        where = f"\nWHERE {condition_text(query.view.condition, stream)}"
    window = query.view.window
    if window is None:
        return f"SELECT {', '.join(_columns(query, stream))}\nFROM {own}{where}"
    columns = _aggregates(query, window, stream)
    if window.type == "tuple":
        return _over_tuples(columns, window, stream.name, where)
    time = name_text(stream.event_time or "")
    step, length = (f"INTERVAL '{number}' SECOND" for number in (window.step, window.size))
    shown = ", ".join(["window_start", *columns])
    return f"SELECT {shown}\nFROM {own}{where}\nGROUP BY HOP({time}, {step}, {length})"


def _over_tuples(columns: list[str], window: Window, stream: str, where: str) -> str:
    """The SQL of a window of tuples. A condition behind it would leave fewer tuples in it."""
    size = f"[ROWS {window.size} SLIDE {window.step}]"
    shown = f"SELECT RSTREAM {', '.join(columns)}\nFROM "
    if not where:
        return f"{shown}{name_text(stream)} {size}"
    chosen = name_text("chosen" if stream != "chosen" else "chosen-tuples")
    below = f"SELECT *\nFROM {name_text(stream)}{where}"
    return f"WITH {chosen} AS ({below})\n{shown}{chosen} {size}"


def _columns(query: UserQuery, stream: Relation) -> list[str]:
    if query.view.attributes is None:
        return ["*"]
    wanted = {own_name(attribute, stream) for attribute in query.view.attributes}
    return [name_text(name) for name in stream.schema.names if name in wanted]


def _aggregates(query: UserQuery, window: Window, stream: Relation) -> list[str]:
    """The columns of a window. Raises InvalidInput if there are none."""
    if stream.event_time is None:
        raise InvalidInput(f"{stream.name} shows you no event time, so it has no windows")
    columns = []
    rights = aggregated(query.view, window, stream)
    for right in sorted(rights, key=lambda each: stream.schema.names.index(each.name)):
        attribute = name_text(right.name)
        for function in right.functions or ():
            column = name_text(f"{function}_{right.name}")
            columns.append(f"{function}({attribute}) AS {column}")
    if not columns:
        raise InvalidInput("the map leaves none of the attributes that the window aggregates")
    return columns

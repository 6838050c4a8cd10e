"""How long the service takes to read, check and plan a query before anything is written."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.plan import Source, walk
from secadmin.__main__ import build_platform
from secadmin.control import query_check
from secadmin.control.platform import Platform
from secadmin.control.query_definition import QueryDefinition
from secadmin.control.work import Caller
from tests.bench.figure import Figure, middle
from tests.bench.stopwatch import Stopwatch
from tests.bench.world import World

RUNS, WARM = 41, 3
STREAMS = ("planned0", "planned1")
# Operators in SQL and boxes in a diagram, and the most milliseconds of either.
OPERATORS, BOXES = 10, 140
SQL_MS, DIAGRAM_MS = 10.0, 50.0
# Besides its two sources: a filter, two windows, two aggregates, a join, and projections.
SQL = """SELECT a.n, a.many, b.few FROM
    (SELECT n, COUNT(*) AS many, window_end AS at FROM planned0 WHERE n > 5
        GROUP BY n, TUMBLE(ts, INTERVAL '1' MINUTE)) a
    JOIN (SELECT n, MIN(sent) AS few, window_end AS at FROM planned1
        GROUP BY n, TUMBLE(ts, INTERVAL '1' MINUTE)) b
    ON a.n = b.n AND a.at = b.at"""


def planning(world: World) -> Iterator[Figure]:
    """Milliseconds of what `secadmin.control.prepared_query.prepare` does, of a SQL text and XML.

    Raises RuntimeError if the text has not as many operators as the figure says.
    """
    for stream in STREAMS:
        world.add_stream(stream)
        world.grant("ADMIN", "stream", stream, "READ TUPLE")
    platform = build_platform(world.stack.settings)
    caller = Caller(world.admin.token, world.admin.user)
    texts = (("sql", SQL, OPERATORS, SQL_MS), ("borealis", diagram_of(BOXES), BOXES, DIAGRAM_MS))
    for language, text, count, most in texts:
        wanted = QueryDefinition("planned", language, text)
        if (found := _operators(platform, caller, wanted)) < count:
            raise RuntimeError(f"the query in {language} has {found} operators")
        runs = [_prepared_ms(platform, caller, wanted) for _ in range(WARM + RUNS)][WARM:]
        yield middle(f"{count} operators in {language} parsed, checked, planned", runs, "ms", most)
    platform.catalog.close()


def _operators(platform: Platform, caller: Caller, wanted: QueryDefinition) -> int:
    checked = query_check.check_query(platform, caller, wanted)
    plans = [each.plan.plan for each in checked.outputs.values()]
    return sum(not isinstance(each, Source) for plan in plans for each in walk(plan.root))


def _prepared_ms(platform: Platform, caller: Caller, wanted: QueryDefinition) -> float:
    watch = Stopwatch()
    with watch.watching({"prepared": [(query_check, "prepare")]}):
        query_check.check_query(platform, caller, wanted)
    return watch.ms["prepared"]


def diagram_of(boxes: int) -> str:
    """A diagram of so many boxes: two rows of filters, and a union of both."""
    rows = [_row(stream, (boxes - which) // 2) for which, stream in enumerate(STREAMS)]
    union = "".join(f'<in stream="{last}"/>' for _, last in rows)
    fields = (("ts", "timestamp"), ("n", "long"), ("sent", "long"))
    schema = "".join(f'<field name="{name}" type="{kind}"/>' for name, kind in fields)
    inputs = "".join(f'<input stream="{stream}" schema="planned"/>' for stream in STREAMS)
    return (
        f'<borealis>{inputs}<schema name="planned">{schema}</schema><output stream="planned"/>'
        f'<query name="planned">{"".join(row for row, _ in rows)}'
        f'<box name="both" type="union">{union}<out stream="planned"/></box></query></borealis>'
    )


def _row(stream: str, boxes: int) -> tuple[str, str]:
    """So many filters over a stream, one after another, and the name of the last arc."""
    arcs = [stream, *(f"{stream}arc{number}" for number in range(boxes))]
    made = (
        f'<box name="{stream}box{number}" type="filter"><in stream="{arcs[number]}"/>'
        f'<out stream="{arcs[number + 1]}"/>'
        f'<parameter name="expression.0" value="n &gt; {number}"/></box>'
        for number in range(boxes)
    )
    return "".join(made), arcs[-1]

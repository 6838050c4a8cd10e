"""Functions that people know from other systems and that are missing here, with the reason."""

from __future__ import annotations

_NOW = frozenset(
    {
        *("now", "current_timestamp", "current_date", "current_time", "localtimestamp"),
        *("localtime", "proctime", "unix_timestamp", "getdate", "sysdate", "current_watermark"),
        *("transaction_timestamp", "statement_timestamp", "clock_timestamp", "mz_now"),
    }
)
_AGGREGATES = frozenset(
    {
        *("string_agg", "listagg", "median", "percentile", "percentile_cont"),
        *("variance", "var_samp", "var_pop", "stddev_pop"),
        *("earliest_by_offset", "latest_by_offset", "bool_and", "bool_or"),
    }
)
_SEVERAL = frozenset(
    {
        *("unnest", "explode", "explode_outer", "posexplode", "posexplode_outer"),
        *("flatten", "inline", "inline_outer", "stack"),
    }
)
_EDGES = frozenset({"window_start", "window_end", "windowstart", "windowend"})
_REGULAR = frozenset(
    {
        *("regexp", "rlike", "regexp_replace", "regexp_matches", "regexp_match"),
        *("regexp_substr", "regexp_count", "regexp_instr", "similar_to"),
    }
)
REGULAR_EXPRESSIONS = (
    "there are two functions of regular expressions, REGEXP_LIKE(string, 'pattern') and "
    "REGEXP_EXTRACT(string, 'pattern', group); write one of them, or string RLIKE 'pattern'"
)


def reason(name: str) -> str | None:
    """Why a name is refused, or None if it is no such name."""
    lower = name.lower()
    if lower in _NOW:
        return (
            f"{name.upper()} has no meaning here: results go by event time, and not by the time at "
            "which the query runs; for the last hour write a window, such as GROUP BY HOP(ts, "
            "INTERVAL '1' MINUTE, INTERVAL '1' HOUR)"
        )
    if lower in _AGGREGATES:
        return (
            f"{name.upper()} is an aggregate function that does not exist yet; there are COUNT, "
            "COUNT_IF, SUM, AVG, STDDEV, MIN, MAX, FIRST, LAST, COLLECT_LIST, COLLECT_SET, TOPK "
            "and TOPKDISTINCT"
        )
    if lower in _SEVERAL:
        return (
            f"{name.upper()} makes several tuples of one, and no value: write it in FROM, as in "
            "FROM orders CROSS JOIN UNNEST(tags) AS t(tag), or EXPLODE(tags) AS tag as a whole "
            "result of a SELECT without groups"
        )
    if lower in _EDGES:
        return (
            f"{name} is the edge of a window: it is known in SELECT and HAVING of a query with a "
            "window and GROUP BY"
        )
    return REGULAR_EXPRESSIONS if lower in _REGULAR else None

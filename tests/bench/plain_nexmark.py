"""NEXMark's queries in Spark's own SQL, as somebody writes them who has no platform.

Each gives what the query of docs/nexmark.md gives (`tests/differential/test_nexmark.py`).

q5 has no join. In a stream, Spark gives nothing where the counts are joined with the highest count
of their window: it never lets go of the groups on that side.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

_PLAIN = """
-- q0
SELECT auction, bidder, price, date_time FROM bid
-- q1
SELECT auction, bidder, 0.908D * price AS price, date_time FROM bid
-- q2
SELECT auction, price FROM bid WHERE auction % 123 = 0
    OR auction IN (1007, 1020, 2001, 2019, 2087)
-- q21
SELECT auction, bidder, price, channel,
    CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1'
        WHEN lower(channel) = 'facebook' THEN '2' WHEN lower(channel) = 'baidu' THEN '3'
        ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
    FROM bid WHERE url RLIKE '(&|^)channel_id=([^&]*)'
        OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
-- q5
SELECT winner.auction, winner.num FROM (
    SELECT explode(filter(counts, each -> each.num = most)) AS winner FROM (
        SELECT max(num) AS most, collect_list(struct(auction, num)) AS counts FROM (
            SELECT auction, count(*) AS num, window AS during FROM bid
                GROUP BY auction, window(date_time, '10 seconds', '2 seconds'))
            GROUP BY during))
-- q7
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b
    JOIN (SELECT maxprice, window_time(during) AS last FROM
        (SELECT max(price) AS maxprice, window AS during FROM bid
            GROUP BY window(date_time, '10 seconds'))) h
    ON b.price = h.maxprice AND b.date_time >= h.last - INTERVAL '9.999999' SECOND
        AND b.date_time <= h.last + INTERVAL '0.000001' SECOND
-- q11
SELECT bidder, count(*) AS bid_count, session_window.start AS starttime,
    session_window.end AS endtime FROM bid GROUP BY bidder, session_window(date_time, '10 seconds')
-- q12
SELECT bidder, count(*) AS bid_count FROM bid GROUP BY bidder, window(date_time, '10 seconds')
"""

PLAIN: Mapping[str, str] = {
    name: text for name, _, text in (each.partition("\n") for each in _PLAIN.split("-- ")[1:])
}
"""The text of each query, by its name. It reads the view `bid`."""

_BIGINTS = ("auction", "bidder", "price")
_NAMES = (*_BIGINTS, "channel", "url", "date_time", "extra")

_SPARK_SCHEMA = (
    "auction bigint, bidder bigint, price bigint, channel string, url string, date_time timestamp,"
    " extra string"
)


def read_bids(records: DataFrame) -> DataFrame:
    """The bids in the values of records, which separate attributes by U+001F."""
    parts = fn.split(fn.col("value").cast("string"), "\x1f")
    return records.select(*(_read(name, parts[at]).alias(name) for at, name in enumerate(_NAMES)))


def _read(name: str, text: Column) -> Column:
    if name == "date_time":
        return fn.timestamp_micros(text.cast("bigint"))
    return text.cast("bigint") if name in _BIGINTS else text


def read_json_bids(records: DataFrame) -> DataFrame:
    """The bids in the values of records, which are JSON."""
    bid = fn.from_json(fn.col("value").cast("string"), _SPARK_SCHEMA)
    return records.select(bid.alias("bid")).select("bid.*")


def plain_results(name: str, bids: DataFrame) -> DataFrame:
    """What the query gives over these bids. Streams with windows need a watermark."""
    bids.createOrReplaceTempView("bid")
    return bids.sparkSession.sql(PLAIN[name])


def as_json(results: DataFrame) -> DataFrame:
    """Each result as a record's value."""
    return results.select(fn.to_json(fn.struct("*")).alias("value"))

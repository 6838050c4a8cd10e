"""What the queries of docs/nexmark.md give, computed from the records in plain Python."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

Record = Mapping[str, Any]
Data = Mapping[str, Sequence[Record]]
Row = tuple[Any, ...]
_PRICES = (10_000, 1_000_000)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
_CHOSEN = {1007, 1020, 2001, 2019, 2087}


def q0(data: Data) -> Iterator[Row]:
    return (_of(bid, "auction", "bidder", "price", "date_time") for bid in data["bid"])


def q1(data: Data) -> Iterator[Row]:
    for bid in data["bid"]:
        yield bid["auction"], bid["bidder"], 0.908 * bid["price"], bid["date_time"]


def q2(data: Data) -> Iterator[Row]:
    for bid in data["bid"]:
        if bid["auction"] % 123 == 0 or bid["auction"] in _CHOSEN:
            yield bid["auction"], bid["price"]


def q3(data: Data) -> Iterator[Row]:
    for auction in data["auction"]:
        for person in data["person"]:
            wanted = person["state"] in {"or", "id", "ca"} and auction["category"] == 10
            if wanted and auction["seller"] == person["id"]:
                instant = max(auction["date_time"], person["date_time"])
                yield instant, *_of(person, "name", "city", "state"), auction["id"]


def q4(data: Data) -> Iterator[Row]:
    pairs = [*_pairs(data)]
    for instant in sorted({bid["date_time"] for _, bid in pairs}):
        came = {auction["category"] for auction, bid in pairs if bid["date_time"] == instant}
        for category in came:
            highest: dict[int, int] = defaultdict(int)
            for auction, bid in pairs:
                if auction["category"] == category and bid["date_time"] <= instant:
                    highest[auction["id"]] = max(highest[auction["id"]], bid["price"])
            yield instant, False, category, sum(highest.values()) / len(highest)


def q5(data: Data) -> Iterator[Row]:
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for bid in data["bid"]:
        slide = _tumbling(bid["date_time"], 2)
        # A window of ten seconds has five slides.
        for last in range(slide, slide + 5):
            counts[last][bid["auction"]] += 1
    for found in counts.values():
        most = max(found.values())
        yield from ((auction, count) for auction, count in found.items() if count == most)


def q6(data: Data) -> Iterator[Row]:
    pairs = [*_pairs(data)]
    before: dict[int, list[Row]] = {}
    for instant in sorted({bid["date_time"] for _, bid in pairs}):
        sold: dict[int, list[Row]] = defaultdict(list)
        for number, seller in {(auction["id"], auction["seller"]) for auction, _ in pairs}:
            bids = [b for a, b in pairs if a["id"] == number and b["date_time"] <= instant]
            if bids:
                best = min(bids, key=lambda bid: (-bid["price"], bid["date_time"]))
                sold[seller].append((best["date_time"], number, best["price"]))
        # A seller's last ten, the newest first.
        last = {
            seller: sorted(rows, key=lambda row: (_EPOCH - row[0], row[1]))[:10]
            for seller, rows in sold.items()
        }
        for seller, rows in last.items():
            if rows != before.get(seller):
                yield instant, False, seller, sum(price for *_, price in rows) / len(rows)
        before = last


def q7(data: Data) -> Iterator[Row]:
    highest: dict[int, int] = {}
    for bid in data["bid"]:
        window = _tumbling(bid["date_time"], 10)
        highest[window] = max(highest.get(window, 0), bid["price"])
    for bid in data["bid"]:
        window = _tumbling(bid["date_time"], 10)
        at_an_end = (bid["date_time"] - _EPOCH) % timedelta(seconds=10) == timedelta(0)
        for each in (window, *([window - 1] if at_an_end else [])):
            if highest.get(each) == bid["price"]:
                yield _of(bid, "auction", "price", "bidder", "date_time", "extra")


def q8(data: Data) -> Iterator[Row]:
    sellers = {
        (auction["seller"], _tumbling(auction["date_time"], 10)) for auction in data["auction"]
    }
    new = {(p["id"], p["name"], _tumbling(p["date_time"], 10)) for p in data["person"]}
    for number, name, window in new:
        if (number, window) in sellers:
            yield number, name, _EPOCH + window * timedelta(seconds=10)


def q9(data: Data) -> Iterator[Row]:
    def winners(until: datetime) -> Iterator[Row]:
        bids = [bid for bid in data["bid"] if bid["date_time"] <= until]
        for auction in data["auction"]:
            begin, end = auction["date_time"], auction["expires"]
            own = [bid for bid in bids if bid["auction"] == auction["id"]]
            own = [bid for bid in own if begin <= bid["date_time"] <= end]
            if own and begin <= until:
                best = min(own, key=lambda bid: (-bid["price"], bid["date_time"]))
                yield auction["id"], auction["item_name"], *_of(best, "auction", "bidder", "price")

    return _new_rows(data, ("auction", "bid"), winners)


def q11(data: Data) -> Iterator[Row]:
    gap = timedelta(seconds=10)
    for bidder in {bid["bidder"] for bid in data["bid"]}:
        times = sorted(bid["date_time"] for bid in data["bid"] if bid["bidder"] == bidder)
        breaks = [0, *(i for i in range(1, len(times)) if times[i] - times[i - 1] > gap)]
        for begin, end in zip(breaks, [*breaks[1:], len(times)], strict=True):
            yield bidder, end - begin, times[begin], times[end - 1] + gap


def q12(data: Data) -> Iterator[Row]:
    found = Counter((_tumbling(bid["date_time"], 10), bid["bidder"]) for bid in data["bid"])
    return ((bidder, count) for (_, bidder), count in found.items())


def q14(data: Data) -> Iterator[Row]:
    for bid in data["bid"]:
        price = 0.908 * bid["price"]
        if 1_000_000 < price < 50_000_000:
            day = 8 <= bid["date_time"].hour <= 18
            yield bid["auction"], bid["bidder"], price, "dayTime" if day else "nightTime"


def q15(data: Data) -> Iterator[Row]:
    low, high = _PRICES
    for day in {_day(bid) for bid in data["bid"]}:
        bids = [bid for bid in data["bid"] if _day(bid) == day]
        cheap = [bid for bid in bids if bid["price"] < low]
        dear = [bid for bid in bids if bid["price"] >= high]
        counts = (_different(bids, "bidder"), _different(cheap, "bidder"))
        auctions = (_different(bids, "auction"), _different(dear, "auction"))
        yield day, len(bids), len(cheap), *counts, *auctions


def q16(data: Data) -> Iterator[Row]:
    for channel, day in {(bid["channel"], _day(bid)) for bid in data["bid"]}:
        bids = [bid for bid in data["bid"] if (bid["channel"], _day(bid)) == (channel, day)]
        newest = max(bid["date_time"] for bid in bids)
        counts = (_different(bids, "bidder"), _different(bids, "auction"))
        yield channel, day, newest, len(bids), *counts


def q17(data: Data) -> Iterator[Row]:
    groups = defaultdict(list)
    for bid in data["bid"]:
        groups[bid["date_time"].date(), bid["auction"]].append(bid["price"])
    for (_, auction), prices in groups.items():
        low = sum(price < _PRICES[0] for price in prices)
        high = sum(price >= _PRICES[1] for price in prices)
        mean = sum(prices) / len(prices)
        counts = (len(prices), low, len(prices) - low - high, high)
        yield auction, *counts, min(prices), max(prices), mean, sum(prices)


def q18(data: Data) -> Iterator[Row]:
    def last(until: datetime) -> Iterator[Row]:
        newest: dict[Row, Record] = {}
        # Of bids of one time, the first one that came has the first place.
        for bid in sorted(data["bid"], key=lambda bid: bid["date_time"], reverse=True):
            if bid["date_time"] <= until:
                newest.setdefault((bid["bidder"], bid["auction"]), bid)
        return (_of(bid, "auction", "bidder", "price", "date_time") for bid in newest.values())

    return _new_rows(data, ("bid",), last)


def q19(data: Data) -> Iterator[Row]:
    def highest(until: datetime) -> Iterator[Row]:
        bids = [bid for bid in data["bid"] if bid["date_time"] <= until]
        bids.sort(key=lambda bid: -bid["price"])
        for auction in {bid["auction"] for bid in bids}:
            own = [bid for bid in bids if bid["auction"] == auction]
            for place, bid in enumerate(own[:10], start=1):
                yield *_of(bid, "auction", "bidder", "price", "date_time"), place

    return _new_rows(data, ("bid",), highest)


def q20(data: Data) -> Iterator[Row]:
    for bid in data["bid"]:
        for auction in data["auction"]:
            if bid["auction"] == auction["id"] and auction["category"] == 10:
                instant = max(bid["date_time"], auction["date_time"])
                own = _of(bid, "auction", "bidder", "price", "channel")
                yield instant, *own, *_of(auction, "item_name", "category")


def q21(data: Data) -> Iterator[Row]:
    names = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
    for bid in data["bid"]:
        in_url = re.search(r"(?:&|^)channel_id=([^&]*)", bid["url"])
        found = names.get(bid["channel"].lower()) or (in_url.group(1) if in_url else None)
        if found is not None:
            yield *_of(bid, "auction", "bidder", "price", "channel"), found


def q22(data: Data) -> Iterator[Row]:
    for bid in data["bid"]:
        parts = bid["url"].split("/")
        yield *_of(bid, "auction", "bidder", "price", "channel"), parts[3], parts[4]


ANSWERS: Mapping[str, Callable[[Data], Iterable[Row]]] = {
    each.__name__: each
    for each in (
        *(q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q11, q12),
        *(q14, q15, q16, q17, q18, q19, q20, q21, q22),
    )
}


def _pairs(data: Data) -> Iterator[tuple[Record, Record]]:
    """Each auction with each of its bids while it was open."""
    for auction in data["auction"]:
        for bid in data["bid"]:
            is_open = auction["date_time"] <= bid["date_time"] <= auction["expires"]
            if bid["auction"] == auction["id"] and is_open:
                yield auction, bid


def _of(record: Record, *names: str) -> Row:
    return tuple(record[name] for name in names)


def _day(bid: Record) -> datetime:
    time: datetime = bid["date_time"]
    return datetime(time.year, time.month, time.day)  # noqa: DTZ001


def _different(bids: Iterable[Record], name: str) -> int:
    return len({bid[name] for bid in bids})


def _tumbling(time: datetime, seconds: int) -> int:
    return (time - _EPOCH) // timedelta(seconds=seconds)


def _new_rows(
    data: Data, streams: Sequence[str], relation: Callable[[datetime], Iterable[Row]]
) -> Iterator[Row]:
    """The rows that each instant adds to a relation."""
    before: Counter[Row] = Counter()
    for instant in sorted({record["date_time"] for name in streams for record in data[name]}):
        now = Counter(relation(instant))
        yield from (now - before).elements()
        before = now

"""NEXMark's bids, as its own generator makes them, as records of a labelled topic.

https://github.com/nexmark/nexmark: of 50 events one is a new person, three are new auctions, and 46
are bids. Half of the bids are for the newest hot auction, three of four are by the newest hot
bidder. 10,000 events come in a second of event time, in order.
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from catalog.label import Label
from catalog.topics import TUPLE_HEADER

RATE = 10_000
SENDER = 5
# The category of the stream, and two that a label rule adds to some bids.
LABELS = tuple(Label.of(*categories) for categories in ((0,), (0, 1), (0, 2), (0, 1, 2)))
REACH = Label.of(0, 1, 2)
_BIDS, _AUCTIONS, _OF = 46, 3, 50
# 2015-07-15, in microseconds since 1970, and the first ids of persons and auctions.
_BEGIN, _FIRST = 1_436_918_400_000_000, 1_000
_HOT_AUCTIONS, _HOT_BIDDERS, _OPEN, _ACTIVE = 2, 4, 100, 1_000
_EVERY = 100
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_OTHERS, _DIFFERENT = 10_000, 5_000


@dataclass(frozen=True, slots=True)
class LabelledRecord:
    """A record as ingest writes it."""

    key: bytes
    value: bytes
    headers: list[tuple[str, str | bytes | None]]


def labelled_bids(count: int) -> Iterator[LabelledRecord]:
    """The first `count` bids: the same in each run."""
    chance = random.Random(5)
    texts = [_texts(chance) for _ in range(_DIFFERENT)]
    marks: list[list[tuple[str, str | bytes | None]]] = [
        [(TUPLE_HEADER, f"{each.to_wire()};{SENDER}".encode())] for each in LABELS
    ]
    for number in range(count):
        event = number * _OF // _BIDS
        channel, url, extra = chance.choice(texts)
        price = round(10 ** (chance.random() * 6) * 100)
        time = _BEGIN + event * 1_000_000 // RATE
        auction, bidder = _auction(chance, event), _bidder(chance, event)
        values = (auction, bidder, price, channel, url, time, extra)
        value = "\x1f".join(map(str, values)).encode()
        yield LabelledRecord(f"{SENDER}:0:{number}".encode(), value, chance.choice(marks))


def json_bid(value: bytes) -> bytes:
    """The bid of a labelled record, as a producer writes it without the platform."""
    auction, bidder, price, channel, url, time, extra = value.decode().split("\x1f")
    seconds, micros = divmod(int(time), 1_000_000)
    at = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{micros:06}Z"
    numbers = {"auction": int(auction), "bidder": int(bidder), "price": int(price)}
    bid = {**numbers, "channel": channel, "url": url, "date_time": at, "extra": extra}
    return json.dumps(bid, separators=(",", ":")).encode()


def _auction(chance: random.Random, event: int) -> int:
    newest = (event // _OF) * _AUCTIONS + _AUCTIONS - 1
    if chance.randrange(_HOT_AUCTIONS):
        return _FIRST + newest // _EVERY * _EVERY
    return _FIRST + chance.randint(max(0, newest - _OPEN), newest)


def _bidder(chance: random.Random, event: int) -> int:
    newest = event // _OF
    if chance.randrange(_HOT_BIDDERS):
        return _FIRST + newest // _EVERY * _EVERY + 1
    return _FIRST + chance.randint(max(0, newest - _ACTIVE), newest)


def _texts(chance: random.Random) -> tuple[str, str, str]:
    """A channel, a URL and what fills the record to about 200 bytes."""
    url = (
        f"https://www.nexmark.com/{_word(chance, 5)}/{_word(chance, 5)}/{_word(chance, 5)}/item.htm"
    )
    url += "?query=1"
    extra = _word(chance, 60)
    if chance.random() < 0.5:
        return chance.choice(_CHANNELS), url, extra
    number = chance.randrange(_OTHERS)
    return f"channel-{number}", f"{url}&channel_id={number}", extra


def _word(chance: random.Random, length: int) -> str:
    return "".join(chance.choices(string.ascii_lowercase, k=length))

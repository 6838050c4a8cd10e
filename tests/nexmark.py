"""NEXMark's streams as relations, and its queries as docs/nexmark.md has them."""

from __future__ import annotations

import re
from pathlib import Path

from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type

_PAGE = Path(__file__).parents[1] / "docs" / "nexmark.md"
QUERIES = dict(re.findall(r"## (q\d+)\n.*?```sql\n(.*?)```", _PAGE.read_text("utf-8"), re.DOTALL))
"""The text of each query, by its name."""

_S, _N, _T = Type.STRING, Type.BIGINT, Type.TIMESTAMP


def _stream(number: int, called: str, /, **types: Type) -> Relation:
    schema = Schema(tuple(Attribute(each, kind) for each, kind in types.items()))
    return Relation(number, called, RelationKind.STREAM, schema, "date_time", 0)


_PERSON = {"id": _N, "name": _S, "email_address": _S, "credit_card": _S, "city": _S, "state": _S}
_AUCTION = {"id": _N, "item_name": _S, "description": _S, "initial_bid": _N, "reserve": _N}
_BID = {"auction": _N, "bidder": _N, "price": _N, "channel": _S, "url": _S}
STREAMS = {
    each.name: each
    for each in (
        _stream(31, "person", **_PERSON, date_time=_T, extra=_S),
        _stream(
            32, "auction", **_AUCTION, date_time=_T, expires=_T, seller=_N, category=_N, extra=_S
        ),
        _stream(33, "bid", **_BID, date_time=_T, extra=_S),
    )
}
"""The streams, by their names. Their lateness is 0."""

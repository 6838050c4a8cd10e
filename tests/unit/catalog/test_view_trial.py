"""What a view shows of a record, also against the oracle's conditions."""

from __future__ import annotations

import random

from catalog.view_trial import Sight, Value, sight_of
from tests.oracle.expressions import evaluate
from tests.oracle.values import Row, timestamp
from tests.unit.catalog.views import STREAM, condition, view

RECORD: dict[str, Value] = {"ts": 0, "symbol": "ACME", "price": 7.0, "volume": None}


def test_rows_attributes_and_aggregates() -> None:
    shown = view("price > 5", "symbol", "price when symbol = 'BETA'", "volume: sum")
    assert sight_of(shown, STREAM.schema, RECORD) == Sight(
        True, {"symbol": "ACME", "price": None}, {"volume": ("sum",)}
    )
    beta = {**RECORD, "symbol": "BETA"}
    assert sight_of(shown, STREAM.schema, beta).values["price"] == 7.0
    assert sight_of(shown, STREAM.schema, {**RECORD, "price": 5.0}) == Sight(False, {}, {})
    assert sight_of(view("price > 5"), STREAM.schema, RECORD).values == RECORD


def test_a_condition_that_is_null_shows_nothing() -> None:
    for text in ("volume > 1", "NOT volume > 1", "volume > 1 AND price > 1", "volume <> 1"):
        assert not sight_of(view(text), STREAM.schema, RECORD).seen, text
    for text in ("volume IS NULL", "volume > 1 OR price > 1", "NOT (volume > 1 AND price > 9)"):
        assert sight_of(view(text), STREAM.schema, RECORD).seen, text


def test_conditions_are_decided_as_in_a_query() -> None:
    chance = random.Random(24)

    def made(depth: int) -> str:
        if depth == 0:
            name, values = chance.choice(
                [("volume", ("0", "1", "2")), ("price", ("0.5", "1", "2")), ("symbol", ("'A'",))]
            )
            sign = chance.choice(("=", "<>", "<", "<=", ">", ">="))
            return chance.choice([f"{name} {sign} {chance.choice(values)}", f"{name} IS NULL"])
        form = chance.choice(("({} AND {})", "({} OR {})", "NOT ({})"))
        return form.format(*(made(depth - 1) for _ in range(form.count("{}"))))

    seen = 0
    for _ in range(400):
        text = made(chance.randrange(4))
        for volume in (None, 0, 1):
            for price in (None, 0.5, 1.5):
                record: dict[str, Value] = {"ts": 0, "symbol": "A"}
                record |= {"volume": volume, "price": price}
                row = Row(STREAM.schema, (timestamp(0), "A", price, volume))
                wanted = evaluate(condition(text), row) is True
                assert sight_of(view(text), STREAM.schema, record).seen is wanted, (text, record)
                seen += wanted
    assert 400 < seen < 3_200

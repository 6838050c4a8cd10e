"""The quick reading of records says what the strict one says, and takes what is usually sent."""

import json
import random
import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as fn

from catalog.label import Label
from catalog.record_format import USUAL as ISO
from catalog.record_format import RecordFormat, TimeFormat
from catalog.relation import Relation, RelationKind
from catalog.runs import IngestRun, IngestStream
from catalog.schema import Attribute, Schema, Type
from secfilter import quick_json
from secfilter.ingest import ingest
from tests.lanes import number_of
from tests.senders import sent

SCHEMA = Schema(
    (
        Attribute("at", Type.TIMESTAMP, required=True),
        Attribute("n", Type.BIGINT),
        Attribute("x", Type.DOUBLE),
        Attribute("s", Type.STRING),
        Attribute("b", Type.BOOLEAN),
        Attribute("last", Type.STRING, required=True),
    )
)
AT = "2026-01-31T12:00:00"
USUAL = [
    f'{{"at":"{AT}Z","n":1,"x":1.5,"s":"a","b":true,"last":""}}',
    f'{{ "at": "{AT}.123456789+01:00", "n": null, "x": null, "s": null, "b": null, "last":"ä" }}\n',
    f'{{"at":"{AT}Z","last":"{{}}[],:"}}',
    f'{{"at":"{AT}Z","n":-999999999999999999,"x":0.000001,"s":"","b":false,"last":"\U0001f600"}}',
]
UNUSUAL = [
    "",
    "{}",
    "null",
    f'{{"last":"a","at":"{AT}Z"}}',
    f'{{"at":"{AT}Z","last":"a",}}',
    f'{{"at":"{AT}Z","last":"a"}}x',
    f'{{"at":"{AT}Z","last":"a"}}{{}}',
    f'{{"at":"{AT}Z","last":"a","last":"b"}}',
    f'{{"at":"{AT}Z","n":"1","last":"a"}}',
    f'{{"at":"{AT}Z","n":1.0,"last":"a"}}',
    f'{{"at":"{AT}Z","n":-0,"last":"a"}}',
    f'{{"at":"{AT}Z","n":9223372036854775808,"last":"a"}}',
    f'{{"at":"{AT}Z","x":-0.0,"last":"a"}}',
    f'{{"at":"{AT}Z","x":1e5,"last":"a"}}',
    f'{{"at":"{AT}Z","x":01,"last":"a"}}',
    f'{{"at":"{AT}Z","last":null}}',
    f'{{"at":"{AT}Z","last":1}}',
    f'{{"at":"{AT}Z","last":"\\u0061"}}',
    f'{{"at":"{AT}Z","last":"\x1f"}}',
    f'{{"at":"{AT}","last":"a"}}',
    f'{{"at":"{AT}+01:00Z","last":"a"}}',
    f'{{"at":"{AT}ZZ","last":"a"}}',
    f'{{"at":"{AT}Z","other":1,"last":"a"}}',
    f'\x1f{AT}Z\x1f1\x1f1\x1f"a\x1ftrue\x1f"a',
    f'{{\x1f{AT}Z\x1f1\x1f1\x1f"a\x1ftrue\x1f"a',
]
RANDOM = number_of("RANDOM_RECORDS", sample=60, long=500)
SEED = 4
# When the broker took the records: in 2027.
TAKEN_S = 1_800_000_000.5
_ALPHABET = '{}[]",:\\ \n\x1e\x1f0129.-+eEtrufalsn"aZT'


def mutated(chance: random.Random) -> str:
    """A record of the usual form, most often with a few characters put in, taken out or changed."""
    text = list(chance.choice(USUAL[:1] * 3 + USUAL))
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        place = chance.randrange(len(text))
        text[place : place + chance.choice((0, 1, 1, 2))] = chance.choice(("", *_ALPHABET))
    return "".join(text)


def numbers(chance: random.Random) -> str:
    """A record of the usual form with numbers of all lengths."""
    whole = chance.randrange(-(10 ** chance.randrange(1, 19)), 10 ** chance.randrange(1, 19))
    digits = "".join(chance.choice("0123456789") for _ in range(chance.randrange(1, 16)))
    before = chance.randrange(10 ** chance.randrange(1, 16))
    sign = chance.choice(("", "-"))
    return f'{{"at":"{AT}Z","n":{whole},"x":{sign}{before}.{digits},"last":"a"}}'


def readings(
    spark: SparkSession, records: Sequence[str | bytes], written: RecordFormat = ISO
) -> list[Row]:
    """What ingest makes of each record, in their order."""
    kind, label = RelationKind.STREAM, Label.of(0)
    relation = Relation(1, "one", kind, SCHEMA, "at", 1000)
    stream = IngestStream(relation, label, 60_000, 10_000, written)
    run = IngestRun("ingest-1", (sent(stream),))
    values = [each.encode() if isinstance(each, str) else each for each in records]
    rows = [("in.one", None, value, 0, n, TAKEN_S) for n, value in enumerate(values)]
    frame = spark.createDataFrame(
        rows,
        "topic string, key binary, value binary, partition int, offset bigint, timestamp double",
    ).withColumn("timestamp", fn.col("timestamp").cast("timestamp"))
    return list(ingest(frame.coalesce(1), run, {}).collect())


def read(row: Row) -> list[str | float]:
    """The fields of a tuple in lab; of its double, the number that it says."""
    fields: list[str | float] = list(bytes(row["value"]).decode().split("\x1f"))
    if fields[2] != "\x1e":
        fields[2] = float(fields[2])
    return fields


def unplaced(row: Row) -> list[tuple[str, str]]:
    """The headers without the place of a mistake."""
    found = [(header["key"], bytes(header["value"]).decode()) for header in row["headers"]]
    return [(key, re.sub(r" at byte [0-9]+", "", text)) for key, text in found]


def are_usual(spark: SparkSession, texts: list[str], schema: Schema = SCHEMA) -> list[bool]:
    """Which texts are read quickly, with blanks or without."""
    frame = spark.createDataFrame([(text,) for text in texts], "t string").coalesce(1)
    forms = [
        quick_json.taken_apart(fn.col("t"), schema, TimeFormat.ISO, blanks=b) for b in (False, True)
    ]
    apart = frame.select("t", *(form.alias(f"form{n}") for n, form in enumerate(forms)))
    usual = [quick_json.is_usual(fn.col("t"), fn.col(f"form{n}")) for n in range(len(forms))]
    dense, any_blanks = zip(*apart.select(*usual).collect(), strict=True)
    # What has no blanks is read by the pattern with blanks, too.
    assert all(one <= other for one, other in zip(dense, any_blanks, strict=True))
    return list(any_blanks)


def test_usual_records_are_read_quickly_and_no_others(spark: SparkSession) -> None:
    assert are_usual(spark, USUAL + UNUSUAL) == [True] * len(USUAL) + [False] * len(UNUSUAL)


def test_both_readings_say_the_same(spark: SparkSession) -> None:
    chance = random.Random(SEED)
    cases = json.loads(Path(__file__).with_name("ingest_cases.json").read_text(encoding="utf-8"))
    texts = [*USUAL, *UNUSUAL, *(case["json"] for case in cases if case["json"])]
    texts += [mutated(chance) for _ in range(3 * RANDOM)] + [numbers(chance) for _ in range(RANDOM)]
    # A blank in front is all the same to JSON, and nothing that the quick reading takes.
    quick, strict = readings(spark, texts), readings(spark, [f" {text}" for text in texts])
    for text, one, other in zip(texts, quick, strict, strict=True):
        assert one["topic"] == other["topic"], text
        assert unplaced(one) == unplaced(other), text
        if one["topic"] == "lab.one":
            assert read(one) == read(other), text
    read_quickly = sum(are_usual(spark, texts))
    assert read_quickly > RANDOM and not any(are_usual(spark, [f" {text}" for text in USUAL]))


def test_both_readings_of_times_that_are_numbers_say_the_same(spark: SparkSession) -> None:
    chance = random.Random(SEED)
    numbers = ["0", "1", "-1", "1764040200", "1764040200.5", "-0.5", "1e9", "01", "1."]
    numbers += ["1764040200.1234567891", "9" * 18, "9" * 19, "-62135596800", "253402300800"]
    for _ in range(RANDOM // 10):
        largest = 10 ** chance.randrange(1, 19)
        numbers += [f"{chance.randrange(-largest, largest)}"]
        numbers += [f"{chance.randrange(largest)}.{chance.randrange(10**9)}"]
    texts = [f'{{"at":{number},"last":"a"}}' for number in numbers]
    taken = 0
    for times in (TimeFormat.EPOCH_S, TimeFormat.EPOCH_MS, TimeFormat.EPOCH_US):
        written = RecordFormat(times=times)
        quick, strict = (
            readings(spark, [f"{blank}{text}" for text in texts], written) for blank in ("", " ")
        )
        for text, one, other in zip(texts, quick, strict, strict=True):
            assert one["topic"] == other["topic"], text
            assert unplaced(one) == unplaced(other), text
            assert one["topic"] != "lab.one" or read(one) == read(other), text
        taken += sum(row["topic"] == "lab.one" for row in quick)
    assert taken > RANDOM // 5


def test_usual_records_are_tuples(spark: SparkSession) -> None:
    for text, row in zip(USUAL, readings(spark, USUAL), strict=True):
        assert row["topic"] == "lab.one", text
        fields = bytes(row["value"]).decode().replace("\x1e", "-").split("\x1f")
        sent = json.loads(text)
        assert fields[3] == ("-" if sent.get("s") is None else sent["s"]), text
        assert fields[5] == sent["last"], text


@pytest.mark.parametrize("required", [(), (0,), (1,), (2,), (0, 2)])
def test_commas_stand_between_the_fields_that_are_there(
    spark: SparkSession, required: tuple[int, ...]
) -> None:
    names = ("a", "b", "c")
    schema = Schema(
        tuple(Attribute(name, Type.BIGINT, required=n in required) for n, name in enumerate(names))
    )
    usual: list[str] = []
    unusual: list[str] = []
    for there in product((False, True), repeat=3):
        fields = [f'"{name}":{n}' for n, name in enumerate(names) if there[n]]
        right = [",".join(fields), " , ".join(fields)]
        wrong = [
            "," + right[0],
            right[0] + ",",
            ", " + right[1],
            right[1] + " ,",
            ",,".join(fields),
        ]
        wrong += [" ".join(fields)]
        whole = all(there[n] for n in required)
        for body in (*right, *wrong):
            is_right = body in right and whole
            for text in (f"{{{body}}}", f"{{ {body} }}"):
                (usual if is_right else unusual).append(text)
    texts = usual + [text for text in unusual if text not in usual]
    assert are_usual(spark, texts, schema) == [text in usual for text in texts]


def test_what_is_not_utf8_is_refused_and_the_replacement_character_is_not(
    spark: SparkSession,
) -> None:
    before, after = f'{{"at":"{AT}Z","last":"a'.encode(), b'b"}'
    broken = [b"\xff", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]
    rows = readings(spark, [before + piece + after for piece in (*broken, "\ufffd".encode())])
    *refused, taken = rows
    for row, piece in zip(refused, broken, strict=True):
        assert row["topic"] == "quarantine.one"
        assert bytes(row["headers"][0]["value"]) == b"not UTF-8"
        assert bytes(row["value"]) == before + piece + after
    assert taken["topic"] == "lab.one" and bytes(taken["value"]).decode().endswith("a\ufffdb")

"""Records that a sender might send, and what plain Python says should become of each."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from catalog.schema import Attribute, Schema, Type
from tests.bad_inputs import SEED, naughty_strings, xml_files
from tests.lanes import number_of

SCHEMA = Schema(
    (
        Attribute("at", Type.TIMESTAMP, required=True),
        Attribute("n", Type.BIGINT),
        Attribute("x", Type.DOUBLE),
        Attribute("s", Type.STRING),
        Attribute("b", Type.BOOLEAN),
    )
)
AT = "2026-01-31T12:00:00Z"
MAX_BYTES = 100_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_US = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)

NUMBERS = (
    *("0", "-0", "-0.0", "0.0", "1", "-1", "1.0", "1e0", "1E2", "1e-2", "10e-1", "01", "+1", "1."),
    *(".5", "-", "--1", "1e", "0x10", "1_000", "1,5", "1e999", "-1e999", "1e-999", "NaN"),
    *("Infinity", "-Infinity", "1e308", "1.7976931348623157e308", "1.7976931348623159e308"),
    *("4.9e-324", "2.4e-324", "2.2250738585072011e-308", "9007199254740993", "0.1", "1e22", "1e23"),
    *(str(2**63 - 1), str(2**63), str(-(2**63)), str(-(2**63) - 1), str(2**64), str(10**37)),
    *(str(10**38), str(10**39), str(10**308), str(10**309), "9" * 4_000, "0." + "3" * 4_000),
    *("9" * 20 + "." + "9" * 20, "123456789.123456789e-300", "true", "false", "null", '"1"', "[1]"),
)
TIMES = (
    *("", "now", "0", "1769860800", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31 12:00:00Z"),
    *(
        "2026-01-31T12:00:00z",
        "2026-01-31t12:00:00+0100",
        "0001-01-01T00:00:00+00:01",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00.123456Z",
    ),
    *("2026-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "2026-01-31T24:00:00Z"),
    *("2026-01-31T23:59:60Z", "2026-13-01T00:00:00Z"),
    *("0001-01-01T00:00:00Z", "1582-10-10T00:00:00Z", "1900-01-01T00:00:00+00:00"),
    *("2026-01-31T12:00:00+01:00", "2026-01-31T12:00:00-18:00", "2026-01-31T12:00:00+18:01"),
    *("9999-12-31T23:59:59Z", "-2026-01-31T12:00:00Z", "+12026-01-31T12:00:00Z"),
    *(" 2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z ", "\uff12026-01-31T12:00:00Z"),
)


def records() -> list[bytes | None]:
    """Everything, in an order that the seed decides; in the sample lane every second one."""
    found: list[bytes | None] = [None, b"", b" ", b"\0", b"null", b"{}", b"[]", b'"', b"{" * 5_000]
    for text in naughty_strings():
        raw = text.encode("utf-8", "surrogatepass")
        found += [raw, _object(s=text), _object(s={text: text}), json.dumps({text: 1}).encode()]
        found.append(json.dumps({"at": AT, text: 1}).encode())
        # Not escaped: control characters and quotes are as they came.
        found.append(b'{"at":"%s","s":"%s"}' % (AT.encode(), raw))
        found.append(_object(ensure_ascii=False, s=text, n=1) if _is_whole(text) else b"\xff" + raw)
    for text in naughty_strings()[::5]:
        raw = text.encode("utf-8", "surrogatepass")
        found += [_object(at=text), _object(n=text), _object(b=text), _object(s=[text, [text]])]
        found += [
            _object(s="x") + raw,
            raw + _object(s="x"),
            b'{"at":"%s",%s}' % (AT.encode(), raw),
        ]
    for number in NUMBERS:
        found += [_raw(n=number), _raw(x=number), _raw(s=number), _raw(b=number), number.encode()]
    found += [_raw(x=repr(number)) for number in _doubles(300)]
    found += [_object(at=text) for text in TIMES]
    found += [text.encode() for text in xml_files().values()]
    found += list(_broken())
    random.Random(SEED).shuffle(found)
    return found[:: number_of("BAD_TUPLE_STEP", sample=3, long=1)]


def _broken() -> Iterator[bytes]:
    good = _object(s="é")
    yield from (good[:end] for end in range(len(good)))
    yield from (good[:i] + b"\xff" + good[i:] for i in range(0, len(good), 3))
    yield b"\xef\xbb\xbf" + good
    for codec in ("utf-16", "utf-16-le", "utf-32", "latin-1"):
        yield good.decode().replace("\\u00e9", "é").encode(codec)
    yield good + good
    yield good + b"\n" + good
    yield good + b"\0"
    yield b"\x1e" + good
    yield b'{"at":"%s","s":1,"s":"x"}' % AT.encode()
    yield b'{"at":"%s","s":"x","\\u0073":"y"}' % AT.encode()
    yield b'{"at":"%s","at":"%s"}' % (AT.encode(), AT.encode())
    yield b'{"at":"%s","s":"\\ud83d\\ude00"}' % AT.encode()
    yield b'{"at":"%s","s":"\\ude00\\ud83d"}' % AT.encode()
    yield b'{"at":"%s","s":"\\udbff\\u0041"}' % AT.encode()
    yield b'{"at":"%s","s":"\\u0000"}' % AT.encode()
    yield b'{"at":"%s","s":"\\u001f"}' % AT.encode()
    yield b'{"at":"%s","s":"\\u001E"}' % AT.encode()
    yield b'{"at":"%s","s":"\\\\u001f"}' % AT.encode()
    yield b'{"at":"%s","s":"\xed\xa0\x80"}' % AT.encode()
    yield b'{"at":"%s","s":"\xf4\x90\x80\x80"}' % AT.encode()
    yield b'{"at":"%s","s":"\xf0\x9f\x98\x80 \xef\xbf\xbf \xe2\x80\xa8"}' % AT.encode()
    for size in (MAX_BYTES - 30, MAX_BYTES, MAX_BYTES + 1, 5 * MAX_BYTES):
        yield _object(s="x" * size)
    yield b'{"at":"%s"%s}' % (AT.encode(), b" " * (MAX_BYTES - 30))
    yield b'{"at":"%s",%s}' % (AT.encode(), b",".join(b'"k%d":1' % i for i in range(5_000)))
    for opened, closed in ((b"[", b"]"), (b'{"s":', b"}")):
        for depth in (100, 499, 999, 1_001, 10_000):
            yield b'{"at":"%s","s":%s1%s}' % (AT.encode(), opened * depth, closed * depth)


def _object(ensure_ascii: bool = True, **fields: Any) -> bytes:
    return json.dumps({"at": AT} | fields, ensure_ascii=ensure_ascii).encode()


def _raw(**fields: str) -> bytes:
    return (
        "{" + ",".join([f'"at":"{AT}"', *(f'"{k}":{v}' for k, v in fields.items())]) + "}"
    ).encode()


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _doubles(count: int) -> Iterator[float]:
    """Doubles of all magnitudes, from random bits."""
    chance = random.Random(SEED)
    while count:
        (number,) = struct.unpack("<d", chance.randbytes(8))
        if math.isfinite(number):
            count -= 1
            yield number


def tuple_of(record: bytes | None) -> dict[str, Any] | None:
    """The tuple that the record is, by attribute, None where it is none."""
    if record is None or len(record) > MAX_BYTES:
        return None
    try:
        value = json.loads(
            record.decode(),
            object_pairs_hook=_once,
            parse_constant=_refuse,
            parse_int=lambda digits: int(_bounded(digits)),
            parse_float=lambda digits: float(_bounded(digits)),
        )
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not value.keys() <= set(SCHEMA.names):
        return None
    row = {a.name: value.get(a.name) for a in SCHEMA.attributes}
    return row if all(_fits(a, row) for a in SCHEMA.attributes) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _bounded(digits: str) -> str:
    # What Spark's parser takes.
    if len(digits) > 1_000:
        raise ValueError("too many digits")
    return digits


def _fits(attribute: Attribute, row: dict[str, Any]) -> bool:
    """Whether the value is one of the type; a double and a time are put in place as such."""
    value, name = row[attribute.name], attribute.name
    if value is None:
        return not attribute.required
    match attribute.type:
        case Type.BOOLEAN:
            return isinstance(value, bool)
        case Type.BIGINT:
            return type(value) is int and -(2**63) <= value < 2**63
        case Type.DOUBLE:
            if type(value) not in (int, float):
                return False
            try:
                row[name] = float(value)
            except OverflowError:
                return False
            return math.isfinite(row[name])
        case Type.STRING:
            return isinstance(value, str) and _is_whole(value) and not {"\x1e", "\x1f"} & set(value)
        case Type.TIMESTAMP:
            row[name] = _microseconds(value)
            return row[name] is not None
        case _:
            raise TypeError("no attribute here is nested")


def _microseconds(value: object) -> int | None:
    """Microseconds since 1970 of an ISO 8601 time with a zone that is not in the future."""
    if not isinstance(value, str) or len(value) < 20 or not value.isascii():
        return None
    value = value.upper()
    if value[10] != "T" or not (value.endswith("Z") or value[-6] in "+-" or value[-5] in "+-"):
        return None
    if value != value.strip():
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    # Python takes a point without digits, and zones that are a day away.
    if ".Z" in value or abs(at.utcoffset() or timedelta()) > timedelta(hours=18):
        return None
    micros = (at - EPOCH) // timedelta(microseconds=1)
    return micros if micros >= FIRST_US and at.year < 2027 else None

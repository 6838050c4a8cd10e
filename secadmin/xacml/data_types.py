"""The data types of XACML 3.0 (section B.3): how a text becomes a value, and back.

A value is a plain Python value. Its type is known from the policy and is not stored with it.
A date, time or dateTime without a time zone is in UTC. An integer has at most 64 bits.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Any

XSD = "http://www.w3.org/2001/XMLSchema#"
MAX_TEXT = 10_000
_LIMIT = 2**63
_LAST_PORT = 65_535
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(Z|[+-]\d\d:\d\d)?", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT" + _TIME.pattern, re.ASCII)
_DAYS = re.compile(
    r"(-)?P(?=.)(?:(\d{1,6})D)?(?:T(?=.)(?:(\d{1,8})H)?(?:(\d{1,8})M)?(?:(\d{1,9}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)
_MONTHS = re.compile(r"(-)?P(?=.)(?:(\d{1,5})Y)?(?:(\d{1,6})M)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_PORTS = r"(?::(?P<first>\d{1,5})?(?P<to>-)?(?P<last>\d{1,5})?)?"
_IPV4 = re.compile(rf"(?P<address>[0-9.]+)(?:/(?P<mask>[0-9.]+))?{_PORTS}", re.ASCII)
_IPV6 = re.compile(
    rf"\[(?P<address>[0-9A-Fa-f:.]+)\](?:/\[(?P<mask>[0-9A-Fa-f:.]+)\])?{_PORTS}", re.ASCII
)
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"(?:\*|(?:\*\.)?{_LABEL}(?:\.{_LABEL})*\.?){_PORTS}", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,4})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class DataType:
    """A data type: its identifier, the short name in function names, reading and writing.

    `read` raises ValueError for a text that is no value of the type.
    """

    uri: str
    name: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]


def _whole(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError
    return found


def _boolean(text: str) -> bool:
    if text not in ("true", "false", "1", "0"):
        raise ValueError
    return text in ("true", "1")


def within_64_bits(value: int) -> int:
    """The integer itself. Raises ValueError if it needs more than 64 bits."""
    if not -_LIMIT <= value < _LIMIT:
        raise ValueError
    return value


def _integer(text: str) -> int:
    return within_64_bits(int(_whole(_INTEGER, text)[0]))


def _double(text: str) -> float:
    if text in ("INF", "-INF", "NaN"):
        return float(text)
    return float(_whole(_DOUBLE, text)[0])


def _in_zone(value: datetime) -> datetime:
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _date(text: str) -> datetime:
    found = _whole(_DATE, text)
    return _in_zone(datetime.fromisoformat(f"{found[1]}T00:00:00{found[2] or ''}"))


def _time(text: str) -> time:
    value = time.fromisoformat(_whole(_TIME, text)[0])
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _date_time(text: str) -> datetime:
    return _in_zone(datetime.fromisoformat(_whole(_DATE_TIME, text)[0]))


def _days(text: str) -> timedelta:
    sign, days, hours, minutes, seconds = _whole(_DAYS, text).groups()
    try:
        value = timedelta(
            days=int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0)
        ) + timedelta(seconds=float(seconds or 0))
    except OverflowError:
        raise ValueError from None
    return -value if sign else value


def _months(text: str) -> int:
    sign, years, months = _whole(_MONTHS, text).groups()
    value = int(years or 0) * 12 + int(months or 0)
    return -value if sign else value


def _days_text(value: timedelta) -> str:
    sign, rest = ("-", -value) if value < timedelta(0) else ("", value)
    seconds = f"{rest.seconds}.{rest.microseconds:06}".rstrip("0").rstrip(".")
    return f"{sign}P{rest.days}DT{seconds}S"


def _months_text(value: int) -> str:
    return f"{'-' if value < 0 else ''}P{abs(value) // 12}Y{abs(value) % 12}M"


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error:
        raise ValueError from None


def _hex(text: str) -> bytes:
    return bytes.fromhex(_whole(re.compile(r"(?:[0-9A-Fa-f]{2})*"), text)[0])


def _mail(text: str) -> tuple[str, str]:
    local, at, domain = text.rpartition("@")
    if not (local and at and domain):
        raise ValueError
    return local, domain.lower()


def _name(text: str) -> tuple[tuple[str, str], ...]:
    """The parts of an X.500 name. Quoted, escaped and multi-valued parts are refused."""
    parts = []
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not (key.strip() and equals and value.strip()) or re.search(r'["\\+#;<>]', part):
            raise ValueError
        parts.append((key.strip().lower(), " ".join(value.split()).lower()))
    return tuple(parts)


def _ip_address(text: str) -> str:
    """An address, perhaps with a mask and with ports (section A.2). It keeps its text."""
    version = IPv6Address if text.startswith("[") else IPv4Address
    found = _whole(_IPV6 if version is IPv6Address else _IPV4, text)
    version(found["address"])
    if found["mask"] is not None:
        version(found["mask"])
    _check_ports(found)
    return text


def _dns_name(text: str) -> str:
    """A host's name, perhaps with ports. Its first part may be `*`."""
    _check_ports(_whole(_HOST, text))
    return text


def _check_ports(found: re.Match[str]) -> None:
    """Refuse what is no range of ports: `80`, `-80`, `80-` or `80-90`."""
    first, to, last = found["first"], found["to"], found["last"]
    numbers = [int(each) for each in (first, last) if each is not None]
    if (last if to is None else not numbers) or numbers != sorted(numbers):
        raise ValueError
    if any(number > _LAST_PORT for number in numbers):
        raise ValueError


def _double_text(value: float) -> str:
    return {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(str(value), str(value))


def _iso(value: date | time) -> str:
    return value.isoformat().replace("+00:00", "Z")


_ALL = (
    DataType(f"{XSD}string", "string", str, str),
    DataType(f"{XSD}boolean", "boolean", _boolean, lambda value: str(value).lower()),
    DataType(f"{XSD}integer", "integer", _integer, str),
    DataType(f"{XSD}double", "double", _double, _double_text),
    DataType(f"{XSD}date", "date", _date, lambda value: _iso(value).replace("T00:00:00", "", 1)),
    DataType(f"{XSD}time", "time", _time, _iso),
    DataType(f"{XSD}dateTime", "dateTime", _date_time, _iso),
    DataType(f"{XSD}anyURI", "anyURI", str, str),
    DataType(f"{XSD}hexBinary", "hexBinary", _hex, lambda value: value.hex().upper()),
    DataType(
        f"{XSD}base64Binary",
        "base64Binary",
        _base64,
        lambda value: base64.b64encode(value).decode(),
    ),
    DataType(f"{XSD}dayTimeDuration", "dayTimeDuration", _days, _days_text),
    DataType(f"{XSD}yearMonthDuration", "yearMonthDuration", _months, _months_text),
    DataType(
        "urn:oasis:names:tc:xacml:1.0:data-type:x500Name",
        "x500Name",
        _name,
        lambda value: ",".join(f"{key}={text}" for key, text in value),
    ),
    DataType("urn:oasis:names:tc:xacml:1.0:data-type:rfc822Name", "rfc822Name", _mail, "@".join),
    DataType("urn:oasis:names:tc:xacml:2.0:data-type:ipAddress", "ipAddress", _ip_address, str),
    DataType("urn:oasis:names:tc:xacml:2.0:data-type:dnsName", "dnsName", _dns_name, str),
)
DATA_TYPES = {one.uri: one for one in _ALL}
BY_NAME = {one.name: one for one in _ALL}


def read_value(data_type: DataType, text: str) -> Any:
    """The value of a text. Raises ValueError, saying what is wrong."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"a value has more than {MAX_TEXT} characters")
    try:
        return data_type.read(text if data_type.name == "string" else text.strip())
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a value of the type {data_type.name}") from None

"""Each function of XACML: values, errors, empty bags. A function without a case fails here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from secadmin.xacml import decide, read_policy, request_of_xml
from secadmin.xacml.data_types import BY_NAME, DATA_TYPES, read_value
from secadmin.xacml.expressions import is_over_bags
from secadmin.xacml.functions import FUNCTIONS, NETWORK, PREFIX, Indeterminate, Kind
from tests.unit.secadmin.xacml import policy_texts as x

# Two different values of each type, in rising order where the type has an order.
TWO = {
    "string": ("a", "b"),
    "boolean": ("false", "true"),
    "integer": ("-3", "7"),
    "double": ("-1.5", "2e3"),
    "date": ("2026-01-31", "2026-02-01"),
    "time": ("08:00:00", "09:30:00.5"),
    "dateTime": ("2026-01-31T00:00:00Z", "2026-01-31T00:00:00-01:00"),
    "anyURI": ("http://a", "http://b"),
    "hexBinary": ("0A", "0aff"),
    "base64Binary": ("AA==", "AAE="),
    "dayTimeDuration": ("-P1DT2H", "PT1M0.5S"),
    "yearMonthDuration": ("P1M", "P2Y"),
    "x500Name": ("cn=A, o=x", "cn=b,o=x"),
    "rfc822Name": ("a@X.org", "A@x.org"),
    "ipAddress": ("10.1.2.3/255.0.0.0:80-90", "[2001:db8::1]/[ffff::]:-443"),
    "dnsName": ("*.example.org", "a-b.example.org:80-"),
}
WRONG = {
    "boolean": "yes",
    "integer": "1.0",
    "double": "1,5",
    "date": "2026-02-30",
    "time": "24:61:00",
    "dateTime": "2026-01-31",
    "dayTimeDuration": "P",
    "yearMonthDuration": "P1D",
    "hexBinary": "0",
    "base64Binary": "?",
    "x500Name": "name",
    "rfc822Name": "@x.org",
    "ipAddress": "10.1.2",
    "dnsName": "-a.org",
}
MORE_WRONG = {
    "ipAddress": ("10.1.2.256", "[::g]", "::1", "1.2.3.4:80:", "1.2.3.4:-", "[::1]/255.0.0.0"),
    "dnsName": ("a..b", "a.*.b", "a_b", "a:90-80", "a:65536", "a:123456", "", "a" * 64),
}
ERROR = Indeterminate
CASES: list[tuple[str, tuple[str, ...], str | type[Indeterminate]]] = [
    ("integer-add", ("2", "3", "4"), "9"),
    ("integer-add", ("9223372036854775807", "1"), ERROR),
    ("integer-subtract", ("2", "3"), "-1"),
    ("integer-multiply", ("2", "3"), "6"),
    ("integer-multiply", ("9223372036854775807", "2"), ERROR),
    ("integer-divide", ("-7", "2"), "-3"),
    ("integer-divide", ("1", "0"), ERROR),
    ("integer-mod", ("-7", "2"), "-1"),
    ("integer-mod", ("1", "0"), ERROR),
    ("integer-abs", ("-7",), "7"),
    ("integer-abs", ("-9223372036854775808",), ERROR),
    ("integer-to-double", ("3",), "3.0"),
    ("double-add", ("0.5", "0.25"), "0.75"),
    ("double-subtract", ("0.5", "0.25"), "0.25"),
    ("double-multiply", ("0.5", "4"), "2.0"),
    ("double-divide", ("1", "4"), "0.25"),
    ("double-divide", ("1", "0"), ERROR),
    ("double-abs", ("-0.5",), "0.5"),
    ("double-to-integer", ("-2.9",), "-2"),
    ("double-to-integer", ("NaN",), ERROR),
    ("double-to-integer", ("1e30",), ERROR),
    ("round", ("2.6",), "3.0"),
    ("round", ("INF",), ERROR),
    ("floor", ("-2.1",), "-3.0"),
    ("floor", ("NaN",), ERROR),
    ("not", ("true",), "false"),
    ("string-normalize-space", (" a b ",), "a b"),
    ("string-normalize-to-lower-case", ("AbC",), "abc"),
    ("string-equal-ignore-case", ("AbC", "aBc"), "true"),
    ("string-concatenate", ("a", "b", "c"), "abc"),
    ("string-concatenate", ("a" * 9_000, "b" * 9_000), ERROR),
    ("string-starts-with", ("ab", "abc"), "true"),
    ("string-ends-with", ("ab", "abc"), "false"),
    ("string-contains", ("b", "abc"), "true"),
    ("string-substring", ("abc", "1", "-1"), "bc"),
    ("string-substring", ("abc", "2", "1"), ERROR),
    ("anyURI-starts-with", ("http:", "http://a"), "true"),
    ("anyURI-ends-with", ("/a", "http://a"), "true"),
    ("anyURI-contains", ("ftp", "http://a"), "false"),
    ("anyURI-substring", ("http://a", "0", "4"), "http"),
    ("anyURI-substring", ("http://a", "0", "40"), ERROR),
    ("dateTime-add-dayTimeDuration", ("2026-01-31T23:00:00Z", "PT1H"), "2026-02-01T00:00:00Z"),
    ("dateTime-add-dayTimeDuration", ("9999-12-31T23:00:00Z", "PT1H"), ERROR),
    ("dateTime-subtract-dayTimeDuration", ("2026-02-01T00:00:00Z", "P1D"), "2026-01-31T00:00:00Z"),
    ("dateTime-subtract-dayTimeDuration", ("0001-01-01T00:00:00Z", "P1D"), ERROR),
    ("dateTime-add-yearMonthDuration", ("2026-01-31T00:00:00Z", "P1M"), "2026-02-28T00:00:00Z"),
    ("dateTime-add-yearMonthDuration", ("9999-01-31T00:00:00Z", "P1Y"), ERROR),
    (
        "dateTime-subtract-yearMonthDuration",
        ("2026-01-31T00:00:00Z", "P1Y"),
        "2025-01-31T00:00:00Z",
    ),
    ("dateTime-subtract-yearMonthDuration", ("0001-01-31T00:00:00Z", "P1Y"), ERROR),
    ("date-add-yearMonthDuration", ("2024-02-29", "P1Y"), "2025-02-28"),
    ("date-add-yearMonthDuration", ("9999-02-28", "P1Y"), ERROR),
    ("date-subtract-yearMonthDuration", ("2026-01-31", "P2M"), "2025-11-30"),
    ("date-subtract-yearMonthDuration", ("0001-01-31", "P2M"), ERROR),
    ("time-in-range", ("23:30:00", "22:00:00", "06:00:00"), "true"),
    ("time-in-range", ("12:00:00", "22:00:00", "06:00:00"), "false"),
    ("x500Name-match", ("o=x", "cn=a,O=X"), "true"),
    ("x500Name-match", ("cn=a,o=x", "o=x"), "false"),
    ("rfc822Name-match", ("a@X.org", "a@x.org"), "true"),
    ("rfc822Name-match", ("x.org", "a@y.x.org"), "false"),
    ("rfc822Name-match", (".x.org", "a@y.x.org"), "true"),
    ("string-regexp-match", ("b+", "abbc"), "true"),
    ("string-regexp-match", ("^b", "abc"), "false"),
    ("string-regexp-match", ("a$", "a\n"), "false"),
    ("string-regexp-match", ("^(a|b)*a(a|b){20}c$", "ab" * 4_000), "false"),
    ("string-regexp-match", ("(a", "a"), ERROR),
    ("string-regexp-match", (r"(a)\1", "aa"), ERROR),
    ("string-regexp-match", ("a" * 300, "a"), ERROR),
    ("anyURI-regexp-match", ("^https?://a/", "http://a/b"), "true"),
    ("anyURI-regexp-match", ("[", "http://a/b"), ERROR),
    ("ipAddress-regexp-match", (r"^10\.", "10.1.2.3:80"), "true"),
    ("ipAddress-regexp-match", ("*", "10.1.2.3"), ERROR),
    ("dnsName-regexp-match", (r"\.org(:|$)", "*.example.org:80"), "true"),
    ("dnsName-regexp-match", ("a**", "a"), ERROR),
    ("rfc822Name-regexp-match", ("@x[.]org$", "a@X.ORG"), "true"),
    ("rfc822Name-regexp-match", (")", "a@x.org"), ERROR),
    ("x500Name-regexp-match", ("(^|,)o=x$", "cn=A, O=X"), "true"),
    ("x500Name-regexp-match", ("{", "cn=a"), ERROR),
]
BAGS = ("one-and-only", "bag-size", "bag")
OF_EACH_TYPE = (
    *("equal", *BAGS, "is-in", "intersection", "union"),
    *("at-least-one-member-of", "subset", "set-equals"),
)
COMPARED = [kind for kind in TWO if kind not in NETWORK]
ORDERED = ("integer", "double", "string", "time", "dateTime", "date")
ORDERS = ("greater-than", "greater-than-or-equal", "less-than", "less-than-or-equal")


def _function(name: str) -> Any:
    [found] = [one for key, one in FUNCTIONS.items() if key.endswith(f":function:{name}")]
    return found


def _read(kind: Kind, text: str) -> Any:
    return read_value(BY_NAME[kind.name], text)


def _run(name: str, texts: tuple[str, ...]) -> Any:
    function = _function(name)
    kinds = (*function.takes, *[function.rest] * (len(texts) - len(function.takes)))
    return function.run(*(_read(kind, text) for kind, text in zip(kinds, texts, strict=True)))


@pytest.mark.parametrize(("name", "texts", "expected"), CASES)
def test_values_and_errors(name: str, texts: tuple[str, ...], expected: Any) -> None:
    if expected is ERROR:
        with pytest.raises(Indeterminate):
            _run(name, texts)
    else:
        assert _run(name, texts) == _read(_function(name).gives, expected)


def test_every_function_has_a_case() -> None:
    named = {name for name, _, _ in CASES}
    named |= {f"{kind}-{ending}" for kind in COMPARED for ending in OF_EACH_TYPE}
    named |= {f"{kind}-{ending}" for kind in NETWORK for ending in BAGS}
    named |= {f"{kind}-{ending}" for kind in ORDERED for ending in ORDERS}
    for kind in set(TWO) - {"string", "hexBinary", "base64Binary"}:
        named |= {f"string-from-{kind}", f"{kind}-from-string"}
    assert {key.rpartition(":function:")[2] for key in FUNCTIONS} == named
    assert all(key.startswith(PREFIX) for key in FUNCTIONS)
    assert set(TWO) == {one.name for one in DATA_TYPES.values()}


def _mandatory() -> Iterator[str]:
    """What each implementation must have (XACML 3.0, 10.2.8), with the version of its name."""
    types = dict.fromkeys(COMPARED, "1.0") | dict.fromkeys(NETWORK, "2.0")
    types |= dict.fromkeys(("dayTimeDuration", "yearMonthDuration"), "3.0")
    for kind, version in types.items():
        yield from (f"{version} {kind}-{ending}" for ending in BAGS)
        if kind not in NETWORK:
            yield from (f"{version} {kind}-{ending}" for ending in OF_EACH_TYPE)
        if kind not in ("string", "hexBinary", "base64Binary"):
            yield from (f"3.0 {kind}-from-string", f"3.0 string-from-{kind}")
    yield from (f"1.0 {kind}-{ending}" for kind in ORDERED for ending in ORDERS)
    for name in ("add", "subtract", "multiply", "divide", "abs"):
        yield from (f"1.0 {kind}-{name}" for kind in ("integer", "double"))
    for name in ("starts-with", "ends-with", "contains", "substring"):
        yield from (f"3.0 {kind}-{name}" for kind in ("string", "anyURI"))
    for name in ("add", "subtract"):
        yield f"3.0 dateTime-{name}-dayTimeDuration"
        yield from (f"3.0 {kind}-{name}-yearMonthDuration" for kind in ("dateTime", "date"))
    for kind in ("anyURI", "ipAddress", "dnsName", "rfc822Name", "x500Name"):
        yield f"2.0 {kind}-regexp-match"
    yield from (
        *("1.0 integer-mod", "1.0 round", "1.0 floor", "1.0 double-to-integer"),
        *("1.0 integer-to-double", "1.0 string-normalize-space", "2.0 string-concatenate"),
        *("1.0 string-normalize-to-lower-case", "3.0 string-equal-ignore-case", "1.0 not"),
        *("1.0 or", "1.0 and", "1.0 n-of", "2.0 time-in-range", "3.0 any-of", "3.0 all-of"),
        *("3.0 any-of-any", "1.0 all-of-any", "1.0 any-of-all", "1.0 all-of-all", "3.0 map"),
        *("1.0 string-regexp-match", "1.0 x500Name-match", "1.0 rfc822Name-match"),
    )


def test_all_that_is_mandatory_is_here() -> None:
    ids = {f"{PREFIX}{each.replace(' ', ':function:')}" for each in _mandatory()}
    others = {each for each in ids - set(FUNCTIONS) if not is_over_bags(each)}
    assert {each.rpartition(":")[2] for each in others} == {"or", "and", "n-of"}
    assert len(ids) > 200


@pytest.mark.parametrize(
    ("kind", "text"), [(k, text) for k, all_ in MORE_WRONG.items() for text in all_]
)
def test_names_and_addresses_that_are_none(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match="is not a value"):
        _read(Kind(kind), text)


@pytest.mark.parametrize("kind", COMPARED)
def test_equality_and_bags(kind: str) -> None:
    one, two = (_read(Kind(kind), text) for text in TWO[kind])
    run = {ending: _function(f"{kind}-{ending}").run for ending in OF_EACH_TYPE}
    assert run["equal"](one, one)
    assert not run["equal"](one, two)
    assert run["one-and-only"]((two,)) == two
    for bag in ((), (one, two)):
        with pytest.raises(Indeterminate):
            run["one-and-only"](bag)
    assert (run["bag-size"](()), run["bag-size"]((one, one))) == (0, 2)
    assert (run["is-in"](one, (two, one)), run["is-in"](one, ())) == (True, False)
    assert (run["bag"](), run["bag"](two, one)) == ((), (two, one))
    assert run["intersection"]((one, one, two), (one,)) == (one,)
    assert run["intersection"]((), (one,)) == ()
    assert run["union"]((one, one), (two,)) == (one, two)
    assert run["union"]((), ()) == ()
    assert run["at-least-one-member-of"]((one,), (two, one))
    assert not run["at-least-one-member-of"]((), (one,))
    assert run["subset"]((), (one,))
    assert not run["subset"]((one, two), (one,))
    assert run["set-equals"]((one, two, one), (two, one))
    assert not run["set-equals"]((), (one,))


@pytest.mark.parametrize("kind", ORDERED)
def test_order(kind: str) -> None:
    low, high = (_read(Kind(kind), text) for text in TWO[kind])
    found = {
        ending: [_function(f"{kind}-{ending}").run(a, b) for a, b in ((low, high), (low, low))]
        for ending in ORDERS
    }
    assert list(found.values()) == [[False, False], [False, True], [True, False], [True, True]]


@pytest.mark.parametrize("kind", sorted(set(TWO) - {"string"}))
def test_texts(kind: str) -> None:
    """A value survives its text; a text that is no value is an error."""
    for text in TWO[kind]:
        value = _read(Kind(kind), text)
        assert _read(Kind(kind), BY_NAME[kind].write(value)) == value
        if kind not in ("hexBinary", "base64Binary"):
            assert _run(f"{kind}-from-string", (_function(f"string-from-{kind}").run(value),)) == (
                value
            )
    if kind in WRONG:
        with pytest.raises(ValueError, match="not a value"):
            _read(Kind(kind), WRONG[kind])
    if kind in WRONG and kind not in ("hexBinary", "base64Binary"):
        with pytest.raises(Indeterminate):
            _run(f"{kind}-from-string", (WRONG[kind],))


def _values(key: str) -> list[str]:
    """Arguments for which the function has a value, as XML."""
    name, function = key.rpartition(":function:")[2], FUNCTIONS[key]
    texts = next((t for n, t, wanted in CASES if n == name and wanted is not ERROR), None)
    kinds = [*function.takes]
    if function.rest is not None:
        kinds += [function.rest] * (1 if texts is None else len(texts) - len(kinds))
    if texts is None and name.endswith("-from-string"):
        texts = (TWO[name.partition("-")[0]][0],)
    if texts is None:
        texts = tuple(TWO[kind.name][0] for kind in kinds)
    written = [x.literal(text, kind.name) for text, kind in zip(texts, kinds, strict=True)]
    return [
        x.call(_key(f"{kind.name}-bag"), each) if kind.bag else each
        for each, kind in zip(written, kinds, strict=True)
    ]


def _key(name: str) -> str:
    return next(key for key in FUNCTIONS if key.endswith(f":function:{name}"))


def _decision(key: str, arguments: list[str]) -> str:
    """The decision of a rule whose condition is that the function gives what it gives."""
    gives, given = FUNCTIONS[key].gives, x.call(key, *arguments)
    if gives.name in NETWORK:
        # They are not compared: their texts and the sizes of their bags are.
        other = f"{gives.name}-bag-size" if gives.bag else f"string-from-{gives.name}"
        gives, given = FUNCTIONS[_key(other)].gives, x.call(_key(other), given)
    equal = _key(f"{gives.name}-{'set-equals' if gives.bag else 'equal'}")
    text = x.policy(x.rule("Permit", x.call(equal, given, given)))
    return decide(read_policy(text), request_of_xml(x.request())).decision.value


@pytest.mark.parametrize("key", FUNCTIONS)
def test_an_empty_bag_is_no_value_and_permits_nothing(key: str) -> None:
    """Each argument in turn is an attribute that the request does not have (XACML 3.0, 7.3.5)."""
    function, values = FUNCTIONS[key], _values(key)
    assert _decision(key, values) == "Permit", "with all values"
    kinds = [*function.takes, *[function.rest] * (len(values) - len(function.takes))]
    for place, kind in enumerate(kinds):
        assert kind is not None
        absent = x.attribute("absent", kind.name)
        if not kind.bag:
            absent = x.call(_key(f"{kind.name}-one-and-only"), absent)
        found = _decision(key, [*values[:place], absent, *values[place + 1 :]])
        has_value = kind.bag and not key.endswith("-one-and-only")
        assert found == ("Permit" if has_value else "Indeterminate{P}"), place

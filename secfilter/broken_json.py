"""Finds out why a text is not exactly one JSON object, and at which byte.

Spark's parser does not say why. So a regular expression matches as much of the text as is correct,
and the mistake comes next. It runs only for refused records. Its time is linear in their length,
because no repetition gives back what it took. It knows values that are nested a few levels deep.
For a mistake at a deeper level it only says where that level begins.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

_DEPTH = 4
_WS = r"[ \t\n\r]*+"
_HEX = "[0-9a-fA-F]"
# Half of a surrogate pair is no character.
_ESCAPE = (
    r'\\(?:["\\/bfnrt]|u(?:'
    rf"[0-9a-cefA-CEF]{_HEX}{{3}}|[dD][0-7]{_HEX}{{2}}"
    rf"|[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}))"
)
_OPEN_STRING = rf'"(?:[^"\\\x00-\x1f]++|{_ESCAPE})*+'
_STRING = f'{_OPEN_STRING}"'
_NUMBER = r"-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+"
_SCALAR = f"(?:{_STRING}|{_NUMBER}|true|false|null)"
_CUT = 64
_BACKSLASH_U = r"\A\\u[dD][89a-fA-F]"


def _value(depth: int) -> str:
    if depth == 0:
        return _SCALAR
    inner = _value(depth - 1)
    elements = rf"(?:{inner}{_WS}(?:,{_WS}(?!\])|(?=\])))*+"
    return rf"(?:{_SCALAR}|\[{_WS}{elements}\]|\{{{_WS}{_members(inner)}\}})"


def _members(value: str) -> str:
    return rf'(?:{_STRING}{_WS}:{_WS}{value}{_WS}(?:,{_WS}(?=")|(?=\}})))*+'


def _right() -> str:
    """A pattern for the correct beginning of a text, with its last key and the object's end."""
    value = _value(_DEPTH)
    begun = rf"(?:({_STRING}){_WS}(?::{_WS}(?:{value}{_WS}|{_OPEN_STRING})?+)?+|{_OPEN_STRING})"
    return rf"\A{_WS}(?:\{{{_WS}{_members(value)}(?:(\}}{_WS})|{begun})?+)?+"


_RIGHT = _right()
_SEPARATOR = "\x1f"
# In a sorted list of keys, the first key that occurs twice.
_TWICE = rf"(?:\A|{_SEPARATOR})([^{_SEPARATOR}]*+){_SEPARATOR}\1(?:{_SEPARATOR}|\z)"


def taken_apart(text: Column) -> Column:
    """The end of the object, the last key before the mistake, and the rest of the text.

    Keep the result in a column. None of the three is NULL. A key is written as in the text, in
    quotation marks.
    """
    marked = fn.regexp_replace(text, fn.lit(_RIGHT), fn.lit(f"$1{_SEPARATOR}$2{_SEPARATOR}"))
    return fn.split(marked, _SEPARATOR, 3)


def reason(text: Column, apart: Column, found: Column) -> Column:
    """Why a text that is not an object is refused. `apart` is `taken_apart` of it.

    If the text is other JSON, `found` says what it is (as `misfits.in_words` does). Otherwise
    `found` is NULL.
    """
    ended, key, rest = (fn.get(apart, fn.lit(n)) for n in range(3))
    place = fn.octet_length(text) - fn.octet_length(rest) + fn.lit(1)
    at = fn.concat(fn.lit(" at byte "), place.cast("string"))
    name = fn.substring(key, 2, _CUT + 1)
    name = fn.regexp_replace(name, fn.lit(r'"\z'), fn.lit(""))
    named = fn.when(key != fn.lit(""), fn.concat(name, fn.lit(": "))).otherwise("")
    # Every other mistake is a byte that is not allowed there in JSON.
    broken = (
        fn.when(rest == fn.lit(""), "ends too soon,")
        .when(rest.rlike(_BACKSLASH_U), "half a surrogate pair")
        .when(rest.rlike(r"\A[\[{]"), "not JSON in what begins")
        .when(rest.rlike(r"\A[\x00-\x1f]"), "a control character that is not escaped")
        .otherwise("not JSON")
    )
    whole = (ended != fn.lit("")) & (rest == fn.lit(""))
    return (
        fn.when(text.rlike(rf"\A{_WS}\z"), "empty")
        .when(text.rlike(rf"\A{_WS}\ufeff"), "a byte-order mark before the object")
        .when(text.rlike(rf"\A{_WS}\["), "an array, expected an object")
        .when(whole, _unparsed(text))
        .when(found.isNotNull() & (ended == ""), fn.concat(found, fn.lit(", expected an object")))
        .when(ended != fn.lit(""), fn.concat(fn.lit("not one JSON object: more"), at))
        .otherwise(fn.concat(named, broken, at))
    )


def _unparsed(text: Column) -> Column:
    """The reason for a text in which the regular expression finds no mistake."""
    keys = fn.array_join(fn.sort_array(fn.json_object_keys(text)), _SEPARATOR)
    twice = fn.regexp_extract(keys, _TWICE, 1)
    return fn.when(
        twice != fn.lit(""), fn.concat(fn.substring(twice, 1, _CUT), fn.lit(": given twice"))
    ).otherwise("a field is given twice, a number has more than 1,000 digits, or all is too deep")

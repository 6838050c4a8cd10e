"""A request for a decision (XACML 3.0, section 5.42), from XML or from the JSON profile.

One request asks for one decision: a category that occurs twice, and Content, are refused. The
caller puts the time (current-time, current-date, current-dateTime) into the environment.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from catalog.errors import InvalidInput
from secadmin.xacml.data_types import BY_NAME, DATA_TYPES, DataType, read_value
from secadmin.xacml.tree import MAX_CHARACTERS, Element, parse_tree

MAX_VALUES = 1000
_CATEGORY = "urn:oasis:names:tc:xacml:3.0:attribute-category:"
_SUBJECT = "urn:oasis:names:tc:xacml:1.0:subject-category:"
_SHORT = {
    "AccessSubject": f"{_SUBJECT}access-subject",
    "RecipientSubject": f"{_SUBJECT}recipient-subject",
    "IntermediarySubject": f"{_SUBJECT}intermediary-subject",
    "Codebase": f"{_SUBJECT}codebase",
    "RequestingMachine": f"{_SUBJECT}requesting-machine",
    "Resource": f"{_CATEGORY}resource",
    "Action": f"{_CATEGORY}action",
    "Environment": f"{_CATEGORY}environment",
}
_OF_JSON = {bool: "boolean", int: "integer", float: "double", str: "string"}


@dataclass(frozen=True, slots=True)
class Name:
    """The name of an attribute: its category, its id, and the short name of its data type."""

    category: str
    attribute: str
    data_type: str


@dataclass(frozen=True, slots=True)
class Request:
    """The attributes of a request: for each name the values, each with its issuer."""

    attributes: dict[Name, tuple[tuple[str | None, Any], ...]]

    def bag(self, name: Name, issuer: str | None) -> tuple[Any, ...]:
        """The values of an attribute; only those of `issuer` if it is given."""
        found = self.attributes.get(name, ())
        return tuple(value for by, value in found if issuer is None or by == issuer)


_Row = tuple[Name, str | None, Any]


def _gathered(rows: Iterator[_Row]) -> Request:
    attributes: dict[Name, list[tuple[str | None, Any]]] = defaultdict(list)
    for count, (name, issuer, value) in enumerate(rows):
        if count >= MAX_VALUES:
            raise InvalidInput(f"a request has more than {MAX_VALUES} values")
        attributes[name].append((issuer, value))
    return Request({name: tuple(values) for name, values in attributes.items()})


def request_of_xml(text: str) -> Request:
    """The request. Raises InvalidInput, with the position, if it cannot be read."""
    root = parse_tree(text)
    if root.tag != "Request":
        raise root.refused("a Request is expected")
    return _gathered(_xml_rows(root))


def _xml_rows(root: Element) -> Iterator[_Row]:
    seen: set[str] = set()
    for group in root.children:
        if group.tag != "Attributes":
            raise group.refused("not supported in a request")
        category = group.attribute("Category")
        if category in seen:
            raise group.refused("a category occurs twice; ask for each decision on its own")
        seen.add(category)
        for one in group.children:
            if one.tag != "Attribute":
                raise one.refused("not supported in a request")
            for value in one.children:
                data_type, read = typed_value(value)
                name = Name(category, one.attribute("AttributeId"), data_type.name)
                yield name, one.attributes.get("Issuer"), read


def typed_value(element: Element) -> tuple[DataType, Any]:
    """An AttributeValue with its type. Raises InvalidInput, with the position."""
    if element.tag != "AttributeValue" or element.children:
        raise element.refused("an AttributeValue with a text is expected")
    data_type = data_type_of(element)
    try:
        return data_type, read_value(data_type, element.text)
    except ValueError as error:
        raise element.refused(str(error)) from None


def data_type_of(element: Element) -> DataType:
    """The type that the attribute DataType names. Raises InvalidInput for an unknown one."""
    uri = element.attribute("DataType")
    if uri not in DATA_TYPES:
        raise element.refused(f"the data type {uri} is not supported")
    return DATA_TYPES[uri]


def request_of_json(text: str) -> Request:
    """The request in the JSON profile (version 1.1). Raises InvalidInput if it cannot be read."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"the text is longer than {MAX_CHARACTERS} characters")
    try:
        body = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        raise InvalidInput("the request is not JSON") from None
    return _gathered(_json_rows(_object(_object(body, "the text").get("Request"), "Request")))


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. A name that occurs twice is refused: readers differ in which value they take."""
    body = dict(pairs)
    if len(body) < len(pairs):
        raise InvalidInput("a name occurs twice in a JSON object")
    return body


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{what} must be a JSON object")
    return value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _json_groups(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, value in body.items():
        if key in ("ReturnPolicyIdList", "CombinedDecision"):
            continue
        if key != "Category" and key not in _SHORT:
            raise InvalidInput(f"{key[:40]!r} is not supported in a request")
        for one in _list(value):
            group = _object(one, key)
            yield _text(group, "CategoryId") if key == "Category" else _SHORT[key], group


def _text(body: dict[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise InvalidInput(f"{key} must be a text")
    return _SHORT.get(value, value) if key == "CategoryId" else value


def _json_rows(body: dict[str, Any]) -> Iterator[_Row]:
    seen: set[str] = set()
    for category, group in _json_groups(body):
        if category in seen:
            raise InvalidInput("a category occurs twice; ask for each decision on its own")
        seen.add(category)
        if not set(group) <= {"CategoryId", "Id", "Attribute"}:
            raise InvalidInput("a category has only CategoryId, Id and Attribute; no Content")
        for one in _list(group.get("Attribute", [])):
            attribute = _object(one, "Attribute")
            issuer = _text(attribute, "Issuer") if "Issuer" in attribute else None
            for value in _list(attribute.get("Value")):
                data_type, read = _json_value(attribute, value)
                yield Name(category, _text(attribute, "AttributeId"), data_type.name), issuer, read


def _json_value(attribute: dict[str, Any], value: Any) -> tuple[DataType, Any]:
    """A value with its type. Without DataType the JSON type says which it is."""
    if type(value) not in _OF_JSON:
        raise InvalidInput("Value must be a text, a number, true, false, or a list of them")
    if "DataType" in attribute:
        given = _text(attribute, "DataType")
        data_type = DATA_TYPES.get(given) or BY_NAME.get(given)
        if data_type is None:
            raise InvalidInput(f"the data type {given[:80]!r} is not supported")
    else:
        data_type = BY_NAME[_OF_JSON[type(value)]]
    try:
        return data_type, read_value(data_type, value if isinstance(value, str) else _plain(value))
    except ValueError as error:
        raise InvalidInput(str(error)) from None


def _plain(value: float | bool) -> str:
    return BY_NAME[_OF_JSON[type(value)]].write(value)

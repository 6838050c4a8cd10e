"""Expressions from XML. Their types are checked here, so evaluation meets no wrong type."""

from __future__ import annotations

from dataclasses import dataclass, field

from secadmin.xacml.expressions import (
    Call,
    Designator,
    Expression,
    Literal,
    Variable,
    is_over_bags,
    logic,
    over_bags,
)
from secadmin.xacml.functions import FUNCTIONS, PREFIX, Function, Kind
from secadmin.xacml.request import Name, data_type_of, typed_value
from secadmin.xacml.tree import Element

MAX_VARIABLES_DEEP = 10
_LOGIC = {f"{PREFIX}1.0:function:{name}": name for name in ("and", "or", "n-of")}


@dataclass(slots=True)
class Expressions:
    """Reads expressions. `definitions` are the policy's variables, read when first used."""

    definitions: dict[str, Element] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    reading: list[str] = field(default_factory=list)

    @classmethod
    def of_policy(cls, policy: Element) -> Expressions:
        """With the variables of a policy, each checked. Raises InvalidInput."""
        definitions: dict[str, Element] = {}
        for part in policy.children:
            if part.tag == "VariableDefinition":
                name = part.attribute("VariableId")
                if name in definitions:
                    raise part.refused("a variable is defined twice")
                definitions[name] = part
        reader = cls(definitions)
        for name, part in definitions.items():
            reader._variable(part, name)
        return reader

    def expression(self, element: Element) -> Expression:
        """An expression. Raises InvalidInput, with the position, for one that is not supported."""
        match element.tag:
            case "AttributeValue":
                return self.literal(element)
            case "AttributeDesignator":
                return self.designator(element)
            case "Apply":
                return self._call(element)
            case "VariableReference":
                return self._variable(element, element.attribute("VariableId"))
            case _:
                raise element.refused("not supported as an expression")

    def literal(self, element: Element) -> Literal:
        """A constant. Raises InvalidInput."""
        data_type, value = typed_value(element)
        return Literal(Kind(data_type.name), value)

    def designator(self, element: Element) -> Designator:
        """An attribute of the request. Raises InvalidInput; an AttributeSelector is refused."""
        if element.tag != "AttributeDesignator":
            raise element.refused("an AttributeDesignator is expected; XPath is not supported")
        name = data_type_of(element).name
        return Designator(
            Kind(name, bag=True),
            Name(element.attribute("Category"), element.attribute("AttributeId"), name),
            element.attributes.get("Issuer"),
            element.flag("MustBePresent"),
        )

    def function(self, element: Element, attribute: str) -> Function:
        """A function by its id. Raises InvalidInput for an unknown one."""
        name = element.attribute(attribute)
        if name not in FUNCTIONS:
            raise element.refused(f"the function {name} is not supported")
        return FUNCTIONS[name]

    def _call(self, element: Element) -> Expression:
        name = element.attribute("FunctionId")
        parts = [one for one in element.children if one.tag != "Description"]
        try:
            if is_over_bags(name):
                if not parts or parts[0].tag != "Function":
                    raise element.refused("its first argument must be a Function")
                function = self.function(parts[0], "FunctionId")
                made = over_bags(name, function, arguments := self._all(parts[1:]))
                check_constant(element, function, arguments)
                return made
            if name in _LOGIC:
                return logic(_LOGIC[name], self._all(parts))
        except ValueError as error:
            raise element.refused(str(error)) from None
        function, arguments = self.function(element, "FunctionId"), self._all(parts)
        if not function.fits(tuple(one.kind for one in arguments)):
            raise element.refused(f"the function {name} does not take arguments of these types")
        check_constant(element, function, arguments)
        return Call(function.gives, function, arguments)

    def _all(self, parts: list[Element]) -> tuple[Expression, ...]:
        return tuple(self.expression(one) for one in parts)

    def _variable(self, element: Element, name: str) -> Variable:
        if name in self.variables:
            return self.variables[name]
        if name not in self.definitions:
            raise element.refused(f"there is no variable {name}")
        if name in self.reading or len(self.reading) >= MAX_VARIABLES_DEEP:
            raise element.refused(
                f"variables form a circle, or refer to each other over {MAX_VARIABLES_DEEP} steps"
            )
        self.reading.append(name)
        body = self.expression(self.definitions[name].only())
        self.reading.pop()
        self.variables[name] = Variable(body.kind, body)
        return self.variables[name]


def check_constant(element: Element, function: Function, arguments: tuple[Expression, ...]) -> None:
    """Refuse a constant for which the function never has an answer. Raises InvalidInput."""
    if function.check is None or not arguments or not isinstance(arguments[0], Literal):
        return
    try:
        function.check(arguments[0].value)
    except ValueError as error:
        raise element.refused(str(error)) from None

"""Decisions of whole policies, from XML; what cannot be evaluated is refused when it is read."""

from __future__ import annotations

import json

import pytest

from catalog.errors import InvalidInput
from secadmin.xacml import Decision, decide, read_policy, request_of_json, request_of_xml
from tests.bad_inputs import xml_files, xml_names
from tests.unit.secadmin.xacml import policy_texts as x

THREE = "urn:oasis:names:tc:xacml:3.0:function:"
EQUAL = f'<Function FunctionId="{x.ONE}string-equal"/>'
MATCHES, ROLES = EQUAL.replace("equal", "regexp-match"), x.attribute()
FAILS = x.call("string-equal", x.call("string-one-and-only", x.attribute("no")), x.literal("a"))


def _decision(policy: str, **values: str) -> str:
    return decide(read_policy(policy), request_of_xml(x.request(**values))).decision.value


def _condition(condition: str, **values: str) -> str:
    return _decision(x.policy(x.rule("Permit", condition)), **values)


def test_a_target_selects() -> None:
    text = x.policy(x.rule(), aim=x.target("nurse"))
    assert _decision(text, role="nurse") == "Permit"
    assert _decision(text, role="guest") == "NotApplicable"
    assert _decision(text) == "NotApplicable"
    needed = x.policy(x.rule(), aim=x.target("nurse", needed=True))
    assert _decision(needed) == "Indeterminate{P}"
    assert _decision(x.policy(x.rule("Deny"), aim=x.target("a", needed=True))) == "Indeterminate{D}"


def test_a_missing_attribute_is_indeterminate_and_permits_nothing() -> None:
    assert _condition(FAILS) == "Indeterminate{P}"
    assert _decision(x.policy(x.rule("Deny", FAILS) + x.rule())) == "Indeterminate{DP}"
    permits = x.policy(x.rule("Deny", FAILS) + x.rule(), algorithm="permit-overrides")
    assert _decision(permits) == "Permit"


def test_logic_stops_at_what_decides() -> None:
    true, false = x.literal("true", "boolean"), x.literal("false", "boolean")
    assert _condition(x.call("or", true, FAILS)) == "Permit"
    assert _condition(x.call("or", false, FAILS)) == "Indeterminate{P}"
    assert _condition(x.call("or")) == "NotApplicable"
    assert _condition(x.call("and", false, FAILS)) == "NotApplicable"
    assert _condition(x.call("and", true, FAILS)) == "Indeterminate{P}"
    assert _condition(x.call("and")) == "Permit"
    count = [x.literal(str(number), "integer") for number in range(4)]
    assert _condition(x.call("n-of", count[0])) == "Permit"
    assert _condition(x.call("n-of", count[2], true, false, true, FAILS)) == "Permit"
    assert _condition(x.call("n-of", count[2], true, false)) == "NotApplicable"
    assert _condition(x.call("n-of", count[3], true, true)) == "Indeterminate{P}"


def test_functions_over_bags() -> None:
    abc = x.call("string-bag", *map(x.literal, "abc"))
    aa = x.call("string-bag", *map(x.literal, "aa"))
    none, a = x.call("string-bag"), x.literal("a")
    for name, first, second, permits in (
        (f"{THREE}any-of", a, abc, True),
        (f"{THREE}any-of", a, none, False),
        (f"{THREE}all-of", a, aa, True),
        (f"{THREE}all-of", a, abc, False),
        (f"{THREE}all-of", a, none, True),
        (f"{THREE}any-of-any", abc, aa, True),
        (f"{THREE}any-of-any", abc, none, False),
        (f"{x.ONE}all-of-any", aa, abc, True),
        (f"{x.ONE}all-of-any", abc, aa, False),
        (f"{x.ONE}any-of-all", abc, aa, True),
        (f"{x.ONE}any-of-all", abc, abc, False),
        (f"{x.ONE}all-of-all", aa, aa, True),
        (f"{x.ONE}all-of-all", abc, aa, False),
        (f"{x.ONE}all-of-all", none, aa, True),
    ):
        found = _condition(x.call(name, EQUAL, first, second))
        assert found == ("Permit" if permits else "NotApplicable"), name
    lower = f'<Function FunctionId="{x.ONE}string-normalize-to-lower-case"/>'
    mapped = x.call(f"{THREE}map", lower, x.call("string-bag", x.literal("A"), x.literal("B")))
    assert _condition(x.call("string-is-in", x.literal("b"), mapped)) == "Permit"


def test_regular_expressions() -> None:
    """In a target, in a condition, over a bag, and from the request."""
    target = x.target("^nurse[0-9]*$").replace("string-equal", "string-regexp-match")
    assert _decision(x.policy(x.rule(), aim=target), role="nurse7") == "Permit"
    assert _decision(x.policy(x.rule(), aim=target), role="a nurse") == "NotApplicable"
    over = x.call(f"{THREE}any-of", MATCHES, x.literal("^a"), ROLES)
    assert _condition(over, role="ab") == "Permit"
    own = x.call("string-one-and-only", x.attribute("pattern"))
    asked = x.call("string-regexp-match", own, x.literal("abc"))
    assert _condition(asked, pattern="b") == "Permit"
    assert _condition(asked, pattern="^b") == "NotApplicable"
    assert _condition(asked, pattern="(b") == "Indeterminate{P}"


def test_matching_long_texts_is_work() -> None:
    """As much as it takes, so no policy keeps the service busy."""
    long = x.literal("a" * 10_000)
    bag = x.call("string-bag", *[long] * 40)
    patterns = x.call("string-bag", *map(x.literal, "bcdefghijklmnopqrstuvwxyz"))
    both = x.call(f"{THREE}any-of-any", MATCHES, patterns, bag)
    assert _condition(both) == "Indeterminate{DP}"
    assert _condition(x.call(f"{THREE}any-of", MATCHES, x.literal("b"), bag)) == "NotApplicable"


def test_a_union_of_many_bags_is_no_work() -> None:
    bags = [
        x.call("string-bag", *[x.literal(f"{bag}-{one}") for one in range(50)])
        for bag in "abcdefgh"
    ]
    union = x.call("string-union", *bags)
    size = x.call("integer-equal", x.literal("400", "integer"), x.call("string-bag-size", union))
    assert _condition(size) == "Permit"


def test_an_error_over_bags_is_indeterminate() -> None:
    number = f'<Function FunctionId="{THREE}integer-from-string"/>'
    mapped = x.call(f"{THREE}map", number, x.attribute())
    condition = x.call("integer-is-in", x.literal("1", "integer"), mapped)
    assert _condition(condition, role="1") == "Permit"
    assert _condition(condition, role="one") == "Indeterminate{P}"


def test_only_one_applicable() -> None:
    both = x.policy(x.rule(), aim=x.target("a")) + x.policy(x.rule("Deny"), aim=x.target("b"))
    text = x.policy_set(
        both, "urn:oasis:names:tc:xacml:1.0:policy-combining-algorithm:only-one-applicable"
    )
    assert _decision(text, role="a") == "Permit"
    assert _decision(text, role="b") == "Deny"
    assert _decision(text, role="c") == "NotApplicable"
    twice = text.replace(">b<", ">a<")
    assert _decision(twice, role="a") == "Indeterminate{DP}"


def test_references_name_policies_that_were_read_before() -> None:
    text = x.policy_set("<PolicyIdReference>p</PolicyIdReference>")
    known = {"p": read_policy(x.policy(x.rule()))}
    result = decide(read_policy(text, known), request_of_xml(x.request()))
    assert result.decision is Decision.PERMIT
    with pytest.raises(InvalidInput, match=r"<PolicyIdReference>: there is no policy p"):
        read_policy(text)


def test_variables_are_evaluated_once_and_have_no_circles() -> None:
    def defined(name: str, body: str) -> str:
        return f'<VariableDefinition VariableId="{name}">{body}</VariableDefinition>'

    def used(name: str) -> str:
        return f'<VariableReference VariableId="{name}"/>'

    chain = defined("v0", x.literal("true", "boolean"))
    for number in range(1, 9):
        chain += defined(f"v{number}", x.call("and", *[used(f"v{number - 1}")] * 50))
    assert _decision(x.policy(chain + x.rule("Permit", used("v8")))) == "Permit"
    circle = defined("a", used("b")) + defined("b", used("a"))
    with pytest.raises(InvalidInput, match="circle"):
        read_policy(x.policy(circle))


def test_too_much_work_permits_nothing() -> None:
    many = x.call("string-bag", *[x.literal("a")] * 1100)
    work = x.call(f"{x.ONE}all-of-all", EQUAL, many, many)
    assert _condition(work) == "Indeterminate{DP}"
    assert (
        _decision(x.policy(x.rule("Deny", work) + x.rule(), algorithm="permit-overrides"))
        == "Indeterminate{DP}"
    )


REFUSED = {
    "unknown function": (x.policy(x.rule("Permit", x.call("no"))), "<Apply>: the function"),
    "regular expression": (
        x.policy(x.rule("Permit", x.call("string-regexp-match", x.literal("(a"), x.literal("a")))),
        "<Apply>: the regular expression ends where it needs a closing parenthesis",
    ),
    "regular expression over a bag": (
        x.policy(x.rule("Permit", x.call(f"{THREE}any-of", MATCHES, x.literal("a{3,2}"), ROLES))),
        "<Apply>: .* a count whose end is below its beginning",
    ),
    "regular expression in a target": (
        x.policy(x.rule(), aim=x.target("a[").replace("string-equal", "string-regexp-match")),
        "<Match>: .* needs ]",
    ),
    "optional function": (
        x.policy(x.rule("Permit", x.call(f"{THREE}xpath-node-count", x.literal("a")))),
        "xpath-node-count is not supported",
    ),
    "wrong types": (
        x.policy(x.rule("Permit", x.call("string-equal", x.literal("a"), x.attribute()))),
        "does not take arguments of these types",
    ),
    "no boolean": (x.policy(x.rule("Permit", x.literal("a"))), "<Condition>: .* boolean"),
    "no value": (x.policy(x.rule("Permit", x.literal("a", "integer"))), "'a' is not a value"),
    "XPath": (x.policy(x.rule("Permit", "<AttributeSelector/>")), "<AttributeSelector>"),
    "unknown algorithm": (x.policy(x.rule(), algorithm="u:n"), "algorithm u:n"),
    "unknown type": (x.policy(x.rule("Permit", x.literal("a", "float"))), "#float"),
    "two conditions": (
        x.policy(x.rule(inside="<Condition><X/></Condition>" * 2)),
        "at most one Condition",
    ),
    "no target": (x.policy("").replace("<Target/>", ""), "exactly one Target"),
    "no variable": (
        x.policy(x.rule("Permit", '<VariableReference VariableId="v"/>')),
        "no variable v",
    ),
    "other namespace": ("<Policy/>", "namespace"),
    "entities": ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "not allowed"),
    "too deep": (x.policy("<Rule>" * 70 + "</Rule>" * 70), "inside each other"),
    "too long": (" " * (1024 * 1024 + 1), "longer than"),
    "not XML": ("<Policy", "not well-formed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_evaluated_is_refused(case: str) -> None:
    text, message = REFUSED[case]
    with pytest.raises(InvalidInput, match=message):
        read_policy(text)


@pytest.mark.parametrize("name", xml_names())
def test_bad_xml_is_refused(name: str) -> None:
    for read in (read_policy, request_of_xml):
        with pytest.raises(InvalidInput):
            read(xml_files()[name])


def test_an_error_has_its_place() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_policy(x.policy("\n\n  <Nothing/>"))
    assert caught.value.position is not None
    assert (caught.value.position.line, caught.value.position.column) == (3, 3)


def test_a_json_request_is_the_same_as_an_xml_one() -> None:
    body = {
        "Request": {
            "AccessSubject": {
                "Attribute": [
                    {"AttributeId": "role", "Value": ["a", "b"]},
                    {"AttributeId": "age", "Value": "7", "DataType": "integer"},
                ]
            },
            "Category": [
                {
                    "CategoryId": "c",
                    "Attribute": [
                        {"AttributeId": "n", "Value": 1.5},
                        {"AttributeId": "t", "Value": True},
                    ],
                }
            ],
        }
    }
    subject = (
        f'<Attribute AttributeId="role">{x.literal("a")}{x.literal("b")}</Attribute>'
        f'<Attribute AttributeId="age">{x.literal("7", "integer")}</Attribute></Attributes>'
        f'<Attributes Category="c"><Attribute AttributeId="n">{x.literal("1.5", "double")}'
        f'</Attribute><Attribute AttributeId="t">{x.literal("true", "boolean")}</Attribute>'
    )
    xml = x.request().replace("</Attributes>", f"{subject}</Attributes>")
    assert request_of_json(json.dumps(body)) == request_of_xml(xml)


@pytest.mark.parametrize(
    "body",
    [
        *("", "[]", "{}", '{"Request": 1}', '{"Request": {"MultiRequests": {}}}', "[" * 100_000),
        '{"Request": {"Resource": {"Content": "<a/>"}}}',
        '{"Request": {"Resource": [{}, {}]}}',
        '{"Request": {"Resource": {}, "Resource": {}}}',
        '{"Request": {"Resource": {"Attribute": {"AttributeId": "a", "Value": {}}}}}',
        '{"Request": {"Resource": {"Attribute": {"AttributeId": 1, "Value": "a"}}}}',
        '{"Request": {"Action": {"Attribute": {"AttributeId": "", "Value": 9223372036854775808}}}}',
        json.dumps(
            {"Request": {"Resource": {"Attribute": {"AttributeId": "a", "Value": [1] * 1001}}}}
        ),
    ],
)
def test_a_json_request_that_cannot_be_read_is_refused(body: str) -> None:
    with pytest.raises(InvalidInput):
        request_of_json(body)

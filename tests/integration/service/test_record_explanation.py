"""Why a user gets a record, or does not: from the header `label` of the record to words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import select

from catalog.category_kind import CategoryKind
from catalog.label import Label
from catalog.models import CategoryRow, Object
from secadmin.control.platform import Platform
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, NewUser, add_stream

pytestmark = embedded_only


@dataclass
class Two:
    """An output over two streams, and a user that may read one of them."""

    admin: Api
    platform: Platform
    read: str
    hidden: str
    output: str
    role: str
    ann: Api

    def bit(self, stream: str, kind: CategoryKind = CategoryKind.SOURCE) -> int:
        with self.platform.catalog.read() as session:
            own = select(CategoryRow.bit).join(Object, Object.id == CategoryRow.stream_id)
            return session.scalars(own.where(Object.name == stream, CategoryRow.kind == kind)).one()

    def explained(self, *bits: int, user: str | None = None) -> Any:
        label = Label.of(*bits).to_wire()
        path = f"/outputs/{self.output}/explanation"
        return self.admin.get(path, user=user or self.ann.user, label=label)


@pytest.fixture
def two(admin: Api, platform: Platform, new_user: NewUser, fresh: Callable[[str], str]) -> Two:
    read, hidden, output, role = fresh("s"), fresh("s"), fresh("o"), fresh("R")
    for stream in (read, hidden):
        add_stream(admin, stream, fresh("schema"))
    text = f"SELECT * FROM {read} UNION ALL SELECT * FROM {hidden}"
    admin.post("/queries", name=fresh("q"), language="sql", text=text, output=output)
    ann = new_user(role)
    for kind, name, permissions in (
        ("stream", read, ["VIEW OBJECT", "READ TUPLE"]),
        ("output", output, ["VIEW OBJECT", "SUBSCRIBE"]),
    ):
        admin.post("/grants", role=role, permissions=permissions, kind=kind, name=name)
    return Two(admin, platform, read, hidden, output, role, ann)


def test_a_record_is_explained_category_by_category(two: Two) -> None:
    one, other = two.bit(two.read), two.bit(two.hidden)
    assert two.explained(one) == {
        "visible": True,
        "weak": False,
        "categories": [
            {
                "means": f"tuples of stream {two.read}",
                "given_by": f"READ TUPLE on stream {two.read}",
                "held": True,
            }
        ],
        "obstacles": [],
    }
    both = two.explained(one, other)
    assert not both["visible"] and [each["held"] for each in both["categories"]] == [True, False]
    two.admin.put(f"/outputs/{two.output}/semantics", weak=True)
    weak = two.explained(one, other)
    assert weak["visible"] and weak["weak"]
    assert not two.explained(one, other, user="admin")["visible"], "who administers reads nothing"


def test_what_does_not_depend_on_the_label_is_an_obstacle(two: Two) -> None:
    one = two.bit(two.read)
    body = {"role": two.role, "permissions": ["SUBSCRIBE"], "kind": "output", "name": two.output}
    two.admin.post("/revocations", **body)
    found = two.explained(one)
    assert not found["visible"] and all(each["held"] for each in found["categories"])
    assert found["obstacles"] == ["no role of the user holds SUBSCRIBE on the output"]
    two.admin.post("/grants", **body)
    policy = {"policy": "p", "role": two.role, "rows": "price > 5"}
    two.admin.post(f"/streams/{two.read}/policies", **policy)
    assert "policies" in two.explained(one)["obstacles"][0]
    two.admin.delete(f"/streams/{two.read}/policies/p")
    two.admin.post(f"/users/{two.ann.user}/lock")
    assert two.explained(one)["obstacles"][0] == "the user is locked"


def test_companies_and_role_expressions_are_told_in_words(
    two: Two, fresh: Callable[[str], str]
) -> None:
    of, stream, schema = fresh("COI"), fresh("s"), fresh("schema")
    two.admin.post("/conflict-classes", name=of, companies=["Company1"])
    rules = {of: "symbol"}
    add_stream(two.admin, stream, schema, company_rules=rules, label_rule=f"'{two.role} | ADMIN'")
    with two.platform.catalog.read() as session:
        rows = session.execute(
            select(CategoryRow.kind, CategoryRow.bit)
            .join(Object, Object.id == CategoryRow.stream_id)
            .where(Object.name.in_([of, stream]))
        ).all()
    bits = {row.kind: row.bit for row in rows}
    two.admin.put(f"/conflict-classes/{of}/levels/{two.ann.user}", part="Company1")
    kinds = (CategoryKind.ROLE_CLAUSE, CategoryKind.COMPANY, CategoryKind.TRUSTED)
    found = two.explained(*(bits[kind] for kind in kinds))["categories"]
    told = {each["means"]: (each["given_by"], each["held"]) for each in found}
    roles = ", ".join(sorted(["ADMIN", two.role]))
    assert told == {
        f"a condition of role expressions of stream {stream}": (f"a role: {roles}", True),
        f"the company Company1 of {of}": (f"the level Company1 or T in {of}", True),
        f"several companies of {of}": (f"the level T in {of}", False),
    }


def test_a_hidden_stream_has_no_name(two: Two, new_user: NewUser) -> None:
    """Who manages users need not know which streams there are."""
    manager = new_user("MANAGER")
    for kind, name, permissions in (
        ("system", "system", ["CHANGE SYSTEM"]),
        ("output", two.output, ["VIEW OBJECT"]),
    ):
        two.admin.post("/grants", role="MANAGER", permissions=permissions, kind=kind, name=name)
    path = f"/outputs/{two.output}/explanation"
    label = Label.of(two.bit(two.read), 9_999).to_wire()
    answer = manager.get(path, user=two.ann.user, label=label)
    assert [each["means"] for each in answer["categories"]] == [
        "tuples of a stream that you may not view",
        "a category that is in no label",
    ]
    assert not answer["visible"] and two.read not in str(answer)


@pytest.mark.parametrize("label", ["", "x", "1,", "+1", "1" * 30_000, ",".join(["-1"] * 200)])
def test_what_is_no_label_is_refused(two: Two, label: str) -> None:
    params = {"user": two.ann.user, "label": label}
    response = two.admin.call("GET", f"/outputs/{two.output}/explanation", params=params)
    assert response.status_code == 422, response.text

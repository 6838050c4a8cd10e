"""Which permissions exist where, and the names that people write."""

import pytest

from catalog.errors import InvalidInput
from catalog.names import (
    check_object_name,
    check_query_name,
    check_role_name,
    check_user_name,
    output_of,
    space_in,
)
from catalog.permission import (
    APPLIES,
    OWNER_HOLDS,
    ObjectKind,
    Permission,
    check_applies,
    parse_permission,
)

DATA = {Permission.READ_TUPLE, Permission.READ_AGGREGATE, Permission.SEND}


def test_each_kind_has_its_permissions() -> None:
    assert set(APPLIES) == set(ObjectKind)
    assert set().union(*APPLIES.values()) == set(Permission)


def test_rights_to_data_exist_on_streams_only_and_owning_never_gives_them() -> None:
    assert not DATA & OWNER_HOLDS
    for kind, permissions in APPLIES.items():
        assert (permissions & DATA) == (DATA if kind is ObjectKind.STREAM else set())


@pytest.mark.parametrize("kind", ObjectKind)
def test_what_does_not_exist_there_is_refused(kind: ObjectKind) -> None:
    for permission in Permission:
        if permission in APPLIES[kind]:
            check_applies(permission, kind)
        else:
            with pytest.raises(InvalidInput, match="does not exist on"):
                check_applies(permission, kind)


@pytest.mark.parametrize("text", ["read tuple", "READ_TUPLE", " Read-Tuple "])
def test_permissions_are_read(text: str) -> None:
    assert parse_permission(text) is Permission.READ_TUPLE


@pytest.mark.parametrize("text", ["", "ADD", "READ", "READ TUPLE; DROP", "*", "ALL"])
def test_other_words_are_no_permission(text: str) -> None:
    with pytest.raises(InvalidInput, match="unknown permission"):
        parse_permission(text)


@pytest.mark.parametrize("name", ["a.b", "", "1a", "a b", "a" * 64, "a/b", "a\n", "ä", "a\0"])
def test_unusable_object_names(name: str) -> None:
    with pytest.raises(InvalidInput, match="not a usable object name"):
        check_object_name(name)


@pytest.mark.parametrize("name", ["", " A", "A ", "A\n", "(platform)", "A" * 64, "A.B"])
def test_unusable_role_names(name: str) -> None:
    with pytest.raises(InvalidInput, match="not a usable role name"):
        check_role_name(name)


@pytest.mark.parametrize("name", ["", "(nobody)", "a b", "a\n", "a" * 64, "ä"])
def test_unusable_user_names(name: str) -> None:
    with pytest.raises(InvalidInput, match="not a usable user name"):
        check_user_name(name)


def test_usable_names() -> None:
    assert check_object_name("in-1_x") == "in-1_x"
    assert check_role_name("INFO PROVIDER") == "INFO PROVIDER"
    assert check_user_name("al.b@example.org") == "al.b@example.org"


def test_a_query_s_name_may_be_in_the_space_of_a_role() -> None:
    for name, role in (("rising", None), ("DESK.rising", "DESK"), ("INFO DESK.up-1", "INFO DESK")):
        assert (check_query_name(name), space_in(name)) == (name, role)
    assert output_of("INFO DESK.up-1") == check_object_name("INFO-DESK-up-1")
    for wrong in ("", ".", "DESK.", ".rising", "A.B.c", "DESK.1", "D" * 40 + "." + "r" * 40):
        with pytest.raises(InvalidInput):
            check_query_name(wrong)

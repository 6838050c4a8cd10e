"""ACLs by which a broker shows how far it has applied the cluster's changes."""

from __future__ import annotations

from secadmin.kafka.acl_filter import AclFilter
from secadmin.kafka.milestones import NOBODY, Milestones


def test_each_is_another_one() -> None:
    milestones = Milestones()
    assert milestones.new().name != milestones.new().name


def test_what_is_passed_is_deleted_once_and_at_first_that_of_services_that_ended() -> None:
    milestones = Milestones()
    first = milestones.take_passed()
    assert first == [AclFilter(principal=NOBODY)]
    assert milestones.take_passed() == []
    own = AclFilter.exactly(milestones.new())
    milestones.add_passed(own)
    milestones.add_passed(*first)
    assert milestones.take_passed() == [own, *first]

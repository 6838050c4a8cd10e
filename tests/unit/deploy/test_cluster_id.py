"""The cluster's id is an argument of Kafka's tools."""

import re

from deploy.broker_format import new_cluster_id


def test_it_is_never_taken_for_an_option() -> None:
    """One in 64 random ids starts with a dash."""
    ids = {new_cluster_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", text) for text in ids)

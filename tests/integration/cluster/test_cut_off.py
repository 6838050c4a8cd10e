"""A broker that has lost its controllers, and not its clients."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from confluent_kafka import Producer

from tests.integration.cluster.hostile import POLLING, Hostile
from tests.integration.cluster.kafka_cluster import PATIENCE_S, KafkaCluster
from tests.integration.cluster.steps import (
    FILLER,
    asking,
    count_as_dead,
    expect_shut_out,
    follower_of,
    hostiles,
    made_by_the_others,
    producer_of,
    withdrawn,
    write,
)
from tests.integration.kafka.conftest import Parts, make_parts
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.slow]


def test_a_broker_that_lost_its_controllers_serves_by_its_old_acls(
    whole: KafkaCluster, parts: Parts, producer: Producer
) -> None:
    """What the left out replica is for: it has new records, and does not know of the deletion."""
    topic = parts.new_topic()
    write(producer, topic, "earlier")
    credentials = parts.new_reader(topic)
    cut = follower_of(whole, topic)
    with hostiles(whole, credentials, topic) as clients:
        whole.cut_off(cut)
        try:
            others = {1, 2, 3} - {cut.node.id}
            count_as_dead(whole, cut)
            proven = parts.acls.revoke_topics({topic: [credentials.username]})
            assert set(proven) == others
            write(producer, topic, "later")
            (at_the_cut,) = (
                each for each in clients if each.member is cut and each.limits is POLLING
            )
            wait_until(at_the_cut.leaks, "the cut-off broker serves it", PATIENCE_S)
            withdrawn(parts, topic, credentials.username)
            write(producer, topic, "afterwards")
            # It may even get its replica again: it does not hear of that before the deletion.
            every = {number: member.platform for number, member in whole.members.items()}
            parts.replicas.replenish(every)
            write(producer, topic, "afterwards, too")
            time.sleep(3)
            assert at_the_cut.served > time.monotonic() - 1, "it is still served what is older"
            assert b"afterwards" not in at_the_cut.records
        finally:
            whole.mend(cut)
        whole.await_all()
        wait_until(at_the_cut.is_refused, "it is refused", PATIENCE_S)
        assert b"afterwards" not in at_the_cut.records


def test_a_broker_that_never_knew_of_a_right_proves_nothing(
    whole: KafkaCluster, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows neither the reader nor the topic, and so it lists no right, and no topic to fence.

    When it is back, it learns of the right before it learns that it is gone.
    """
    cut = whole.members[1]
    every = {number: member.platform for number, member in whole.members.items()}
    whole.cut_off(cut)
    try:
        count_as_dead(whole, cut)
        # The one that is cut off would carry out what it is asked for when it is back. A grant
        # that comes late is for another test.
        with closing(make_parts(asking(whole, {2, 3}))) as asking_others:
            topic = made_by_the_others(asking_others.new_topic)
            credentials = made_by_the_others(lambda: asking_others.new_reader(topic))
            producer = producer_of(asking_others.settings)
        write(producer, topic, "earlier")
        assert topic not in whole.view_of(cut, topic).topics
        # As it tells itself: it counts all as alive.
        monkeypatch.setattr("secadmin.kafka.acls.live_brokers", lambda _: every)
        at_the_cut = Hostile(whole, cut, credentials, topic, POLLING)
        with hostiles(whole, credentials, topic, but=cut.node.id) as clients:
            at_the_cut.start()
            assert cut.node.id not in parts.acls.revoke_topics({topic: []})
            withdrawn(parts, topic, credentials.username)
            write(producer, topic, "later", FILLER)
            expect_shut_out(clients, at={2, 3})
            whole.mend(cut)
            whole.await_all()
            wait_until(at_the_cut.is_refused, "it is refused", PATIENCE_S)
            assert not at_the_cut.leaks()
        at_the_cut.close()
    finally:
        whole.mend(cut)
    whole.await_all()

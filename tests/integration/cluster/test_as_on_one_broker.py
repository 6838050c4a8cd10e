"""What holds on one broker holds on three: the same tests, and only the settings differ."""

from __future__ import annotations

import pytest

from tests.integration.kafka.test_fence import (
    producer,
    test_a_busy_topic,
    test_a_hundred_topics_at_once,
    test_many_parked_fetches_at_once,
    test_nothing_arrives_after_a_withdrawal,
    test_records_stamped_ahead,
    test_who_keeps_the_right_keeps_reading,
    test_without_the_fence_a_parked_fetch_leaks,
)
from tests.integration.kafka.test_parked import (
    lane,
    test_records_keep_their_partition_and_order_and_come_once,
    test_two_services_share_the_work,
    test_what_was_not_decided_is_read_again,
    topics,
)
from tests.integration.kafka.test_reconcile import (
    kept,
    reconciler,
    test_a_reader_that_is_not_wanted_is_fenced_off,
    test_a_reader_without_topics_keeps_its_groups,
    test_a_wildcard_is_taken_away,
    test_what_an_engine_has_beside_its_rights_is_taken_away,
    test_what_is_granted_meanwhile_stays,
    test_what_is_revoked_meanwhile_is_not_added,
    test_what_is_wanted_and_missing_is_added,
)
from tests.integration.kafka.test_rights import (
    test_a_bare_fetch_of_the_own_topic_is_let_in,
    test_a_pattern_finds_what_the_subscriber_may_read,
    test_a_sender_cannot_write_other_topics,
    test_a_sender_is_not_told_of_anothers_topic,
    test_a_sender_that_lost_its_topic_cannot_write,
    test_a_sender_writes_and_cannot_read,
    test_a_sender_writes_in_transactions_of_its_own,
    test_a_subscriber_cannot_create_topics,
    test_a_subscriber_cannot_read_other_topics,
    test_a_subscriber_cannot_read_the_offsets_of_others,
    test_a_subscriber_cannot_use_the_group_of_another,
    test_a_subscriber_cannot_write,
    test_a_subscriber_reads_its_topic_with_its_own_group,
    test_a_transaction_that_is_open_when_the_topic_is_taken_is_not_committed,
    topic,
)

__all__ = [
    "kept",
    "lane",
    "producer",
    "reconciler",
    "test_a_bare_fetch_of_the_own_topic_is_let_in",
    "test_a_busy_topic",
    "test_a_hundred_topics_at_once",
    "test_a_pattern_finds_what_the_subscriber_may_read",
    "test_a_reader_that_is_not_wanted_is_fenced_off",
    "test_a_reader_without_topics_keeps_its_groups",
    "test_a_sender_cannot_write_other_topics",
    "test_a_sender_is_not_told_of_anothers_topic",
    "test_a_sender_that_lost_its_topic_cannot_write",
    "test_a_sender_writes_and_cannot_read",
    "test_a_sender_writes_in_transactions_of_its_own",
    "test_a_subscriber_cannot_create_topics",
    "test_a_subscriber_cannot_read_other_topics",
    "test_a_subscriber_cannot_read_the_offsets_of_others",
    "test_a_subscriber_cannot_use_the_group_of_another",
    "test_a_subscriber_cannot_write",
    "test_a_subscriber_reads_its_topic_with_its_own_group",
    "test_a_transaction_that_is_open_when_the_topic_is_taken_is_not_committed",
    "test_a_wildcard_is_taken_away",
    "test_many_parked_fetches_at_once",
    "test_nothing_arrives_after_a_withdrawal",
    "test_records_keep_their_partition_and_order_and_come_once",
    "test_records_stamped_ahead",
    "test_two_services_share_the_work",
    "test_what_an_engine_has_beside_its_rights_is_taken_away",
    "test_what_is_granted_meanwhile_stays",
    "test_what_is_revoked_meanwhile_is_not_added",
    "test_what_is_wanted_and_missing_is_added",
    "test_what_was_not_decided_is_read_again",
    "test_who_keeps_the_right_keeps_reading",
    "test_without_the_fence_a_parked_fetch_leaks",
    "topic",
    "topics",
]

pytestmark = [pytest.mark.long, pytest.mark.slow]

"""A class that is closed while engines run: its topic goes, and the other classes miss nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from catalog.clearance import Clearance
from catalog.models import Access, AccessTopic, DeliveryClass, TopicFault, User
from catalog.passwords import Passwords
from catalog.plan import Source
from secadmin.control.anchors import Anchors
from secadmin.control.open_classes import close_idle, delete_closed
from secadmin.control.platform import Platform
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import Feed, Plane, tuple_at, values

Until = Callable[[Callable[[], bool]], None]


class Topics:
    """Deletes topics of the real broker, and locks none: one service is at work."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def delete_topics(self, topics: Sequence[str]) -> None:
        for future in self._plane.admin.delete_topics(list(topics)).values():
            future.result()

    @contextmanager
    def lock(self, topics: Collection[str], wait: timedelta) -> Iterator[None]:
        yield


def let_subscribe(deployment: Deployment, topic: str) -> None:
    """Let a subscription have the class of that topic."""
    with deployment.catalog.change("test") as change:
        own = select(DeliveryClass).where(DeliveryClass.topic == topic)
        found = change.session.scalars(own).one()
        access = Access(
            kind="output",
            user_id=change.session.scalars(select(User.id)).one(),
            object_id=found.output_id,
            principal="output-held",
            created_at=change.now,
        )
        access.topics.append(AccessTopic(topic=topic, delivery_class=found))
        change.session.add(access)
        change.audit("subscribe", "test")


# The service's part is in service/test_open_classes.py, how a run changes in test_side_run.py.
@pytest.mark.long
@pytest.mark.slow
def test_a_closed_class_leaves_the_run_and_its_topic_goes(
    deployment: Deployment, until: Until
) -> None:
    plane, catalog = deployment.plane, deployment.catalog
    stream = plane.stream(0)
    run = plane.query(Source(stream.relation), Clearance.of(0), Clearance.of(0, 1))
    held, idle = (each.topic for each in run.classes)
    deployment.start()
    deployment.add(stream, run)
    let_subscribe(deployment, held)
    plane.send(stream, tuple_at(1, price=0))
    assert len(plane.read(held, 1)) == len(plane.read(idle, 1)) == 1
    deployment.await_running()

    topics: Any = Topics(plane)
    parts: Any = (catalog, topics, topics, Passwords(cost=4), "", "", catalog.clock, Anchors([]))
    platform = replace(Platform(*parts), idle_class=timedelta(0))
    feed = Feed(plane, stream.senders[0].topic, first=1)
    close_idle(platform)

    def is_gone() -> bool:
        delete_closed(platform)
        return idle not in plane.admin.list_topics(timeout=10).topics

    until(is_gone)
    deployment.await_running()
    count = feed.count
    until(lambda: len(plane.read(held, 0)) > count)
    everything = list(range(1 + feed.end()))
    out = [each["price"] for each in values(plane.read(held, len(everything)))]
    assert out == everything, "none lost, none repeated"
    with catalog.read() as session:
        assert session.scalars(select(TopicFault)).all() == []
    assert deployment.messages() == set()

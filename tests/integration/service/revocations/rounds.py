"""Rounds of revocations against the clients of a team, while data flow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random

from secadmin.kafka.fence import FenceNotProven
from tests.integration.service.revocations.ledger import Reception
from tests.integration.service.revocations.party import ClientsOf, Party
from tests.integration.service.revocations.surroundings import Surroundings
from tests.integration.service.revocations.team import Member, Revocation, Team
from tests.integration.service.revocations.waiting import wait_until
from tests.integration.service.revocations.watching_client import WatchingClient

_LONGEST_PAUSE_S = 0.1


@dataclass
class Rounds:
    """Takes rights from a team, looks at its clients, and gives the rights back, over and over."""

    around: Surroundings
    team: Team
    random: Random
    clients_of: ClientsOf
    parties: dict[str, Party] = field(default_factory=dict)
    retired: list[Party] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    unproven: int = 0

    def begin(self) -> None:
        """Let every member subscribe."""
        for member in self.team.members:
            self._subscribe(member)
        self._wait_ready(self.parties.values())

    def play(self) -> None:
        """One round: one revocation, or two at once."""
        revocations = self.team.draw(self.random)
        self.done += [revocation.name for revocation in revocations]
        hit = {member.principal for member in _members(revocations)}
        before = self._topics()
        for principal in hit:
            self.parties[principal].call_begins()
        pauses = [self.random.uniform(0, _LONGEST_PAUSE_S) for _ in revocations]
        with ThreadPoolExecutor(len(revocations)) as pool:
            moments = list(
                pool.map(lambda one, pause: self._take(one, pause, before), revocations, pauses)
            )
        for topic in {topic for principal in hit for topic in before[principal]}:
            self.around.flow.fill(topic)
        began, returned = min(m[0] for m in moments), max(m[1] for m in moments)
        for principal in hit:
            self.parties[principal].wait_shut_out(began, returned)
        leaks = self.leaks(hit)
        assert not leaks, f"leaked after {[one.name for one in revocations]}: {leaks}"
        self._give_back(revocations)
        self._wait_ready(self.parties[one.principal] for one in _members(revocations))

    def end(self) -> None:
        """Let all clients end."""
        every = [*self.parties.values(), *self.retired]
        for party in every:
            party.stop()
        for party in every:
            party.join()

    def clients(self) -> list[WatchingClient]:
        """All clients that there have been."""
        every = [*self.parties.values(), *self.retired]
        return [client for party in every for client in party.clients]

    def leaks(self, principals: set[str] | None = None) -> list[Reception]:
        """What reached clients, of all principals or of these, although it must not."""
        every = [*self.parties.values(), *self.retired]
        return [
            leak
            for party in every
            if principals is None or party.principal in principals
            for leak in party.leaks(self.around.ledger, self.around.flow.started)
        ]

    def _take(
        self, revocation: Revocation, pause: float, before: dict[str, set[str]]
    ) -> tuple[float, float]:
        """The call, at a random moment; when it began and when it returned."""
        time.sleep(pause)
        began = time.monotonic()
        self._carry_out(revocation.take)
        returned = time.monotonic()
        after = self._topics()
        for principal in (member.principal for member in revocation.members):
            assert before[principal] - after[principal], revocation.name
            self._note(principal, before[principal], after[principal], (began, returned))
        return began, returned

    def _carry_out(self, call: Callable[[], object]) -> None:
        """Call; where the fence could not be proven the call has failed, and it is put up later."""
        try:
            call()
        except AssertionError as failed:
            if FenceNotProven.title not in str(failed):
                raise
            self.unproven += 1
            wait_until(self._align, "the fence")

    def _align(self) -> bool:
        try:
            # All of them: what is pending and under way in another team's call would be left to it.
            self.around.platform.alignment.align(self.around.flow.started)
        except FenceNotProven:
            return False
        return True

    def _give_back(self, revocations: Sequence[Revocation]) -> None:
        # The team's rights first: who logs in again finds them.
        for revocation in sorted(revocations, key=lambda one: one.ends):
            self._noted(revocation.give_back)
        for member in _members(one for one in revocations if one.ends):
            party = self.parties.pop(member.principal)
            party.stop()
            self.retired.append(party)
            self._subscribe(member)
        for member in _members(one for one in revocations if not one.ends):
            if member.principal in self.parties:
                self._begin_anew(member)

    def _begin_anew(self, member: Member) -> None:
        """Subscribe again where what was given back comes in a topic that the clients read not."""
        party = self.parties[member.principal]
        if party.subscription.topic in self._topics()[member.principal]:
            return
        party.stop()
        self.retired.append(party)
        self._noted(lambda: member.session.delete(f"/accesses/{member.principal}"))
        del self.parties[member.principal]
        self._subscribe(member)

    def _noted(self, give: Callable[[], object]) -> None:
        """A call that gives, or ends a subscription; what each principal has lost or got by it."""
        before, began = self._topics(), time.monotonic()
        self._carry_out(give)
        returned, after = time.monotonic(), self._topics()
        for principal in self.parties:
            old, new = before.get(principal, set()), after.get(principal, set())
            self._note(principal, old, new, (began, returned))

    def _note(
        self, principal: str, old: set[str], new: set[str], call: tuple[float, float]
    ) -> None:
        began, returned = call
        for topic in old - new:
            self.around.ledger.lost(principal, topic, returned)
        for topic in new - old:
            self.around.ledger.regained(principal, topic, began)
            self.around.flow.open(topic)

    def _subscribe(self, member: Member) -> None:
        objects = self.team.objects
        member.output = self.random.choice(objects.outputs)
        own = self.around.subscribe(member.session, member.output)
        member.principal = own.credentials.username
        end = self.around.platform.kafka.end_offsets([own.topic])[own.topic]["0"]
        party = Party(own, self.clients_of(own, end, self.random))
        self.parties[member.principal] = party
        party.start()

    def _wait_ready(self, parties: Iterable[Party]) -> None:
        since = time.monotonic()
        for party in parties:
            party.wait_ready(since)
        # Their requests have been taken up when the broker has answered a later one.
        self.around.platform.kafka.end_offsets(sorted(self.around.flow.started))

    def _topics(self) -> dict[str, set[str]]:
        """The topics that the catalog lets each principal of the team reach."""
        names = [member.principal for member in self.team.members]
        return self.around.topics(names)


def _members(revocations: Iterable[Revocation]) -> list[Member]:
    """Those that are hit, each once."""
    return list({id(one): one for each in revocations for one in each.members}.values())

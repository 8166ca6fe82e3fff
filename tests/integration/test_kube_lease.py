"""Leader election on a real Lease: who works when, and never two at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from berth.kube.client import ApiClient
from berth.kube.leader_election import LeaderElection
from berth.kube.lease import LeadershipLost, LeaseLock, LeaseTiming
from berth.kube.resources import LEASES
from hack.localcluster import LocalCluster
from hack.localcluster.components import Options
from tests.support.kube import client_of, paused, running, until

TIMING = LeaseTiming(duration=6.0, renew_deadline=5.0, retry_period=0.3)
SILENT = LeaseTiming(duration=12.0, renew_deadline=2.0, retry_period=0.3)
"""Who hears nothing ends long before another may begin, on a busy machine too."""


class Candidate:
    """One competitor and the times at which it worked."""

    def __init__(self, client: ApiClient, identity: str, *, namespace: str, timing: LeaseTiming = TIMING) -> None:
        self.identity = identity
        self.election = LeaderElection(
            client.connection, name="berth-test", namespace=namespace, identity=identity, timing=timing
        )
        self.began: list[float] = []
        self.ended: list[float] = []
        self.clean_up = 0.0

    @property
    def works(self) -> bool:
        return len(self.began) > len(self.ended)

    async def work(self) -> None:
        self.began.append(time.monotonic())
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(self.clean_up)
            self.ended.append(time.monotonic())

    async def run(self) -> None:
        await self.election.run(self.work)


async def spec(client: ApiClient, namespace: str) -> dict[str, Any]:
    lease = await client.get(LEASES, "berth-test", namespace=namespace)
    found: dict[str, Any] = lease["spec"]
    return found


def looked(candidate: Candidate) -> bool:
    lock = candidate.election._lock
    return lock is not None and lock._lease is not None


async def stopped(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_one_works_and_a_clean_stop_hands_over_at_once(cluster: LocalCluster, namespace: str) -> None:
    slow = LeaseTiming(duration=60.0, renew_deadline=40.0, retry_period=0.2)
    async with client_of(cluster) as client:
        first = Candidate(client, "first", namespace=namespace, timing=slow)
        second = Candidate(client, "second", namespace=namespace, timing=slow)
        async with running(first.run(), second.run()) as tasks:
            await until(lambda: first.works or second.works, what="one works")
            leader, follower = (first, second) if first.works else (second, first)
            assert not follower.began
            held = await spec(client, namespace)
            assert held["holderIdentity"] == leader.identity
            assert (held["leaseDurationSeconds"], held["leaseTransitions"]) == (60, 0)
            await stopped(tasks[0] if leader is first else tasks[1])
            # Well before the 60 s that a dead leader's Lease would last.
            await until(lambda: follower.works, what="the other takes over", seconds=30)
            assert leader.ended[0] <= follower.began[0]
            assert (await spec(client, namespace))["leaseTransitions"] == 1
            assert follower.election.is_leader
            assert not leader.election.is_leader


async def test_a_dead_leader_is_replaced_after_the_duration_and_not_before(
    cluster: LocalCluster, namespace: str
) -> None:
    async with client_of(cluster) as client:
        dead = LeaseLock(client, name="berth-test", namespace=namespace, identity="dead", timing=TIMING)
        heir = Candidate(client, "heir", namespace=namespace)
        # What a killed process leaves behind: a Lease that it held until a moment ago.
        await dead.acquire()
        left = time.monotonic()
        async with running(heir.run()):
            await until(lambda: heir.works, what="the heir takes over")
            assert heir.began[0] - left >= TIMING.duration
            held = await spec(client, namespace)
            assert (held["holderIdentity"], held["leaseTransitions"]) == ("heir", 1)


async def test_while_renewed_nobody_takes_over(cluster: LocalCluster, namespace: str) -> None:
    async with client_of(cluster) as client:
        leader = Candidate(client, "leader", namespace=namespace)
        rival = Candidate(client, "rival", namespace=namespace)
        async with running(leader.run()):
            await until(lambda: leader.works, what="the leader works")
            async with running(rival.run()):
                first = (await client.get(LEASES, "berth-test", namespace=namespace))["metadata"]["resourceVersion"]
                began = time.monotonic()
                await until(lambda: time.monotonic() - began > 1.5 * TIMING.duration, what="time passes")
                last = (await client.get(LEASES, "berth-test", namespace=namespace))["metadata"]["resourceVersion"]
                assert int(last) > int(first)
                assert leader.works
                assert not rival.began


@pytest.mark.parametrize(
    "times", ["1971-01-01T00:00:00.000000Z", "2199-01-01T00:00:00.000000Z"], ids=["past", "future"]
)
async def test_wall_clocks_are_not_compared(cluster: LocalCluster, namespace: str, times: str) -> None:
    """A holder whose clock is centuries off keeps its Lease for the duration as seen here, no less and no more."""
    async with client_of(cluster) as client:
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "berth-test"},
            "spec": {
                "holderIdentity": "skewed",
                "leaseDurationSeconds": 2,
                "acquireTime": times,
                "renewTime": times,
                "leaseTransitions": 7,
            },
        }
        await client.create(LEASES, lease, namespace=namespace)
        rival = Candidate(client, "rival", namespace=namespace)
        began = time.monotonic()
        async with running(rival.run()):
            await until(lambda: rival.works, what="the rival takes over")
            assert rival.began[0] - began >= 2.0
            assert (await spec(client, namespace))["leaseTransitions"] == 8


async def test_a_step_of_the_wall_clock_changes_nothing(
    cluster: LocalCluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client_of(cluster) as client:
        leader = Candidate(client, "leader", namespace=namespace)
        async with running(leader.run()):
            await until(lambda: leader.works, what="the leader works")
            monkeypatch.setattr("berth.kube.lease._now", lambda: "1971-01-01T00:00:00.000000Z")
            seen: list[str] = []
            while seen[-1:] != ["1971-01-01T00:00:00.000000Z"]:
                seen.append((await spec(client, namespace))["renewTime"])
            began = time.monotonic()
            await until(lambda: time.monotonic() - began > TIMING.duration, what="time passes")
            assert leader.works


async def test_the_lease_is_renewed_while_work_cleans_up(cluster: LocalCluster, namespace: str) -> None:
    async with client_of(cluster) as client:
        leader = Candidate(client, "leader", namespace=namespace)
        leader.clean_up = 1.5 * TIMING.duration
        rival = Candidate(client, "rival", namespace=namespace)
        async with running(leader.run()) as (task,):
            await until(lambda: leader.works, what="the leader works")
            async with running(rival.run()):
                await stopped(task)
                await until(lambda: rival.works, what="the rival takes over")
                assert leader.ended[0] <= rival.began[0]


async def test_whoever_sees_another_holder_stops_at_once(cluster: LocalCluster, namespace: str) -> None:
    patient = LeaseTiming(duration=600.0, renew_deadline=500.0, retry_period=0.2)
    async with client_of(cluster) as client:
        leader = Candidate(client, "leader", namespace=namespace, timing=patient)
        task = asyncio.create_task(leader.run())
        await until(lambda: leader.works, what="the leader works")
        await client.merge_patch(LEASES, "berth-test", {"spec": {"holderIdentity": "thief"}}, namespace=namespace)
        with pytest.raises(LeadershipLost, match="is held by thief"):
            await task
        assert not leader.works
        # What is another's is not released.
        assert (await spec(client, namespace))["holderIdentity"] == "thief"


async def test_a_deleted_lease_is_made_again(cluster: LocalCluster, namespace: str) -> None:
    async with client_of(cluster) as client:
        leader = Candidate(client, "leader", namespace=namespace)
        async with running(leader.run()):
            await until(lambda: leader.works, what="the leader works")
            await client.delete(LEASES, "berth-test", namespace=namespace)
            leases: list[dict[str, Any]] = []
            while not leases:
                leases = await client.list_all(LEASES, namespace=namespace)
            assert leases[0]["spec"]["holderIdentity"] == "leader"
            assert leader.works


async def test_a_deleted_lease_is_not_taken_from_its_holder(cluster: LocalCluster, namespace: str) -> None:
    """The holder cannot know before its next renewal; the rival looks ten times as often."""
    slow = LeaseTiming(duration=8.0, renew_deadline=6.0, retry_period=1.0)
    eager = LeaseTiming(duration=8.0, renew_deadline=6.0, retry_period=0.1)
    async with client_of(cluster) as client:
        leader = Candidate(client, "leader", namespace=namespace, timing=slow)
        rival = Candidate(client, "rival", namespace=namespace, timing=eager)
        async with running(leader.run()):
            await until(lambda: leader.works, what="the leader works")
            async with running(rival.run()):
                await until(lambda: looked(rival), what="the rival has seen the Lease")
                await client.delete(LEASES, "berth-test", namespace=namespace)
                leases: list[dict[str, Any]] = []
                while not leases:
                    leases = await client.list_all(LEASES, namespace=namespace)
                assert leases[0]["spec"]["holderIdentity"] == "leader"
                assert not rival.began


@pytest.mark.parametrize("seconds", [int(TIMING.duration), 2**31 - 1], ids=["as it was written", "edited to 68 years"])
async def test_a_lease_that_is_deleted_after_its_holder_died_is_made_again(
    cluster: LocalCluster, namespace: str, seconds: int
) -> None:
    async with client_of(cluster) as client:
        dead = LeaseLock(client, name="berth-test", namespace=namespace, identity="dead", timing=TIMING)
        heir = Candidate(client, "heir", namespace=namespace)
        await dead.acquire()
        left = time.monotonic()
        await client.merge_patch(LEASES, "berth-test", {"spec": {"leaseDurationSeconds": seconds}}, namespace=namespace)
        async with running(heir.run()):
            await until(lambda: looked(heir), what="the heir has seen the Lease")
            await client.delete(LEASES, "berth-test", namespace=namespace)
            await until(lambda: heir.works, what="the heir takes over")
            assert heir.began[0] - left >= TIMING.duration


async def test_a_lease_that_is_deleted_soon_after_it_was_handed_over_is_made_again(
    cluster: LocalCluster, namespace: str
) -> None:
    """Whoever held it before holds it no longer, and is not waited for."""
    async with client_of(cluster) as client:
        former = LeaseLock(client, name="berth-test", namespace=namespace, identity="former", timing=LeaseTiming())
        heir = Candidate(client, "heir", namespace=namespace)
        await former.acquire()
        async with running(heir.run()):
            await until(lambda: looked(heir), what="the heir has seen the Lease")
            await former.release()
            await until(lambda: heir.works, what="the heir takes over")
            await client.delete(LEASES, "berth-test", namespace=namespace)
            leases: list[dict[str, Any]] = []
            while heir.works and not leases:
                leases = await client.list_all(LEASES, namespace=namespace)
            assert leases[0]["spec"]["holderIdentity"] == "heir"
            assert heir.works


async def test_transitions_that_cannot_be_counted_on_keep_nobody_from_leading(
    cluster: LocalCluster, namespace: str
) -> None:
    most = 2**31 - 1
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "berth-test"},
        "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 1, "leaseTransitions": most},
    }
    async with client_of(cluster) as client:
        await client.create(LEASES, lease, namespace=namespace)
        heir = Candidate(client, "heir", namespace=namespace)
        async with running(heir.run()):
            await until(lambda: heir.works, what="the heir takes over")
            held = await spec(client, namespace)
            assert (held["holderIdentity"], held["leaseTransitions"]) == ("heir", most)


async def test_work_that_ends_or_fails_ends_leadership(cluster: LocalCluster, namespace: str) -> None:
    async def ending() -> None:
        return

    async def failing() -> None:
        raise LookupError("broken")

    async with client_of(cluster) as client:
        candidate = Candidate(client, "c", namespace=namespace)
        await candidate.election.run(ending)
        assert (await spec(client, namespace))["holderIdentity"] == ""
        with pytest.raises(LookupError, match="broken"):
            await candidate.election.run(failing)
        assert (await spec(client, namespace))["holderIdentity"] == ""
        assert not candidate.election.is_leader


async def test_cancelled_while_waiting_leaves_the_lease_alone(cluster: LocalCluster, namespace: str) -> None:
    async with client_of(cluster) as client:
        leader = Candidate(client, "leader", namespace=namespace)
        waiting = Candidate(client, "waiting", namespace=namespace)
        async with running(leader.run()):
            await until(lambda: leader.works, what="the leader works")
            task = asyncio.create_task(waiting.run())
            await until(lambda: looked(waiting), what="it has seen the Lease")
            await stopped(task)
            assert (await spec(client, namespace))["holderIdentity"] == "leader"


async def test_a_silent_server_stops_the_leader_before_another_may_start(
    fresh_cluster: Callable[..., LocalCluster],
) -> None:
    """The API server stands still for longer than the deadline; two processes' clients, as in reality."""
    cluster = fresh_cluster(crds=False, kwok=False, options=Options(controller_manager=False))
    async with client_of(cluster, timeout=1.0) as one, client_of(cluster, timeout=1.0) as two:
        leader = Candidate(one, "leader", namespace="default", timing=SILENT)
        rival = Candidate(two, "rival", namespace="default", timing=SILENT)
        task = asyncio.create_task(leader.run())
        await until(lambda: leader.works, what="the leader works")
        async with running(rival.run()):
            await until(lambda: looked(rival), what="the rival has seen the Lease")
            with paused(cluster):
                stood = time.monotonic()
                with pytest.raises(LeadershipLost, match="could not be renewed for 2 s"):
                    await task
                assert not leader.works
                assert leader.ended[0] - stood < SILENT.duration
                assert not rival.began
            await until(lambda: rival.works, what="the rival takes over")
            assert leader.ended[0] < rival.began[0]

"""What goes wrong while applications follow their users, on real nodes: nobody is lost, and nothing goes in circles.

A node that lies, a PodDisruptionBudget that forbids the move, and more users than the pods that there may be. Left out:
what is killed (test_kubelets_latency_routed.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from berth.api.latencypolicy import CONDITION_MOVING, CONDITION_WITHIN_LIMITS, Outcome
from hack.harness.cluster import eventually
from hack.harness.user_place import Users, user_place
from hack.localcluster import LocalCluster
from tests.support.berth_nodes import NODES
from tests.support.near_users import (
    BEST,
    ENDED,
    FAIR,
    FAR,
    HARD,
    SOFT,
    Application,
    begun_again,
    distances,
    failed,
    namespace,
    wait_round_trip,
)

pytestmark = pytest.mark.timeout(600)

LIE: Final = 4.0
"""Milliseconds that the agent of a node measures that is far from users."""
PROBE_SECONDS: Final = 15
"""Between two measurements of agents."""
PROBES: Final = 4
"""So often agents measure anew before a node that lies counts as known."""
MOST_PODS: Final = 2
"""Of an application whose users need three."""
EXPIRY_SECONDS: Final = 20
"""After which nobody counts who is not heard of, and pods go that are not needed."""


# A node that lies


@dataclass
class LiedTo:
    """An application, one node of which says that it is near."""

    application: Application
    users: Users
    start: str
    liar: str


@pytest.fixture(scope="module")
def lied_to(latency: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiedTo]:
    """Users whom no node is quite near, and the farthest is if one believes its agent."""
    with ExitStack() as stack:
        application = Application(latency, stack.enter_context(namespace(latency, "lying")))
        application.deploy()
        application.available()
        (start,) = application.nodes()
        other, liar = sorted(NODES.keys() - {start})
        far = {start: FAIR, other: FAR, liar: FAR}
        place = stack.enter_context(user_place(latency, far, number=1))
        place.move(far, agents={liar: LIE})
        file = tmp_path_factory.mktemp("lied-to") / "web.jsonl"
        users = stack.enter_context(place.asking("lying", "web", file, interval=0.4))
        # No pod explores what agents are about to tell.
        application.want(hardMaxLatency=HARD, softMaxLatency=SOFT, moves={"dryRun": True})
        eventually(
            lambda: {node.node for node in application.status().nodes if node.p50_microseconds},
            accept=NODES.keys().__eq__,
            what="figures of all nodes",
        )
        application.want(hardMaxLatency=HARD, softMaxLatency=SOFT)
        yield LiedTo(application, users, start, liar)


def test_a_pod_comes_back_from_a_node_that_lied_and_the_node_is_remembered(lied_to: LiedTo) -> None:
    application = lied_to.application
    eventually(
        lambda: [move.target_node for move in application.status().moves],
        accept=lambda targets: targets[-2:] == [lied_to.liar, lied_to.start],
        what="a move to the node that lies, and back",
    )
    application.wait_settled([lied_to.start].__eq__)
    there, _ = application.status().moves
    assert there.outcome is Outcome.DISAPPOINTED
    assert (there.expected_microseconds or 0) / 1000 == pytest.approx(LIE, abs=5)
    assert (there.after_microseconds or 0) / 1000 == pytest.approx(FAR, rel=0.1)
    (known,) = (node for node in application.status().nodes if node.node == lied_to.liar)
    assert known.rejections == 1
    assert known.rejected_until is not None
    assert known.rejected_until > datetime.now(UTC)
    wait_round_trip(lied_to.users, FAIR)


# More users than pods


@dataclass
class Growing:
    """An application whose users need more pods than there may be."""

    application: Application
    users: list[Users]

    def scaled(self) -> list[tuple[int, int]]:
        """How its number of pods was changed, in order, as the Deployment's controller tells."""
        chosen = f"involvedObject.kind=Deployment,involvedObject.name={self.application.name},reason=ScalingReplicaSet"
        found = self.application.kubectl(
            "get", "events", "--field-selector", chosen, "--sort-by=.lastTimestamp", "-o", "custom-columns=:.message"
        )
        return [(int(before), int(after)) for before, after in re.findall(r"from (\d+) to (\d+)", found)]


@pytest.fixture(scope="module")
def growing(latency: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Growing]:
    """One pod, and users at each node who are far from all others."""
    directory = tmp_path_factory.mktemp("growing")
    with ExitStack() as stack:
        application = Application(latency, stack.enter_context(namespace(latency, "growing")))
        application.deploy()
        application.available()
        growing = Growing(application, [])
        for number, node in enumerate(NODES, 3):
            far = {other: BEST if other == node else FAR for other in NODES}
            place = stack.enter_context(user_place(latency, far, number=number))
            asking = place.asking("growing", "web", directory / f"{node}.jsonl", interval=0.4)
            growing.users.append(stack.enter_context(asking))
        users = {"mode": "PerUser", "maxReplicas": MOST_PODS, "expirySeconds": EXPIRY_SECONDS}
        application.want(hardMaxLatency=HARD, users=users, moves={"maxPerHour": 0})
        yield growing


def test_pods_come_for_users_up_to_the_greatest_number(growing: Growing) -> None:
    application = growing.application
    eventually(
        lambda: (application.replicas(), len(application.settled())),
        accept=(MOST_PODS, MOST_PODS).__eq__,
        what="as many pods as there may be",
        timeout=180.0,
    )
    # Everybody is known, and so it is that one more pod would serve those who are still far.
    eventually(lambda: len(application.status().associations), accept=len(NODES).__eq__, what="a pod for each user")
    eventually(lambda: application.reason(CONDITION_WITHIN_LIMITS), accept="BeyondHardLimit".__eq__, what="who is far")
    assert growing.scaled() == [(0, 1), (1, MOST_PODS)]
    for users in growing.users:
        assert failed(users.answers()) == []
        users.stop()


# A PodDisruptionBudget that forbids the move


def test_a_pod_that_may_not_be_evicted_stays_and_says_why_and_goes_once_it_may(
    latency: LocalCluster, lied_to: LiedTo, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        application = Application(latency, stack.enter_context(namespace(latency, "budget")))
        application.deploy()
        budget = {"selector": {"matchLabels": {"app": application.name}}, "maxUnavailable": 0}
        application.apply(
            {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all"}, "spec": budget}
        )
        application.available()
        (before,) = application.pods()
        start = before["spec"]["nodeName"]
        near, fair = sorted(NODES.keys() - {start})
        place = stack.enter_context(user_place(latency, distances(near, fair, start), number=2))
        users = stack.enter_context(place.asking("budget", "web", tmp_path / "web.jsonl"))
        application.want(hardMaxLatency=HARD, softMaxLatency=SOFT)
        eventually(
            lambda: application.reason(CONDITION_MOVING), accept="EvictionRefused".__eq__, what="what keeps the pod"
        )
        assert "disruption budget" in application.message(CONDITION_MOVING)
        (event, *_) = eventually(lambda: application.events("EvictionRefused"), what="the Event")
        assert before["metadata"]["name"] in event
        assert "disruption budget" in event
        found = {pod["metadata"]["uid"]: pod for pod in application.pods()}
        assert begun_again(found[before["metadata"]["uid"]]) == 0
        assert application.nodes() == sorted([start, near])
        application.kubectl("delete", "poddisruptionbudget", "all")
        application.wait_settled([near].__eq__)
        wait_round_trip(users, BEST)
        assert application.status().moves[-1].outcome in ENDED - {Outcome.CANCELLED}
        assert len(application.status().moves) == 1
        assert failed(users.answers()) == []


def test_pods_go_after_their_users_and_never_were_more_than_allowed(growing: Growing) -> None:
    application = growing.application
    eventually(
        lambda: (application.replicas(), len(application.settled())),
        accept=(1, 1).__eq__,
        what="one pod",
        timeout=180.0,
    )
    assert growing.scaled() == [(0, 1), (1, MOST_PODS), (MOST_PODS, 1)]
    assert application.status().moves == ()


def test_the_node_that_lied_gets_no_pod_again(lied_to: LiedTo) -> None:
    """As long as that is remembered; agents have told the same again and again meanwhile."""
    application = lied_to.application
    begun = application.status().moves[-1].start_time
    eventually(
        lambda: application.status().probed_time,
        accept=lambda time: time is not None and (time - begun).total_seconds() > PROBES * PROBE_SECONDS,
        what="further measurements of agents",
    )
    assert [move.target_node for move in application.status().moves] == [lied_to.liar, lied_to.start]
    assert application.settled() == [lied_to.start]
    assert failed(lied_to.users.answers()) == []

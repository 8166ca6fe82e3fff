"""Applications that follow their users, on real nodes: kube-scheduler's, and those of four policies.

Users of each have a place of their own, with round trips of their own to each node: first they are far from where the
pod is, then, once it has come nearer, far from there. All applications live at the same time, so that each test finds
its one on the way. Left out: what goes wrong (test_kubelets_latency_faults.py, test_kubelets_latency_routed.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import pytest

from berth.api.labels import SCHEDULER_NAME
from berth.api.latencypolicy import CONDITION_WORKING
from hack.harness.cluster import eventually
from hack.harness.user_place import UserPlace, Users, user_place
from hack.localcluster import LocalCluster
from tests.support.berth_nodes import NODES
from tests.support.near_users import (
    BEST,
    FAR,
    HARD,
    SOFT,
    Application,
    distances,
    failed,
    namespace,
    wait_round_trip,
)

pytestmark = pytest.mark.timeout(600)

LIMITS: Final = {"hardMaxLatency": HARD, "softMaxLatency": SOFT}
THESIS: Final = {"exploration": ["Migrate"]}
"""Nodes become known by pods that go there."""
POLICIES: Final[dict[str, dict[str, Any]]] = {
    "kube": LIMITS,
    "hard": {"hardMaxLatency": HARD, **THESIS},
    "hard-soft": {**LIMITS, **THESIS},
    "berth": LIMITS,
    "nearest": {"objective": "Minimum", "moves": {"coolDownSeconds": 0}},
}
"""Of each application, by its name; that of the first does not count, as kube-scheduler places its pod."""
PEER: Final = "kube"
MOVING: Final = [name for name in POLICIES if name != PEER]
GOALS: Final = {"hard": HARD, "hard-soft": SOFT, "berth": SOFT, "nearest": BEST}
"""Round trips that users have in the end at most, in milliseconds."""
FEWEST_REQUESTS: Final = 20
MOST_MOVES: Final = 3
"""Of one application after its users went once: two nodes are tried, and one that was tried is gone back to."""


@dataclass
class Served:
    """An application and its users."""

    application: Application
    start: str
    """node that the pod was on in the beginning"""
    far: dict[str, float]
    """how far each node is"""
    place: UserPlace
    users: Users
    moves: int = 0
    """how many were made for users who are elsewhere now"""

    def go(self) -> None:
        """Have the users be elsewhere: far from the pod, and nearest the last node that they would think of."""
        (node,) = self.application.nodes()
        others = sorted(self.far.keys() - {node}, key=self.far.__getitem__)
        self.far = distances(*others, node)
        self.moves = len(self.application.status().moves)
        self.place.move(self.far)

    def follows(self) -> None:
        """Wait until the pod is near the users, and see that they have that, and that it did not go in circles."""
        goal = GOALS[self.application.name]
        (node,) = self.application.wait_settled(lambda nodes: self.far[nodes[0]] <= goal)
        wait_round_trip(self.users, self.far[node])
        moves = self.application.status().moves[self.moves :]
        assert 1 <= len(moves) <= MOST_MOVES, moves


@pytest.fixture(scope="module")
def all_served(latency: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Served]]:
    """The applications, by their names; users ask them, and policies say how near they should be."""
    directory = tmp_path_factory.mktemp("users")
    with ExitStack() as stack:
        stack.enter_context(namespace(latency, "near"))
        applications = [Application(latency, "near", name) for name in POLICIES]
        for application in applications:
            application.deploy(scheduler="default-scheduler" if application.name == PEER else SCHEDULER_NAME)
        found = {}
        for number, application in enumerate(applications, 1):
            application.available()
            (start,) = application.nodes()
            far = distances(*sorted(NODES.keys() - {start}), start)
            place = stack.enter_context(user_place(latency, far, number=number))
            file = directory / f"{application.name}.jsonl"
            users = stack.enter_context(place.asking("near", application.name, file, interval=0.4))
            found[application.name] = Served(application, start, far, place, users)
        for application in applications:
            application.want(**POLICIES[application.name])
        yield found


@pytest.fixture(scope="module")
def gone(all_served: dict[str, Served]) -> dict[str, Served]:
    """The same, after their users have gone elsewhere."""
    for name in MOVING:
        all_served[name].go()
    return all_served


@pytest.mark.parametrize("name", MOVING)
def test_a_pod_comes_near_its_users(all_served: dict[str, Served], name: str) -> None:
    all_served[name].follows()


def test_a_pod_that_kube_scheduler_placed_stays_far_and_its_policy_says_why(all_served: dict[str, Served]) -> None:
    """It was there as long as the others took to come near."""
    peer = all_served[PEER]
    eventually(
        lambda: peer.application.reason(CONDITION_WORKING), accept="OtherScheduler".__eq__, what="why nothing is moved"
    )
    assert (peer.application.nodes(), peer.application.status().moves) == ([peer.start], ())
    wait_round_trip(peer.users, FAR)


@pytest.mark.parametrize("name", MOVING)
def test_it_follows_users_who_go_elsewhere(gone: dict[str, Served], name: str) -> None:
    gone[name].follows()


def test_no_request_failed_meanwhile(gone: dict[str, Served]) -> None:
    for name, served in gone.items():
        answers = served.users.answers()
        assert len(answers) > FEWEST_REQUESTS
        assert failed(answers) == [], name

"""What goes wrong while applications follow their users, on real nodes: nobody is lost, and nothing goes in circles.

A node that lies, a PodDisruptionBudget that forbids the move, and twenty users in three places who come by routers,
while a meter, a router and the latency controller are killed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from berth.api.latencypolicy import CONDITION_MOVING, CONDITION_WITHIN_LIMITS, Outcome
from hack.harness.asking import Answer
from hack.harness.cluster import eventually
from hack.harness.user_place import UserPlace, Users, user_place
from hack.localcluster import LocalCluster
from tests.support.berth_nodes import NODES, get
from tests.support.near_users import (
    BEST,
    ENDED,
    FAIR,
    FAR,
    HARD,
    ROUTERS,
    SOFT,
    Application,
    begun_again,
    distances,
    failed,
    kill,
    latency_deployed,
    leader,
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
MOST_MOVES: Final = 2
"""Where one does, and the controller is killed meanwhile."""
USERS: Final = {"a": 8, "b": 6, "c": 6}
"""Users by place."""


@pytest.fixture(scope="module")
def latency(deployed: LocalCluster) -> Iterator[LocalCluster]:
    """The cluster with the latency controller."""
    with latency_deployed(deployed):
        yield deployed


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
            timeout=330,  # an agent that could not reach a controller again and again tries every five minutes
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


# Twenty users in three places, by routers


@dataclass
class Crowd:
    """An application with two pods, its routers, and its users by place."""

    application: Application
    places: dict[str, UserPlace] = field(default_factory=dict)
    users: dict[str, Users] = field(default_factory=dict)
    far: dict[str, dict[str, float]] = field(default_factory=dict)
    """how far each node is, by place"""

    def answers(self) -> list[Answer]:
        """What users had, those of one place after those of another."""
        return [answer for users in self.users.values() for answer in users.answers()]

    def wait_requests(self, count: int) -> None:
        """Wait until so many more have been answered."""
        before = len(self.answers())
        eventually(lambda: len(self.answers()) - before, accept=lambda more: more >= count, what="requests")

    def beyond(self) -> dict[str, str]:
        """Users whose last request was served beyond the limit, or who had none, and where."""
        last = {answer.user: answer.served for answer in self.answers()}
        return {
            name: last.get(name, "")
            for place in USERS
            for name in names(place)
            if self.far[place].get(last.get(name, ""), FAR) > HARD
        }

    def wait_served(self, *nodes: str) -> None:
        """Wait until pods are on these nodes, and each user is served within the limit."""
        self.application.wait_settled(sorted(nodes).__eq__)
        eventually(self.beyond, accept=lambda found: not found, what="users within the limit")
        eventually(
            lambda: len(self.application.status().associations),
            accept=sum(USERS.values()).__eq__,
            what="a pod for each user",
        )
        eventually(
            lambda: self.application.reason(CONDITION_WITHIN_LIMITS), accept="Within".__eq__, what="users who are near"
        )


def names(place: str) -> list[str]:
    """Users in a place."""
    return [f"{place}{number}" for number in range(USERS[place])]


@pytest.fixture(scope="module")
def crowd(latency: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    """Users of two places are near one node each, those of the third are not far from two; one pod has to move."""
    directory = tmp_path_factory.mktemp("crowd")
    with ExitStack() as stack:
        application = Application(latency, stack.enter_context(namespace(latency, "routed")))
        application.deploy(replicas=2)
        application.route()
        application.available()
        stays, *_ = taken = application.nodes()
        goal = min(NODES.keys() - set(taken))
        (free,) = NODES.keys() - {stays, goal}
        crowd = Crowd(application)
        crowd.far = {
            "a": {goal: BEST, stays: FAR, free: FAR},
            "b": {goal: FAR, stays: BEST, free: FAR},
            "c": {goal: FAIR, stays: FAR, free: FAIR},
        }
        for number, (name, far) in enumerate(crowd.far.items(), 3):
            place = stack.enter_context(user_place(latency, far, number=number))
            asking = place.asking("routed", ROUTERS, directory / f"{name}.jsonl", interval=0.1, users=names(name))
            crowd.places[name], crowd.users[name] = place, stack.enter_context(asking)
        users = {"mode": "PerUser", "identity": {"source": "Header", "name": "X-User"}}
        application.want(hardMaxLatency=HARD, users=users)
        yield crowd


def sites(crowd: Crowd) -> dict[str, str]:
    """Which node is nearest, by place."""
    return {name: min(far, key=far.__getitem__) for name, far in crowd.far.items()}


def test_twenty_users_in_three_places_are_served_within_the_limit_by_two_pods(crowd: Crowd) -> None:
    crowd.wait_served(sites(crowd)["a"], sites(crowd)["b"])
    assert {user for answer in crowd.answers() if (user := answer.user)} == {*names("a"), *names("b"), *names("c")}
    assert failed(crowd.answers()) == []


def test_users_who_go_are_followed_while_meter_router_and_controller_are_killed(
    latency: LocalCluster, crowd: Crowd
) -> None:
    """One after the other, in any order, at any time from the beginning of the move on."""
    seed = int(os.environ.get("BERTH_TEST_SEED", random.randrange(10**6)))
    print(f"BERTH_TEST_SEED={seed}")
    lot = random.Random(seed)
    application, before = crowd.application, len(crowd.application.status().moves)
    left, stays = sites(crowd)["a"], sites(crowd)["b"]
    (goal,) = NODES.keys() - {left, stays}
    crowd.far["a"] = {goal: BEST, left: FAR, stays: FAR}
    crowd.places["a"].move(crowd.far["a"])
    eventually(lambda: application.status().surge, accept=lambda surge: surge is not None, what="a move")
    killed: dict[str, dict[str, Any]] = {}
    for part in lot.sample(["meter", "router", "latency"], 3):
        pause = lot.randrange(30)
        crowd.wait_requests(pause)
        killed[part] = lot.choice(wait_running(application, part))
        kill(latency, killed[part], "run", part)
        print(f"{part} of {killed[part]['metadata']['name']} is killed {pause} requests later")
    crowd.wait_served(goal, stays)
    print(*application.status().moves, sep="\n")
    for part in ("router", "latency"):
        wait_begun_again(latency, killed[part])
    eventually(lambda: leader(latency), what="a latency controller that leads")
    moves = application.status().moves[before:]
    # Where the controller is away just when a pod goes, the ReplicaSet may take the new one, and another has to follow.
    assert {move.target_node for move in moves} == {goal}, moves
    assert {move.outcome for move in moves} <= {Outcome.CANCELLED, Outcome.MOVED, Outcome.CONFIRMED}, moves
    assert len(moves) <= MOST_MOVES, moves
    answers = failed(crowd.answers())
    assert [answer for answer in answers if not answer.node] == [], "no request is lost"
    # A client sees the end of the router that it has asked, and nothing else: who it sends requests to does not show.
    router = killed["router"]["metadata"]["name"]
    others = [text for answer in answers for text in answer.failures if not text.startswith(f"{router}: Connection")]
    assert [text for text in others if not text.startswith(f"{router}: RemoteDisconnected")] == []


def running(application: Application, part: str) -> list[dict[str, Any]]:
    """Pods with a part that may be killed: it runs, and of the application's pods another is ready."""
    if part == "latency":
        found = [leader(application.cluster)]
    else:
        found = application.pods("app.kubernetes.io/component=router" if part == "router" else "")
    ready = [pod for pod in found if pod and is_ready(pod)]
    return ready if part != "meter" or len(ready) > 1 else []


def wait_running(application: Application, part: str) -> list[dict[str, Any]]:
    """Wait until there are such."""
    return eventually(lambda: running(application, part), what=f"a {part} to kill")


def wait_begun_again(cluster: LocalCluster, pod: dict[str, Any]) -> None:
    """Wait until it is seen that a container of the pod has begun again since the pod was as given."""
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
    eventually(
        lambda: begun_again(get(cluster, path)),
        accept=lambda times: times > begun_again(pod),
        what=f"{pod['metadata']['name']} begun again",
    )


def is_ready(pod: dict[str, Any]) -> bool:
    """Whether it is."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", []))


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

"""Twenty users in three places who come by routers, on real nodes, while parts are killed and others make users up.

No request fails but those that are under way in what is killed, and none that does harm twice is sent twice.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from berth.api.latency_exchange import CONFIGMAP, CONFIGMAP_CA, CONFIGMAP_URL
from berth.api.latencypolicy import CONDITION_WITHIN_LIMITS, Outcome
from hack.harness.asking import Answer
from hack.harness.cluster import eventually
from hack.harness.user_place import UserPlace, Users, user_place
from hack.localcluster import LocalCluster
from tests.support.berth_nodes import NAMESPACE, NODES, get
from tests.support.latency_stand import token_of
from tests.support.near_users import (
    BEST,
    FAIR,
    FAR,
    HARD,
    ROUTERS,
    Application,
    begun_again,
    failed,
    kill,
    leader,
    namespace,
)

pytestmark = pytest.mark.timeout(600)

MOST_MOVES: Final = 2
"""Where one does, and the controller is killed meanwhile."""
USERS: Final = {"a": 8, "b": 6, "c": 6}
"""Users by place."""
ROUTER: Final = "app.kubernetes.io/component=router"
PROCESSES: Final = {"meter": ("run", "meter"), "router": ("run", "router"), "web": ("-c",)}
"""Parts that requests go through, by what is in the command lines of their processes."""
POSTING: Final = 3
"""Requests that do harm twice and are under way at a time."""


@dataclass
class Crowd:
    """An application with two pods, its routers, and its users by place."""

    application: Application
    directory: Path
    """files of what was posted, one of each pod"""
    places: dict[str, UserPlace] = field(default_factory=dict)
    users: dict[str, Users] = field(default_factory=dict)
    far: dict[str, dict[str, float]] = field(default_factory=dict)
    """how far each node is, by place"""

    def answers(self) -> list[Answer]:
        """What users had, those of one place after those of another."""
        return [answer for users in self.users.values() for answer in users.answers()]

    def posted(self) -> list[str]:
        """Names of requests that have reached the application."""
        return [name for file in self.directory.iterdir() for name in file.read_text().split()]

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
        application.deploy(replicas=2, posted=directory / "posted")
        application.route()
        application.available()
        stays, *_ = taken = application.nodes()
        goal = min(NODES.keys() - set(taken))
        (free,) = NODES.keys() - {stays, goal}
        crowd = Crowd(application, directory / "posted")
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


def chance() -> random.Random:
    """What is left to chance; how to repeat it is printed."""
    seed = int(os.environ.get("BERTH_TEST_SEED", random.randrange(10**6)))
    print(f"BERTH_TEST_SEED={seed}")
    return random.Random(seed)


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
    lot = chance()
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
    answers = crowd.answers()
    assert [answer for answer in answers if not answer.node] == [], "no request is lost"
    # A client sees the end of the router that it has asked, and nothing else: who it sends requests to does not show.
    router = killed["router"]["metadata"]["name"]
    others = [text for answer in answers for text in answer.failures if not text.startswith(f"{router}: Connection")]
    assert [text for text in others if not text.startswith(f"{router}: RemoteDisconnected")] == []


def running(application: Application, part: str) -> list[dict[str, Any]]:
    """Pods with a part that may be killed: it runs, and of the application's pods another is ready."""
    selector = ROUTER if part == "router" else ""
    found = [leader(application.cluster)] if part == "latency" else application.pods(selector)
    ready = [pod for pod in found if pod and is_ready(pod)]
    return ready if part in ("latency", "router") or len(ready) > 1 else []


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


# Requests that do harm twice


def test_what_does_harm_twice_is_sent_once_whatever_is_killed(
    latency: LocalCluster, crowd: Crowd, tmp_path: Path
) -> None:
    """A meter, a router and an application, one after the other, each with requests under way."""
    lot = chance()
    with ExitStack() as stack:
        asking = [
            stack.enter_context(
                crowd.places["c"].asking(
                    "routed", ROUTERS, tmp_path / f"{number}.jsonl", interval=0.0, users=names("c"), method="POST"
                )
            )
            for number in range(POSTING)
        ]

        def answers() -> list[Answer]:
            return [answer for users in asking for answer in users.answers()]

        killed = {}
        for part in PROCESSES:
            before = len(answers())
            eventually(lambda: len(answers()), accept=lambda count, least=before + 20: count >= least, what="requests")  # type: ignore[misc]
            killed[part] = lot.choice(wait_running(crowd.application, part))
            kill(latency, killed[part], *PROCESSES[part])
            wait_begun_again(latency, killed[part])
    posted = Counter(crowd.posted())
    assert [name for name, count in posted.items() if count > 1] == [], "nothing is sent twice"
    found = answers()
    assert [answer for answer in found if answer.node and not posted[answer.sent]] == [], "what is answered was done"
    assert [answer for answer in found if " 503" in "".join(answer.failures) and posted[answer.sent]] == []
    router = killed["router"]["metadata"]["name"]
    # Whose router ends sees that; all others are told that nobody knows whether it was done, or that it was not.
    others = [text for answer in found for text in answer.failures if not text.startswith(f"{router}: ")]
    assert [text for text in others if not text.endswith(("status 502')", "status 503')"))] == []
    assert len(others) <= len(PROCESSES) * POSTING
    assert failed(found) != [], "something was under way"


# Users who are made up


def test_users_who_are_made_up_move_nothing_and_take_nobody_from_his_pod(latency: LocalCluster, crowd: Crowd) -> None:
    application = crowd.application
    crowd.wait_served(*application.nodes())
    before, begun = application.status(), time.time()
    known = {each.user: each.node for each in before.associations}
    [router] = [pod for pod in application.pods(ROUTER) if pod["spec"]["nodeName"] == sites(crowd)["b"]]
    crowd.places["b"].run("-m", "tests.support.made_up", "requests", router["status"]["podIP"], "8000", "10000")
    pod, *_ = application.pods()
    api = latency.api()
    where = api.request("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/{CONFIGMAP}")["data"]
    text = f"{json.dumps(where[CONFIGMAP_CA])}\n{json.dumps(token_of(api, pod))}\n"
    api.close()
    arguments = ["-m", "tests.support.made_up", "reports", where[CONFIGMAP_URL], "10000", "3"]
    statuses = json.loads(crowd.places["b"].run(*arguments, text=text))
    # A pod may speak twice a second, and twenty times at once.
    assert statuses.keys() == {"200", "429"}
    crowd.wait_requests(3 * sum(USERS.values()))
    after = application.status()
    assert {each.user: each.node for each in after.associations if each.user in known} == known
    assert [move.new_pod for move in after.moves] == [move.new_pod for move in before.moves]
    assert application.nodes() == sorted(set(known.values()))
    assert crowd.beyond() == {}
    assert failed([answer for answer in crowd.answers() if answer.time >= begun]) == []

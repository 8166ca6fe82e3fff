"""Who comes and who goes in a rolling update."""

from __future__ import annotations

import pytest

from bench.replicas.cluster import DELETION_COST
from bench.replicas.deployments import Deployment, Pod


def of(revision: str, node: str = "", *, ready: bool = True, uid: str = "", created: float = 0.0, cost: int = 0) -> Pod:
    manifest = {"metadata": {"annotations": {DELETION_COST: str(cost)}}}
    return Pod(revision, uid, created, manifest, node, 0.0 if ready and node else None)


def rolling(surge: int, unavailable: int, replicas: int = 3) -> Deployment:
    deployment = Deployment("a", replicas, surge, unavailable, "v1", {"v1": replicas})
    deployment.pods = [of("v1", f"n{number}") for number in range(replicas)]
    deployment.begin("v2")
    return deployment


@pytest.mark.parametrize(
    ("surge", "unavailable", "waves"),
    [
        pytest.param(1, 0, [1, 1, 1], id="one more"),
        pytest.param(2, 0, [2, 1], id="two more"),
        pytest.param(3, 0, [3], id="all at once"),
        pytest.param(0, 1, [1, 1, 1], id="one less"),
        pytest.param(1, 1, [2, 1], id="one more and one less"),
    ],
)
def test_new_pods_come_in_waves_as_those_before_are_ready(surge: int, unavailable: int, waves: list[int]) -> None:
    deployment, found, number = rolling(surge, unavailable), [], 3
    while not deployment.settled:
        while deployment.step():
            pass
        gone = deployment.surplus()
        deployment.pods = [pod for pod in deployment.pods if pod not in gone]
        new = deployment.missing()
        assert sum(pod.ready is not None for pod in deployment.pods) >= 3 - unavailable
        assert len(deployment.pods) + len(new) <= 3 + surge
        assert {*new} <= {"v2"}
        for _ in new:
            deployment.pods.append(of("v2", f"n{number}"))
            number += 1
        found += [len(new)] if new else []
    assert found == waves


def test_nothing_old_goes_before_the_new_pod_is_ready() -> None:
    deployment = rolling(1, 0)
    while deployment.step():
        pass
    deployment.pods.append(of("v2", "n9", ready=False))
    assert not deployment.step()
    assert deployment.wanted == {"v1": 3, "v2": 1}


def test_old_pods_that_are_not_ready_go_first() -> None:
    deployment = rolling(1, 1)
    deployment.pods[1].ready = None
    while deployment.step():
        pass
    assert deployment.surplus() == [deployment.pods[1]]


@pytest.mark.parametrize(
    ("pods", "first"),
    [
        pytest.param([of("v1", "n1"), of("v1")], 1, id="without a node"),
        pytest.param([of("v1", "n1"), of("v1", "n2", ready=False)], 1, id="not ready"),
        pytest.param([of("v1", "n1", cost=-9), of("v1", "n2", ready=False)], 1, id="not ready, whatever it costs"),
        pytest.param([of("v1", "n2"), of("v1", "n1", cost=-1), of("v2", "n2")], 1, id="costs less"),
        pytest.param([of("v1", "n1"), of("v1", "n2"), of("v2", "n2")], 1, id="shares its node"),
        pytest.param([of("v1", "n1", created=1.0), of("v1", "n2", created=2.0)], 1, id="the youngest"),
        pytest.param([of("v1", "n1", uid="b"), of("v1", "n2", uid="a")], 1, id="the lowest UID"),
    ],
)
def test_who_is_deleted_first(pods: list[Pod], first: int) -> None:
    deployment = Deployment("a", 1, 1, 0, "v1", {"v1": 1, "v2": 1}, pods)
    assert deployment.surplus() == [pods[first]]


@pytest.mark.parametrize(
    ("wanted", "replicas", "found"),
    [
        pytest.param({"v1": 3}, 5, {"v1": 5}, id="at rest, grown"),
        pytest.param({"v1": 3}, 2, {"v1": 2}, id="at rest, shrunk"),
        pytest.param({"v1": 3, "v2": 1}, 6, {"v1": 5, "v2": 2}, id="in the middle of a rollout"),
        pytest.param({"v1": 0, "v2": 3}, 4, {"v1": 0, "v2": 4}, id="at rest again"),
    ],
)
def test_scaled_in_proportion(wanted: dict[str, int], replicas: int, found: dict[str, int]) -> None:
    deployment = Deployment("a", 3, 1, 0, "v2", wanted)
    deployment.scale(replicas)
    assert deployment.wanted == found


def test_a_rollout_of_more_than_is_wanted_lets_the_surplus_go() -> None:
    deployment = Deployment("a", 2, 1, 0, "v1", {"v1": 3})
    assert deployment.step()
    assert deployment.wanted == {"v1": 2}

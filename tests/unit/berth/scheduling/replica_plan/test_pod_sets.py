"""Which waiting pods a plan in counts does not tell apart."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import Pod
from berth.scheduling.configuration import Profile
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.budget import finish
from berth.scheduling.replica_plan.pod_sets import Alike, alike, own_costs
from tests.support import builders
from tests.support.placement import Lab, member, zoned

INDEX = "apps.kubernetes.io/pod-index"
HOST = "kubernetes.io/hostname"


def lab() -> Lab:
    return Lab([zoned("n0"), zoned("n1"), zoned("n2", "z2")])


def sets(small: Lab, *pods: Pod, nodes: tuple[int, ...] = (3, 3, 3)) -> list[Alike]:
    """What becomes of pods that may go to the first of the nodes, so many each."""
    small.see(*pods)
    state = small.cache.state
    candidates = []
    for pod, count in zip(pods, nodes, strict=False):
        mask = state.alive.copy()
        mask[count:] = False
        candidates.append(Candidate(state.info(pod), FilterResult(mask=mask, nodes=state.size), {}))
    infrastructure = small.planner.view.current(small.costs, small.cache.bandwidth())
    return finish(alike(candidates, state, infrastructure, price=1.0))


def stateful(number: int, *, cpu: str = "1", **spec: Any) -> Pod:
    labels = {"app": "db", "statefulset.kubernetes.io/pod-name": f"db-{number}", INDEX: str(number)}
    return member(f"db-{number}", "db", labels=labels, cpu=cpu, spec=spec)


def apart(labels: dict[str, str]) -> dict[str, Any]:
    term = builders.pod_term(HOST, labels)
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def sizes(found: list[Alike]) -> list[int]:
    return [len(pods.candidates) for pods in found]


@pytest.mark.parametrize("spec", [{}, apart({"app": "db"})], ids=["no rule", "a rule about another label"])
def test_replicas_of_a_stateful_set_are_alike(spec: dict[str, Any]) -> None:
    assert sizes(sets(lab(), *(stateful(number, **spec) for number in range(3)))) == [3]


def test_a_rule_of_its_own_that_reads_the_label() -> None:
    assert sizes(sets(lab(), *(stateful(number, **apart({INDEX: "1"})) for number in range(3)))) == [1, 1, 1]


def test_a_rule_of_a_placed_pod_that_reads_the_label() -> None:
    small = lab()
    small.see(member("other", "x", on="n0", spec=apart({INDEX: "1"})))
    assert sizes(sets(small, *(stateful(number) for number in range(3)))) == [1, 1, 1]


@pytest.mark.parametrize(
    ("cpu", "nodes", "masks", "costs"),
    [
        pytest.param("1", (2, 2), 1, 1, id="alike"),
        pytest.param("2", (2, 2), 1, 2, id="another request"),
        pytest.param("1", (2, 1), 2, 1, id="other nodes"),
    ],
)
def test_workloads_that_nodes_do_not_tell_apart_share_arrays(
    cpu: str, nodes: tuple[int, int], masks: int, costs: int
) -> None:
    priced = Lab([zoned("n0"), zoned("n1")], Profile.model_validate({"prices": {"cpu": 0.5}}))
    found = sets(priced, member("x", "x", cpu="1"), member("y", "y", cpu=cpu), nodes=nodes)
    assert sizes(found) == [1, 1]
    assert len({id(pods.mask) for pods in found}) == masks
    assert len({id(cost) for pods in found for cost in pods.costs.values()}) == costs


@pytest.mark.parametrize(("cpu", "nodes"), [("900m", [0, 1]), ("1", [0, 1]), ("1100m", [1])])
def test_no_more_than_the_largest_unit_of_a_node(cpu: str, nodes: list[int]) -> None:
    limited = zoned("n0")
    limited.metadata.annotations = {"berth.dev/max-unit-cpu": "1"}
    small = Lab([limited, zoned("n1")])
    (found,) = sets(small, member("x", "x", cpu=cpu))
    assert found.mask.nonzero()[0].tolist() == nodes


def test_the_price_of_requests_is_weighted() -> None:
    priced = Lab([zoned("n0"), zoned("n1")], Profile.model_validate({"prices": {"cpu": 0.5}}))
    found = sets(priced, member("x", "x", cpu="4"))
    infrastructure = priced.planner.view.current(priced.costs, priced.cache.bandwidth())
    assert found[0].costs["price"].tolist() == [2.0, 2.0]
    assert own_costs({}, found[0].request, infrastructure, price=3.0)["price"].tolist() == [6.0, 6.0]
    assert own_costs({}, found[0].request, infrastructure, price=0.0) == {}


@pytest.mark.parametrize(
    ("second", "nodes"),
    [
        pytest.param(stateful(1, cpu="2"), (3, 3), id="requests"),
        pytest.param(stateful(1, nodeSelector={HOST: "n1"}), (3, 3), id="node selector"),
        pytest.param(stateful(1), (3, 2), id="nodes"),
        pytest.param(stateful(1, **apart({"app": "db"})), (3, 3), id="rules"),
        pytest.param(member("x", "x"), (3, 3), id="workload"),
    ],
)
def test_what_else_tells_pods_apart(second: Pod, nodes: tuple[int, ...]) -> None:
    assert sizes(sets(lab(), stateful(0), second, nodes=nodes)) == [1, 1]

"""The life of an application: who comes, who goes, who stays where it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from bench.replicas.boutique import GROUP, Case
from bench.replicas.cluster import Manifest, deletion_cost, read_cluster
from bench.replicas.evaluator import Evaluation, evaluate
from bench.replicas.growth import STEPS, Application, by_berth_plan, by_scores, grow
from bench.replicas.rules import violations

Nodes = dict[str, str]


def round_robin(documents: Sequence[Manifest]) -> Nodes:
    """Every waiting pod of a workload to the next node after those that the workload has."""
    nodes = [item["metadata"]["name"] for item in documents if item["kind"] == "Node"]
    pods = [item for item in documents if item["kind"] == "Pod"]
    taken = Counter(item["metadata"]["labels"]["app"] for item in pods if item["spec"].get("nodeName"))
    found: Nodes = {}
    for item in pods:
        if not item["spec"].get("nodeName"):
            app = item["metadata"]["labels"]["app"]
            found[item["metadata"]["name"]] = nodes[taken[app] % len(nodes)]
            taken[app] += 1
    return found


def nowhere(documents: Sequence[Manifest]) -> Nodes:
    return {}


class Watched:
    """A planner that checks that no pod was moved."""

    def __init__(self) -> None:
        self.seen: Nodes = {}
        self.calls = 0

    def __call__(self, documents: Sequence[Manifest]) -> Mapping[str, str]:
        self.calls += 1
        for item in documents:
            name = item["metadata"]["name"]
            if item["kind"] == "Pod" and item["spec"].get("nodeName"):
                assert self.seen.setdefault(name, item["spec"]["nodeName"]) == item["spec"]["nodeName"]
        return round_robin(documents)


def revisions(application: Application) -> dict[str, int]:
    return dict(Counter(pod["metadata"]["labels"]["pod-template-hash"] for pod in application.pods))


def on(application: Application, app: str) -> list[str]:
    return [pod["spec"]["nodeName"] for pod in application.pods if pod["metadata"]["labels"]["app"] == app]


@pytest.fixture
def application() -> Application:
    return Application.of(Case(), round_robin)


def test_steps_end_with_as_many_pods_as_they_say() -> None:
    steps = grow(Case(), round_robin)
    assert [step.name for step in steps] == list(STEPS)
    assert [step.lived.pods for step in steps] == [step.fresh.pods for step in steps] == [33, 66, 22, 22]
    assert [(step.waiting, step.broken) for step in steps] == [(0, 0)] * 4


def test_no_pod_is_moved() -> None:
    planner = Watched()
    grow(Case(), planner)
    assert planner.calls == 2 + 2 + 4  # two additions, a rollout in two turns, four plans from scratch
    assert planner.seen


def test_pods_without_a_node_are_counted(application: Application) -> None:
    application.planner = nowhere
    application.add(2, revision="v1")
    assert (application.pods, application.waiting) == ([], 22)


def test_a_rollout_replaces_one_revision_by_the_other(application: Application) -> None:
    application.add(2, revision="v1")
    application.add(1, revision="v2")
    assert revisions(application) == {"v1": 22, "v2": 11}
    application.remove(1, revision="v1")
    assert revisions(application) == {"v1": 11, "v2": 11}


def test_after_a_rollout_by_berth_plan_every_workload_survives_a_node() -> None:
    """With the minBandwidth and the capacities of the examples."""
    application = Application.of(Case(), by_berth_plan)
    application.add(2, revision="v1")
    for _ in range(2):
        application.add(1, revision="v2")
        application.remove(1, revision="v1")
    found = evaluate(read_cluster([*application.base, *application.pods]), GROUP)
    assert (found.pods, found.survive_node) == (22, 11)
    assert found.cost <= 0.5


@pytest.mark.parametrize(
    ("additions", "count", "left"),
    [
        pytest.param([["a", "a", "b"]], 1, ["a", "b"], id="those-that-share-a-node-go-first"),
        pytest.param([["a", "b"], ["c"]], 1, ["a", "b"], id="then-the-youngest"),
        pytest.param([["c"], ["a", "b"]], 1, ["a", "c"], id="of-several-the-lowest-uid"),
        pytest.param([["a", "b", "b", "a"]], 1, ["a", "b", "b"], id="of-several-that-share-the-lowest-uid"),
        pytest.param([["a", "a", "b"], ["c", "c", "d"]], 4, ["b", "d"], id="all-that-share-a-node-at-once"),
        pytest.param([["a", "a"], ["c"]], 2, ["c"], id="even-where-none-is-left-there"),
    ],
)
def test_a_replica_set_chooses_whom_to_delete(
    application: Application, additions: list[list[str]], count: int, left: list[str]
) -> None:
    """Nodes of each addition are by UID, the highest first."""
    for nodes in additions:

        def planned(documents: Sequence[Manifest], nodes: list[str] = nodes) -> Nodes:
            uids: dict[str, dict[str, str]] = {}
            for item in documents:
                if item["kind"] == "Pod" and not item["spec"].get("nodeName"):
                    app, meta = item["metadata"]["labels"]["app"], item["metadata"]
                    uids.setdefault(app, {})[meta["uid"]] = meta["name"]
            return {
                pods[uid]: node
                for pods in uids.values()
                for uid, node in zip(sorted(pods, reverse=True), nodes, strict=True)
            }

        application.planner = planned
        application.add(len(nodes), revision="v1")
    application.remove(count, revision="v1")
    assert sorted(on(application, "frontend")) == left


@pytest.mark.parametrize(
    ("rule", "prefer"),
    [
        pytest.param("none", "", id="all-endpoints"),
        pytest.param("required anti-affinity by host", "", id="a-node-for-each-and-all-endpoints"),
        pytest.param("required anti-affinity by host", "PreferSameZone", id="a-node-for-each-and-the-same-zone"),
    ],
)
def test_an_application_that_shrinks_is_as_good_as_one_from_scratch(rule: str, prefer: str) -> None:
    steps = grow(Case(rule=rule, prefer=prefer))
    shrunk = next(step for step in steps if step.name == "shrunk to 2")
    assert shrunk.lived.survive_node == 11
    assert shrunk.lived.survive_zone == shrunk.fresh.survive_zone
    assert shrunk.lived.cost <= 1.2 * shrunk.fresh.cost + 1e-9


def test_pods_that_are_told_go_first_before_age_and_shared_nodes_count(application: Application) -> None:
    application.planner = by_berth_plan
    application.add(3, revision="v1")
    costs = {pod["metadata"]["name"]: deletion_cost(pod) for pod in application.pods}
    application.add(3, revision="v1")
    assert max(costs.values()) == 0
    later = [pod for pod in application.pods if pod["metadata"]["name"] not in costs]
    assert all(deletion_cost(pod) < 0 for pod in later)
    application.remove(5, revision="v1")
    assert {deletion_cost(pod) for pod in application.pods} == {0}


def test_by_scores_calls_do_not_count_and_rules_do() -> None:
    """kube-scheduler spreads an application over the cluster, whatever it costs."""
    ends: list[Evaluation] = []
    for planner in (by_berth_plan, by_scores):
        application = Application.of(Case(rule="hard spread over zones", prefer="PreferSameZone"), planner)
        application.add(3, revision="v1")
        assert len(application.pods) == 33
        cluster = read_cluster([*application.base, *application.pods])
        assert not violations(cluster)
        ends.append(evaluate(cluster, GROUP))
    assert ends[0].nodes < ends[1].nodes
    assert ends[0].cost < ends[1].cost

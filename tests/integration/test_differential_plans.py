"""Joint plans of generated applications against the real kube-scheduler.

Applications of three to five workloads with several replicas and every hard and soft rule are planned, and
kube-scheduler gets their pods one by one, in the order in which Berth would bind them, each on its planned node: it
must take every one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bench.replicas.cluster import read_cluster
from bench.replicas.rules import violations
from hack.localcluster import LocalCluster
from hack.localcluster.components import Options
from hack.localcluster.rest import Api
from tests.support.joint_plans import JointPlan, Refusal, as_planned, background, joint_plan, on_one_node, replay

PROBLEMS = 150
"""Generated problems; some have no placement at all."""
RULES = ("nodeAffinity", "taints", "hostPorts", "antiAffinity", "topologySpread", "resources")
"""Rules that can be the only one that is broken; those that rarely are come first."""
CROSSED = 40
"""Further problems, whose rules mean pods of other workloads as well."""
AT_ONCE = 8
"""Problems whose pods are placed at the same time."""


def _collect() -> list[JointPlan]:
    """The same plans every time."""
    found: dict[str, JointPlan] = {}

    @settings(
        derandomize=True,
        database=None,
        max_examples=PROBLEMS,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(seed=st.integers(1000, 9999), grown=st.booleans())
    def draw(seed: int, grown: bool) -> None:
        plan = joint_plan(seed, grown=grown, strategy="replicas")
        found[plan.name] = plan

    draw()
    return [plan for plan in found.values() if plan.steps]


@pytest.fixture(scope="module")
def plans() -> list[JointPlan]:
    """Plans with at least one pod that has a node."""
    return _collect()


@pytest.fixture(scope="module")
def crossed() -> list[JointPlan]:
    """Plans whose pods have an order."""
    found = (joint_plan(seed, grown=bool(seed % 2), crossed=True, strategy="replicas") for seed in range(CROSSED))
    return [plan for plan in found if plan.steps]


@pytest.fixture(scope="module")
def spoiled(plans: list[JointPlan]) -> list[JointPlan]:
    """The same pods on one node each, where that breaks rules of kube-scheduler's by the word of bench/replicas.

    Of several such nodes the one where the fewest are broken counts, and of these the one whose rule is rarely alone.
    """
    found = []
    for plan in plans:
        ways = [(broken, each) for each in on_one_node(plan) if (broken := _broken(each)) - {"maxNetworkCost"}]
        if ways:
            found.append(min(ways, key=lambda way: (len(way[0]), [rule not in way[0] for rule in RULES]))[1])
    return found


def _broken(plan: JointPlan) -> set[str]:
    """Rules that the pods break."""
    cluster, before = read_cluster(plan.documents, as_planned(plan)), read_cluster(plan.documents)
    return {violation.rule for violation in violations(cluster, before.pods)}


@pytest.fixture(scope="module")
def refusals(
    plans: list[JointPlan],
    spoiled: list[JointPlan],
    crossed: list[JointPlan],
    module_cluster: Callable[..., LocalCluster],
) -> dict[str, Refusal]:
    """By plan, the first pod that kube-scheduler refused."""
    options = Options(
        controller_manager=False,
        apiserver_args=("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",),
    )
    cluster = module_cluster(crds=False, kwok=False, options=options)
    connections = threading.local()

    def api() -> Api:
        if not hasattr(connections, "api"):
            connections.api = cluster.api()
        made: Api = connections.api
        return made

    def prepare(plan: JointPlan) -> None:
        for collection, item in background(plan):
            api().request("POST", collection, item)

    wanted: Sequence[JointPlan] = [*plans, *spoiled, *crossed]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(prepare, wanted))
    LocalCluster.start(cluster.name, root=cluster.layout.home.parent, scheduler=True, die_with_parent=True)
    connections = threading.local()  # those from before may have been idle for too long
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda plan: replay(plan, api()), wanted))
    return {refusal.plan.name: refusal for refusal in found if refusal is not None}


@pytest.mark.parametrize("which", ["plans", "crossed"])
def test_kube_scheduler_takes_every_pod_where_it_is_planned(
    which: str, refusals: dict[str, Refusal], request: pytest.FixtureRequest
) -> None:
    plans: list[JointPlan] = request.getfixturevalue(which)
    refused = [refusals[plan.name] for plan in plans if plan.name in refusals]
    texts = [f"{item.plan.name}: {item.step} in {item.plan.steps}: {item.message}" for item in refused]
    assert not texts, "\n".join([f"{len(texts)} of {len(plans)} refused", *texts[:5]])


def test_most_plans_are_whole_and_have_replicas(plans: list[JointPlan]) -> None:
    whole = [plan for plan in plans if len(plan.steps) == plan.waiting]
    assert len(whole) >= PROBLEMS // 2
    assert sum(len(plan.steps) for plan in whole) >= 5 * len(whole)


def test_kube_scheduler_refuses_what_breaks_a_rule(spoiled: list[JointPlan], refusals: dict[str, Refusal]) -> None:
    assert len(spoiled) >= PROBLEMS // 4
    taken = [plan.name for plan in spoiled if plan.name not in refusals]
    assert not taken, f"{len(taken)} of {len(spoiled)} were taken: {taken[:5]}"


def test_each_rule_is_now_and_then_the_only_one_that_is_broken(spoiled: list[JointPlan]) -> None:
    """Else a refusal says nothing of it; required affinity holds where all share a node."""
    alone = {rule for plan in spoiled if len(broken := _broken(plan)) == 1 for rule in broken}
    assert alone >= set(RULES)

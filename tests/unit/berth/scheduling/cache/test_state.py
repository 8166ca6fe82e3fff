"""ClusterState: life of pods and nodes, and what is charged where."""

from __future__ import annotations

import numpy as np
import pytest

from berth.kube.objects import Node
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.nodes import FIXED_RESOURCES
from berth.scheduling.cache.selectors import EVERYTHING
from tests.support.builders import namespace, node, pod, pod_term

MI = 1024 * 1024
CPU, MEMORY, _, PODS = range(len(FIXED_RESOURCES))


@pytest.fixture
def state() -> ClusterState:
    state = ClusterState()
    for name in ("n0", "n1"):
        state.update_node(node(name, cpu="4", memory="8Gi", pods=10))
    return state


def cpu(state: ClusterState, name: str) -> int:
    return int(state.used[state.node_index[name], CPU])


def pods(state: ClusterState, name: str) -> int:
    return int(state.used[state.node_index[name], PODS])


def annotated(name: str) -> Node:
    made = node("n0", cpu="4", memory="8Gi", pods=10)
    made.metadata.annotations = {name: "1"}
    return made


def test_arrays_are_in_scheduler_units(state: ClusterState) -> None:
    assert state.allocatable[:, CPU].tolist() == [4000, 4000]
    assert state.allocatable[:, MEMORY].tolist() == [8192 * MI, 8192 * MI]
    assert state.allocatable[:, PODS].tolist() == [10, 10]
    assert state.used.shape == (2, len(state.resources)) == (2, 4)


def test_bound_pods_are_charged_and_released(state: ClusterState) -> None:
    state.update_pod(pod("a", on="n0", cpu="1", memory="1Mi"))
    state.update_pod(pod("b", on="n0", cpu="500m"))
    assert (cpu(state, "n0"), pods(state, "n0"), state.pod_count) == (1500, 2, 2)
    assert state.nodes.scoring_used[0].tolist() == [1500, 201 * MI]
    state.delete_pod("pod-default-a")
    assert (cpu(state, "n0"), pods(state, "n0")) == (500, 1)
    state.delete_pod("pod-default-a")
    assert pods(state, "n0") == 1


def test_deleting_pods_still_occupy_but_do_not_stay(state: ClusterState) -> None:
    state.update_pod(pod("a", on="n0", cpu="1", labels={"app": "x"}))
    state.update_pod(pod("a", on="n0", cpu="1", labels={"app": "x"}, deleting=True))
    (group,) = state.pods.matching("default", EVERYTHING)
    assert cpu(state, "n0") == 1000
    assert (dict(group.pods), dict(group.staying)) == ({0: 1}, {})


def test_resized_pod_is_charged_anew(state: ClusterState) -> None:
    state.update_pod(pod("a", on="n0", cpu="1"))
    state.update_pod(pod("a", on="n0", cpu="2"))
    assert (cpu(state, "n0"), pods(state, "n0")) == (2000, 1)


def test_assumed_pod_is_confirmed_by_the_event_that_shows_it_bound(state: ClusterState) -> None:
    state.assume(pod("a", cpu="1"), "n0")
    assert cpu(state, "n0") == 1000
    state.update_pod(pod("a", on="n0", cpu="1"))
    record = state.record("pod-default-a")
    assert record is not None
    assert not record.assumed
    assert (cpu(state, "n0"), pods(state, "n0")) == (1000, 1)


def test_assumed_pod_that_was_bound_elsewhere_moves(state: ClusterState) -> None:
    state.assume(pod("a", cpu="1"), "n0")
    state.update_pod(pod("a", on="n1", cpu="1"))
    assert (cpu(state, "n0"), cpu(state, "n1")) == (0, 1000)


def test_forget_undoes_an_assumption_only(state: ClusterState) -> None:
    state.assume(pod("a", cpu="1"), "n0")
    assert state.forget("pod-default-a")
    assert not state.forget("pod-default-a")
    state.update_pod(pod("a", on="n0", cpu="1"))
    assert not state.forget("pod-default-a")
    assert cpu(state, "n0") == 1000


def test_deleting_an_assumed_pod_releases_it(state: ClusterState) -> None:
    state.assume(pod("a", cpu="1"), "n0")
    state.delete_pod("pod-default-a")
    assert cpu(state, "n0") == 0


@pytest.mark.parametrize("bound", [False, True], ids=["assumed", "bound"])
def test_assuming_twice_is_an_error_that_names_pod_and_node(state: ClusterState, bound: bool) -> None:
    if bound:
        state.update_pod(pod("a", on="n1"))
    else:
        state.assume(pod("a"), "n1")
    with pytest.raises(ValueError, match=r"pod default/a is already (bound|assumed) on node n1"):
        state.assume(pod("a"), "n0")


def test_pods_wait_for_their_node_and_survive_it(state: ClusterState) -> None:
    state.update_pod(pod("a", on="n9", cpu="1", labels={"app": "x"}, host_ports=[80]))
    assert not state.used.any()
    state.update_node(node("n9"))
    assert cpu(state, "n9") == 1000
    state.delete_node("n9")
    assert not list(state.pods.matching("default", EVERYTHING))
    assert not list(state.pods.port_conflicts(("0.0.0.0", "TCP", 80)))
    state.update_node(node("n9"))
    assert cpu(state, "n9") == 1000
    assert [record.key for record in state.pods_on("n9")] == ["default/a"]


def test_slots_are_reused_and_clean(state: ClusterState) -> None:
    state.update_node(
        node("gpu", example_com__gpu="2", labels={"topology.kubernetes.io/zone": "z"}, unschedulable=True)
    )
    slot = state.node_index["gpu"]
    state.delete_node("gpu")
    assert state.update_node(node("n2")) == slot
    assert state.allocatable[slot, state.resources["example.com/gpu"]] == 0
    assert state.domains("topology.kubernetes.io/zone")[slot] == -1
    assert not state.nodes.unschedulable[slot]


def test_removed_node_is_not_alive(state: ClusterState) -> None:
    state.delete_node("n0")
    state.delete_node("n0")
    assert state.alive.tolist() == [False, True]
    assert list(state.node_index) == ["n1"]
    with pytest.raises(LookupError, match=r"slot 0"):
        state.node_name(0)


def test_extended_resources_get_columns_when_first_seen(state: ClusterState) -> None:
    state.update_pod(pod("a", on="n0", example_com__gpu="1"))
    state.update_node(node("n1", example_com__gpu="4"))
    column = state.resources["example.com/gpu"]
    assert state.allocatable[:, column].tolist() == [0, 4]
    assert state.used[:, column].tolist() == [1, 0]


def test_more_resources_and_nodes_than_the_arrays_began_with() -> None:
    state = ClusterState()
    for number in range(200):
        state.update_node(node(f"n{number}", extra={f"example.com/r{number % 20}": number}))
    state.update_pod(pod("a", on="n199", cpu="1"))
    assert state.allocatable.shape == (200, 24)
    assert state.allocatable[199, state.resources["example.com/r19"]] == 199
    assert cpu(state, "n199") == 1000
    assert state.alive.all()


def test_unreadable_quantity_names_node_and_leaves_it_as_it_was(state: ClusterState) -> None:
    with pytest.raises(ValueError, match=r"node n0: status\.allocatable: 'lots' is not a valid quantity"):
        state.update_node(node("n0", cpu="lots"))
    assert state.allocatable[0, CPU] == 4000


@pytest.mark.parametrize(
    ("changed", "static"),
    [
        pytest.param(node("n0", cpu="4", memory="8Gi", pods=10), False, id="heartbeat"),
        pytest.param(node("n0", cpu="8", memory="8Gi", pods=10), False, id="allocatable"),
        pytest.param(node("n0", labels={"a": "1"}), True, id="label"),
        pytest.param(node("n0", taints=["k:NoSchedule"]), True, id="taint"),
        pytest.param(node("n0", unschedulable=True), True, id="cordon"),
        pytest.param(node("n7"), True, id="new-node"),
        pytest.param(annotated("berth.dev/price-cpu"), True, id="setting"),
        pytest.param(annotated("example.com/x"), False, id="foreign-annotation"),
    ],
)
def test_static_version_grows_with_what_static_filters_read(state: ClusterState, changed: Node, static: bool) -> None:
    before = state.static_version
    state.update_node(changed)
    assert (state.static_version > before) is static


def test_template_is_compiled_once_for_all_replicas(state: ClusterState) -> None:
    one, other = (state.info(pod(name, cpu="1", labels={"app": "x"})) for name in "ab")
    assert one.template is other.template
    assert state.info(pod("c", cpu="2", labels={"app": "x"})).template is not one.template


def test_request_vector_counts_the_pod_itself(state: ClusterState) -> None:
    vector = state.request_vector(state.info(pod("a", cpu="1", memory="1Mi")).template)
    assert vector.tolist() == [1000, MI, 0, 1]
    assert vector.dtype == np.int64


def test_terms_are_found_by_the_labels_that_a_namespace_has_now(state: ClusterState) -> None:
    term = pod_term("zone", {"a": "b"}) | {"namespaceSelector": {"matchLabels": {"team": "x"}}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    state.update_pod(pod("p", on="n0", spec={"affinity": anti}))
    found = []
    labels: dict[str, str]
    for labels in ({}, {"team": "x"}, {"team": "y"}, {"team": "x", "other": "x"}):
        state.update_namespace(namespace("other", **labels))
        found.append(len(state.terms_about("anti_affinity", "other", [("a", "b")])))
    state.delete_namespace("other")
    assert (found, len(state.terms_about("anti_affinity", "other", [("a", "b")]))) == ([0, 1, 0, 1], 0)


def test_terms_and_claims_are_indexed_while_their_pods_live(state: ClusterState) -> None:
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [pod_term("zone", {"a": "b"})]}}
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    for name, where in (("a", "n0"), ("b", "n0"), ("c", "n1")):
        state.update_pod(pod(name, on=where, spec={"affinity": anti, "volumes": volumes}))
    (entry,) = state.pods.terms("anti_affinity")
    assert entry.pods == {0: 2, 1: 1}
    assert state.pods.claim_users("default/c") == {0: 2, 1: 1}
    assert state.pods.claims_on(0) == {"default/c": 2}
    for name in "abc":
        state.delete_pod(f"pod-default-{name}")
    assert not state.pods.has_terms("anti_affinity")
    assert not state.pods.claim_users("default/c")
    assert not state.pods.claims_on(0)


def test_namespace_labels(state: ClusterState) -> None:
    assert state.namespace_labels("a") is None
    state.update_namespace(namespace("a", team="red"))
    assert state.namespace_labels("a") == {"kubernetes.io/metadata.name": "a", "team": "red"}
    state.delete_namespace("a")
    assert state.namespace_labels("a") is None


def test_bad_fields_become_problems_instead_of_errors(state: ClusterState) -> None:
    term = pod_term("zone", labelSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]})
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    template = state.info(pod("a", cpu="lots", spec={"affinity": affinity})).template
    assert len(template.problems) == 2
    assert "'lots' is not a valid quantity" in template.problems[0].text
    assert str(template.problems[1]).startswith(
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions[0]"
    )

"""Whatever the order of events, the state equals one that is built from what is true in the end."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from berth.kube.objects import Node, Pod
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.pod_templates import TERM_KINDS
from berth.scheduling.cache.selectors import EVERYTHING
from tests.support.builders import node, pod, pod_term

NAMES = st.sampled_from([f"n{number}" for number in range(4)])
PODS = st.sampled_from([f"p{number}" for number in range(6)])
ANTI = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [pod_term("zone", {"app": "a"})]}}
SOFT = {
    "podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": pod_term("zone", {})}]
    }
}
VOLUMES = [{"name": "v", "persistentVolumeClaim": {"claimName": "shared"}}, {"name": "g", "iscsi": {"iqn": "disk"}}]
SPECS: list[dict[str, Any]] = [{}, {"affinity": ANTI}, {"affinity": SOFT}, {"volumes": VOLUMES}]


@st.composite
def pods(draw: st.DrawFn, where: st.SearchStrategy[str]) -> Pod:
    return pod(
        draw(PODS),
        namespace=draw(st.sampled_from(["a", "b"])),
        on=draw(where),
        labels={"app": draw(st.sampled_from("ab"))},
        deleting=draw(st.booleans()),
        host_ports=draw(st.lists(st.sampled_from([80, 81]), max_size=1)),
        spec=draw(st.sampled_from(SPECS)),
        cpu=f"{draw(st.integers(0, 2000))}m",
    )


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    return node(
        draw(NAMES),
        cpu=draw(st.integers(1, 8)),
        labels={"zone": draw(st.sampled_from("xy"))} if draw(st.booleans()) else {},
        taints=draw(st.lists(st.sampled_from(["k=v:NoSchedule", "j:PreferNoSchedule"]), unique=True)),
        unschedulable=draw(st.booleans()),
        extra={"example.com/gpu": draw(st.integers(1, 3))} if draw(st.booleans()) else {},
    )


def cache(state: ClusterState) -> dict[str, Any]:
    """The state by names instead of slots and columns."""
    names = {slot: name for name, slot in state.node_index.items()}
    free = np.flatnonzero(~state.alive)
    assert not state.used[free].any(), "a free slot is charged"
    assert not state.allocatable[free].any(), "a free slot has resources"

    def counts(found: dict[int, int]) -> dict[str, int]:
        return {names[slot]: number for slot, number in sorted(found.items())}

    zones = state.nodes.column("zone")
    table = state.nodes
    return {
        "resources": {
            name: {
                resource: (int(state.allocatable[slot, column]), int(state.used[slot, column]))
                for resource, column in state.resources.items()
                if state.allocatable[slot, column] or state.used[slot, column]
            }
            for slot, name in names.items()
        },
        "scoring": {name: state.nodes.scoring_used[slot].tolist() for slot, name in names.items()},
        "zones": {name: None if (n := zones.ids[slot]) < 0 else zones.values[n] for slot, name in names.items()},
        "taints": {name: table.taint_sets[table.taint_ids[slot]] for slot, name in names.items()},
        "unschedulable": {name: bool(table.unschedulable[slot]) for slot, name in names.items()},
        "groups": {
            (namespace, group.labels["app"]): (counts(group.pods), counts(group.staying))
            for namespace in state.pods.namespaces()
            for group in state.pods.matching(namespace, EVERYTHING)
        },
        "terms": {(k, e.term): counts(e.pods) for k in TERM_KINDS for e in state.pods.terms(k)},
        "terms about": {
            (k, one): {e.term: counts(e.pods) for e in state.terms_about(k, one, [("app", "a")])}
            for k in TERM_KINDS
            for one in ("a", "b")
        },
        "ports": [[counts(c) for c in state.pods.port_conflicts(("0.0.0.0", "TCP", port))] for port in (80, 81)],
        "claims": {key: counts(state.pods.claim_users(key)) for key in ("a/shared", "b/shared")},
        "disks": [counts(c) for c in state.pods.disk_conflicts((("iscsi", "disk"), False))],
    }


class Events(RuleBasedStateMachine):
    """Random events, with what they amount to kept beside."""

    def __init__(self) -> None:
        super().__init__()
        self.state = ClusterState()
        self.nodes: dict[str, Node] = {}
        self.placed: dict[str, Pod] = {}
        self.assumed: set[str] = set()

    @rule(item=nodes())
    def node_appears_or_changes(self, item: Node) -> None:
        self.state.update_node(item)
        self.nodes[item.metadata.name] = item

    @rule(name=NAMES)
    def node_goes(self, name: str) -> None:
        self.state.delete_node(name)
        self.nodes.pop(name, None)

    @rule(item=pods(NAMES))
    def pod_seen_bound(self, item: Pod) -> None:
        self.state.update_pod(item)
        self.placed[item.metadata.uid] = item
        self.assumed.discard(item.metadata.uid)

    @rule(item=pods(st.just("")), name=NAMES)
    def pod_is_assumed(self, item: Pod, name: str) -> None:
        if item.metadata.uid in self.placed:
            return
        self.state.assume(item, name)
        item.spec.node_name = name
        self.placed[item.metadata.uid] = item
        self.assumed.add(item.metadata.uid)

    @rule(item=pods(st.just("")))
    def assumption_is_forgotten(self, item: Pod) -> None:
        uid = item.metadata.uid
        assert self.state.forget(uid) is (uid in self.assumed)
        if uid in self.assumed:
            self.assumed.discard(uid)
            del self.placed[uid]

    @rule(item=pods(st.just("")))
    def pod_is_deleted(self, item: Pod) -> None:
        self.state.delete_pod(item.metadata.uid)
        self.placed.pop(item.metadata.uid, None)
        self.assumed.discard(item.metadata.uid)

    @invariant()
    def equals_a_state_built_afresh(self) -> None:
        fresh = ClusterState()
        for item in self.placed.values():
            fresh.update_pod(item)
        for found in self.nodes.values():
            fresh.update_node(found)
        assert cache(self.state) == cache(fresh)
        assert self.state.pod_count == len(self.placed)


TestEvents = Events.TestCase
TestEvents.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)

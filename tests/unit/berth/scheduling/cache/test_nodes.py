"""The node table's bookkeeping: label columns, taints, and not growing for ever."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from berth.kube.objects import LabelSelector
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.nodes import SPARE
from berth.scheduling.cache.selectors import compile_selector
from tests.support.builders import node, pod, taint


def test_columns_do_not_keep_every_value_ever_seen() -> None:
    state = ClusterState()
    state.update_node(node("fixed", labels={"zone": "z"}))
    state.update_node(node("n", labels={"build": "first"}))
    column = state.nodes.column("build")
    for number in range(1000):
        state.update_node(node("n", labels={"build": str(number)}))
    assert len(column.values) <= 2 * 2 + SPARE + 1
    assert column.values[column.ids[state.node_index["n"]]] == "999"
    assert column.ids[state.node_index["fixed"]] == -1


def test_taints_do_not_keep_every_value_ever_seen() -> None:
    state = ClusterState()
    state.update_node(node("fixed", taints=["k=v:NoSchedule"]))
    state.update_node(node("clean"))
    for number in range(1000):
        state.update_node(node("n", taints=[f"gone={number}:NoSchedule"]))
    table = state.nodes
    assert len(table.taint_sets) <= 2 * 3 + SPARE + 1
    found = {name: table.taint_sets[table.taint_ids[slot]] for name, slot in state.node_index.items()}
    assert found == {"fixed": (taint("k=v:NoSchedule"),), "clean": (), "n": (taint("gone=999:NoSchedule"),)}
    tolerant = state.info(pod("p", spec={"tolerations": [{"key": "k", "operator": "Exists"}]})).template
    assert state.selection.tolerated(tolerant).tolist() == [True, True, False]


@pytest.mark.parametrize("name", ["alive", "allocatable", "used"])
def test_arrays_are_closed_against_writes(name: str) -> None:
    state = ClusterState()
    state.update_node(node("n"))
    with pytest.raises(ValueError, match="read-only"):
        getattr(state, name)[:] = 0


def test_cached_masks_are_closed_against_writes() -> None:
    state = ClusterState()
    state.update_node(node("n"))
    template = state.info(pod("p", spec={"nodeSelector": {"a": "b"}})).template
    for mask in (state.selection.affinity(template), state.selection.tolerated(template)):
        with pytest.raises(ValueError, match="read-only"):
            mask[:] = True
    state.update_pod(pod("q", on="n", cpu="1"))
    assert int(np.sum(state.used)) == 1001, "the table itself still writes"


def test_selectors_find_their_pods_by_any_of_their_labels() -> None:
    state = ClusterState()
    state.update_node(node("n"))
    for number in range(5):
        labels = {"app": "x" if number % 2 else "y", "ordinal": str(number)}
        state.update_pod(pod(f"p{number}", on="n", labels=labels))

    def found(**fields: object) -> list[str]:
        selector = compile_selector(msgspec.convert(fields, LabelSelector))
        return sorted(group.labels["ordinal"] for group in state.pods.matching("default", selector))

    ordinals = {"key": "ordinal", "operator": "In", "values": ["1", "2", "9"]}
    assert found(matchLabels={"app": "x"}) == ["1", "3"]
    assert found(matchLabels={"app": "x"}, matchExpressions=[ordinals]) == ["1"]
    assert found(matchLabels={"app": "z"}) == []
    assert found() == ["0", "1", "2", "3", "4"]
    state.delete_pod("pod-default-p1")
    assert found(matchLabels={"app": "x"}) == ["3"]

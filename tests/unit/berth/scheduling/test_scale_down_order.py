"""What pods are bound with so that a ReplicaSet that shrinks deletes the right ones."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.labels import ANNOTATION_DELETION_COST
from berth.kube.objects import OwnerReference, Pod
from berth.scheduling.scale_down_order import BAND, LOWEST, ScaleDownOrder, stated_cost
from tests.support.placement import lone, member


def replica(name: str, *, of: str = "web-1", kind: str = "ReplicaSet", cost: str | None = None, **more: Any) -> Pod:
    pod = member(name, "web", **more)
    pod.metadata.owner_references = [OwnerReference(kind, of, of, controller=True)]
    if cost is not None:
        pod.metadata.annotations = {ANNOTATION_DELETION_COST: cost}
    return pod


def bound(pod: Pod, node: str, cost: int | None) -> Pod:
    """The pod as the watch shows it after its Binding."""
    shown = copy.deepcopy(pod)
    shown.spec.node_name = node
    if cost:
        shown.metadata.annotations = {ANNOTATION_DELETION_COST: str(cost)}
    return shown


def place(order: ScaleDownOrder, *nodes: str, of: str = "web-1", first: int = 0) -> list[int | None]:
    """Bind a replica to each node, one after the other, as the watch shows then."""
    costs: list[int | None] = []
    for number, node in enumerate(nodes, first):
        pod = replica(f"p{number}", of=of)
        costs.append(order.bind(pod, node))
        order.seen(pod, bound(pod, node, costs[-1]))
    return costs


@pytest.mark.parametrize(
    ("nodes", "costs"),
    [
        pytest.param(["n1"], [0], id="a-single-one-needs-none"),
        pytest.param(["n1", "n2", "n3"], [0, -1, -2], id="the-last-goes-first"),
        pytest.param(["n1", "n1", "n2"], [0, -BAND, -1], id="the-second-on-a-node-goes-before-the-first-elsewhere"),
        pytest.param(["n1", "n1", "n1", "n2", "n2"], [0, -BAND, -2 * BAND, -1, -BAND - 1], id="thirds-before-seconds"),
    ],
)
def test_costs_by_order_and_by_shared_nodes(nodes: list[str], costs: list[int]) -> None:
    assert place(ScaleDownOrder(), *nodes) == costs


def test_those_that_come_later_go_before_those_that_were_there() -> None:
    order = ScaleDownOrder()
    for pod in (bound(replica("a"), "n1", 0), bound(replica("b"), "n2", -1)):
        order.seen(None, pod)
    assert place(order, "n3", "n1") == [-2, -BAND]


def test_the_next_on_a_node_takes_the_place_of_the_one_that_is_gone_there() -> None:
    order = ScaleDownOrder()
    first = bound(replica("first"), "n1", 0)
    order.seen(None, first)
    assert place(order, "n2", "n2", "n1") == [-1, -BAND, -BAND - 1]
    order.seen(first, None)
    assert place(order, "n1", first=3) == [-2], "of two that are left none shares a node"


def test_pods_that_say_nothing_count_each_on_their_node() -> None:
    """As those that were bound while `podDeletionCost` was off."""
    order = ScaleDownOrder()
    for name, node in (("a", "n1"), ("b", "n1"), ("c", "n1"), ("d", "n2")):
        order.seen(None, bound(replica(name), node, None))
    assert place(order, "n2", "n1") == [-BAND, -3 * BAND]


def test_each_replica_set_by_itself() -> None:
    order = ScaleDownOrder()
    assert place(order, "n1", "n2") == [0, -1]
    assert place(order, "n1", "n2", of="web-2", first=2) == [0, -1]


@pytest.mark.parametrize(
    ("pod", "told"),
    [
        pytest.param(replica("p"), True, id="a-replica-of-a-member"),
        pytest.param(replica("p", kind="StatefulSet"), False, id="of-a-StatefulSet"),
        pytest.param(member("p", "web"), False, id="nobody's"),
        pytest.param(lone("p"), False, id="of-no-AppGroup"),
        pytest.param(replica("p", cost="7"), False, id="somebody-has-said-it"),
        pytest.param(replica("p", cost="much"), False, id="somebody-has-said-what-nobody-reads"),
    ],
)
def test_whom_it_is_told_of(pod: Pod, told: bool) -> None:
    order = ScaleDownOrder()
    place(order, "n1")
    pod.metadata.name = pod.metadata.uid = "another"
    assert order.bind(pod, "n2") == (-1 if told else None)


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param("deleted", id="deleted"),
        pytest.param("deleting", id="being-deleted"),
        pytest.param("finished", id="finished"),
        pytest.param("unbound", id="its-binding-failed"),
        pytest.param("left", id="of-the-AppGroup-no-more"),
        pytest.param("restored", id="without-a-node-again-as-after-a-restore-of-etcd"),
    ],
)
def test_who_is_gone_does_not_count(gone: str) -> None:
    order = ScaleDownOrder()
    first = replica("first")
    order.bind(first, "n1")
    shown = bound(first, "n1", 0)
    if gone != "unbound":
        order.seen(first, shown)
    after = copy.deepcopy(shown)
    if gone == "deleted":
        order.seen(shown, None)
    elif gone == "deleting":
        after.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
        order.seen(shown, after)
    elif gone == "finished":
        after.status.phase = "Failed"
        order.seen(shown, after)
    elif gone == "left":
        after.metadata.labels = {}
        order.seen(shown, after)
    elif gone == "restored":
        order.seen(shown, first)
    else:
        order.unbound(first)
    assert place(order, "n1") == [0]


def test_a_pod_that_is_bound_again_counts_where_it_is_then() -> None:
    order = ScaleDownOrder()
    pod = replica("p")
    order.bind(pod, "n1")
    order.bind(pod, "n2")
    assert place(order, "n1", "n2") == [-1, -BAND]


def test_a_waiting_pod_that_the_watch_shows_again_keeps_its_place() -> None:
    order = ScaleDownOrder()
    pod = replica("p")
    order.bind(pod, "n1")
    order.seen(pod, pod)
    assert place(order, "n1") == [-BAND]


def test_costs_of_others_leave_the_next_ones_in_their_band() -> None:
    order = ScaleDownOrder()
    for name, node, cost in (("a", "n1", "500"), ("b", "n2", "-3"), ("c", "n3", str(LOWEST))):
        order.seen(None, bound(replica(name, cost=cost), node, int(cost)))
    assert place(order, "n4") == [-4]
    assert place(order, "n1", first=1) == [-BAND]


@pytest.mark.parametrize(
    ("lowest", "cost"),
    [
        pytest.param(-BAND + 2, -BAND + 1, id="the-last-of-its-band"),
        pytest.param(-BAND + 1, -BAND + 1, id="a-full-band-is-not-left"),
    ],
)
def test_the_end_of_a_band(lowest: int, cost: int) -> None:
    order = ScaleDownOrder()
    order.seen(None, bound(replica("a"), "n1", lowest))
    assert place(order, "n2") == [cost]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("0", 0),
        ("-5", -5),
        ("2147483647", 2**31 - 1),
        ("-2147483648", -(2**31)),
        ("2147483648", None),
        ("-2147483649", None),
        ("+5", None),
        ("05", None),
        ("-0", 0),
        ("-05", -5),
        ("9" * 5000, None),
        ("5.0", None),
        ("", None),
        ("٣", None),
    ],
)
def test_an_annotation_is_read_as_a_replica_set_does(text: str, cost: int | None) -> None:
    assert stated_cost(replica("p", cost=text)) == cost


@given(
    steps=st.lists(
        st.one_of(st.tuples(st.sampled_from(["n1", "n2", "n3"]), st.booleans()), st.integers(0, 5)),
        max_size=30,
    )
)
def test_whatever_comes_and_goes_pods_go_by_shared_nodes_and_then_the_last_first(
    steps: list[tuple[str, bool] | int],
) -> None:
    order, there = ScaleDownOrder(), dict[str, tuple[int, int, Pod]]()
    for number, step in enumerate(steps):
        if isinstance(step, int):
            names = list(there)
            if names:
                order.seen(there.pop(names[step % len(names)])[2], None)
            continue
        pod, (node, told) = replica(f"p{number}"), step
        if not told:
            there[pod.metadata.uid] = 0, 0, bound(pod, node, None)
            order.seen(None, there[pod.metadata.uid][2])
            continue
        here = [band for band, _, each in there.values() if each.spec.node_name == node]
        shared = min(band for band in range(len(here) + 1) if sum(each <= band for each in here) <= band)
        cost = order.bind(pod, node)
        assert cost is not None
        assert LOWEST <= cost <= 0
        assert all(cost < other for band, other, _ in there.values() if band <= shared)
        assert all(cost > other for band, other, _ in there.values() if band > shared)
        there[pod.metadata.uid] = shared, cost, bound(pod, node, cost)
        order.seen(pod, there[pod.metadata.uid][2])

"""Pods counted by workload and node."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth.network.groups import GroupKey
from berth.network.members import GroupMembers
from berth.network.workload_places import WorkloadPlaces
from tests.support.placement import member

KEY = GroupKey("default", "shop")


def counted(places: WorkloadPlaces) -> dict[str, tuple[int, dict[str, int]]]:
    return {one: (places.replicas(one), dict(places.nodes(one))) for one in ("a", "b")}


def staying(places: WorkloadPlaces) -> dict[str, dict[str, int]]:
    return {one: dict(places.staying(one)) for one in ("a", "b")}


def test_waiting_pods_are_replicas_without_a_node() -> None:
    members = GroupMembers()
    members.update(member("a1", "a"), node="")
    members.update(member("a2", "a"), node="n1")
    assert counted(members.places(KEY)) == {"a": (2, {"n1": 1}), "b": (0, {})}


def test_an_unknown_group_has_no_pods() -> None:
    assert counted(GroupMembers().places(KEY)) == {"a": (0, {}), "b": (0, {})}


def test_workloads_that_nobody_has_any_more_take_no_memory() -> None:
    members = GroupMembers()
    for number in range(100):
        members.update(member("a1", f"w{number}"), node="n1")
    places = members.places(KEY)
    assert list(places._nodes) == list(places._replicas) == ["w99"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["one", "two", "three"]),
            st.sampled_from(["a", "b"]),
            st.sampled_from(["", "n1", "n2", "moved", "gone"]),
            st.booleans(),
        )
    )
)
def test_counts_follow_the_members(steps: list[tuple[str, str, str, bool]]) -> None:
    members = GroupMembers()
    for name, workload, node, deleting in steps:
        pod = member(name, workload, deleting=deleting)
        if node == "gone":
            members.delete(pod.metadata.uid)
        elif node == "moved":
            members.move(pod.metadata.uid, node="n3")
        else:
            members.update(pod, node=node)
    assert counted(members.places(KEY)) == counted(WorkloadPlaces(members.of(KEY)))
    here = [one for one in members.of(KEY) if not one.terminating]
    assert staying(members.places(KEY)) == staying(WorkloadPlaces(here))
    assert staying(WorkloadPlaces(here)) == {one: dict(WorkloadPlaces(here).nodes(one)) for one in ("a", "b")}

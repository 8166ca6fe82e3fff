"""Who takes volumes first; how plans go by it is in ../test_planner_volumes.py."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import Pod
from berth.scheduling.cache import ClusterState
from berth.scheduling.replica_plan.choosiness import EASY, Choosing
from tests.support.placement import member, zoned
from tests.support.volumes import claim, storage_class, store, using, volume

LOCAL: dict[str, Any] = {"storageClassName": "local"}


@pytest.fixture
def state() -> ClusterState:
    made = ClusterState()
    for name in ("n1", "n2"):
        made.update_node(zoned(name, labels={"zone": name}))
    return store(made, storage_class(), storage_class("local", provisioner="kubernetes.io/no-provisioner"))


def order(state: ClusterState, pods: dict[str, tuple[Pod, str]]) -> list[str]:
    """Names of pods, each with the node that is planned for it, as they take volumes."""
    choosing = Choosing((pod for pod, _ in pods.values()), state)
    ranks = {name: choosing.of(pod, state.node_index[node]) for name, (pod, node) in pods.items()}
    assert len({*ranks.values()}) == len(ranks)
    return sorted(ranks, key=ranks.__getitem__)


def user(name: str, *claims: str) -> Pod:
    return member(name, "a", spec=using(*claims))


def test_who_asks_for_more_comes_first_where_as_many_volumes_are_found(state: ClusterState) -> None:
    store(
        state,
        claim("labelled", selector={"matchLabels": {"a": "b"}}, **LOCAL),
        claim("shared", accessModes=["ReadWriteMany"], **LOCAL),
        claim("large", "2Gi", **LOCAL),
        *(claim(name, **LOCAL) for name in ("one", "two", "three")),
        claim("bound", "9Gi", bound_to="v"),
    )
    claims = [("labelled",), ("shared",), ("large",), ("one", "two"), ("three",), ("bound",)]
    pods = {" ".join(each): (user(f"p{number}", *each), "n1") for number, each in enumerate(claims)}
    assert order(state, pods) == list(pods)


def test_who_finds_fewer_volumes_on_its_node_comes_first(state: ClusterState) -> None:
    """A volume of both nodes and one of n2: who is on n1 needs the first, and one that asks for less as well."""
    store(state, volume("both", "2Gi", **LOCAL), volume("n2-alone", "2Gi", zone="n2", **LOCAL))
    store(state, claim("large", "2Gi", **LOCAL), claim("small", **LOCAL))
    pods = {"choosy": (user("p", "large"), "n2"), "confined": (user("q", "small"), "n1")}
    assert order(state, pods) == ["confined", "choosy"]


def test_of_several_claims_the_one_with_the_fewest_volumes_counts(state: ClusterState) -> None:
    labels = {"tier": "x"}
    store(state, *(volume(f"v{number}", zone="n1", **LOCAL) for number in range(3)))
    store(state, volume("x", zone="n1", labels=labels, **LOCAL))
    store(state, claim("any", **LOCAL), claim("large", "1Gi", **LOCAL), claim("more", **LOCAL))
    store(state, claim("labelled", selector={"matchLabels": labels}, **LOCAL))
    pods = {"two": (user("p", "any", "large"), "n1"), "one of x": (user("q", "more", "labelled"), "n1")}
    assert order(state, pods) == ["one of x", "two"]


@pytest.mark.parametrize("claims", [(), ("bound",), ("missing",)], ids=" ".join)
def test_who_takes_no_volume_comes_last(state: ClusterState, claims: tuple[str, ...]) -> None:
    store(state, claim("bound", bound_to="v"))
    pod = user("p", *claims)
    assert Choosing([pod], state).of(pod, 0) == EASY

"""What a Binding tells the ReplicaSet of its pod, for the day when that shrinks."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from berth.api.labels import ANNOTATION_DELETION_COST
from berth.kube.objects import OwnerReference, Pod
from controllers.placement.binder import BindOutcome, BindResult
from controllers.placement.binding_cycle import Assumed
from tests.support.desk import Desk
from tests.support.placement import chain, group_object, member

SHOP = group_object("shop", *chain("web", "db"))


def replica(name: str, kind: str = "ReplicaSet") -> Pod:
    pod = member(name, "web")
    pod.metadata.owner_references = [OwnerReference(kind, "web-5d", "web-5d", controller=True)]
    return pod


def costs(desk: Desk, *names: str, kind: str = "ReplicaSet") -> list[str]:
    """What replicas are bound with, each decided and bound by itself."""
    return [cost_of(desk, desk.place(replica(name, kind))) for name in names]


def cost_of(desk: Desk, assumed: Assumed) -> str:
    return desk.controller.binding._annotations(assumed)["deletion_cost"]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return desk_of(tmp_path)


def desk_of(directory: Path, configuration: str = "{}") -> Desk:
    """One that knows the AppGroup, and how many pods its ReplicaSets are to have."""
    config = directory / "placement.yaml"
    config.write_text(configuration)
    desk = Desk(config)
    desk.see("appgroups", SHOP)
    desk.pods(member("db", "db", on="n2"))
    return desk


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        pytest.param("ReplicaSet", ["", "-1"], id="of a ReplicaSet"),
        pytest.param("StatefulSet", ["", ""], id="of a StatefulSet"),
    ],
)
def test_the_second_replica_goes_before_the_first(desk: Desk, kind: str, found: list[str]) -> None:
    assert costs(desk, "a", "b", kind=kind) == found


def test_those_of_a_process_before_count(desk: Desk) -> None:
    bound = replica("a")
    bound.spec.node_name = "n1"
    bound.metadata.annotations = {ANNOTATION_DELETION_COST: "-7"}
    desk.pods(bound)
    assert costs(desk, "b") == ["-8"]


def test_one_that_is_not_bound_shares_its_node_with_nobody(desk: Desk) -> None:
    assert costs(desk, "a") == [""]
    second = desk.place(replica("b"))
    assert cost_of(desk, second) == "-1"
    desk.controller.binding.settle(second, BindResult(BindOutcome.REFUSED, "no"))
    desk.lose("pods", second.decision.pod)
    assert costs(desk, "c") == ["-2"]


def test_what_somebody_has_written_since_the_decision_stays(desk: Desk) -> None:
    costs(desk, "a")
    pod = replica("b")
    assumed = desk.place(pod)
    marked = copy.deepcopy(pod)
    marked.metadata.annotations = {ANNOTATION_DELETION_COST: "5"}
    desk.pods(marked)
    assert cost_of(desk, assumed) == ""


def test_volumes_that_are_waited_for_change_nothing_in_the_order_of_a_plan(desk: Desk) -> None:
    desk.pods(replica("a"), replica("b"))
    first, second = desk.decide()
    assert [cost_of(desk, second), cost_of(desk, first)] == ["-1", ""]


async def test_one_that_was_gone_when_it_was_decided_counts_nowhere(desk: Desk) -> None:
    assumed = desk.place(replica("a"))
    desk.lose("pods", assumed.decision.pod)
    desk.controller.binding.submit(assumed.decision, assumed.costs)
    await desk.bind(desk.decide()[0])
    assert costs(desk, "b") == [""]


def test_where_annotations_are_full_it_is_left_out(desk: Desk) -> None:
    costs(desk, "a")
    pod = replica("b")
    pod.metadata.annotations = {"note": "x" * (256 * 1024 - 10)}
    assert cost_of(desk, desk.place(pod)) == ""


def test_a_configuration_may_leave_it_to_age_and_shared_nodes(tmp_path: Path) -> None:
    assert costs(desk_of(tmp_path, "podDeletionCost: false"), "a", "b") == ["", ""]

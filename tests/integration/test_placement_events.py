"""How many requests the members of an AppGroup cause while it gathers, and what a user sees meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.placing import Stage, chain, configuration, profile

MEMBERS = 200


@pytest.fixture(scope="module")
def controller(own_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    """The placement controller; its groups wait for as long as it takes."""
    directory = tmp_path_factory.mktemp("controller")
    arguments = ["--no-leader-elect", *configuration(directory, profile(waitSeconds=600))]
    with ControllerProcess.start(
        ["placement"], kubeconfig=own_cluster.kubeconfig, directory=directory, arguments=arguments
    ) as process:
        yield process.wait_ready()


def writes(controller: ControllerProcess, resource: str) -> int:
    """Requests so far that wrote objects of a kind."""
    return sum(
        int(controller.metric("berth_api_requests_total", verb=verb, resource=resource)) for verb in ("POST", "PATCH")
    )


def test_members_that_come_one_by_one_are_told_once(own_cluster: LocalCluster, controller: ControllerProcess) -> None:
    stage = Stage(own_cluster)
    stage.nodes("n1", pods=2 * MEMBERS, cpu="64")
    stage.apply(chain("web", "db", members=MEMBERS))
    eventually(
        lambda: controller.metric("berth_cached_objects", resource="appgroups") == 1, what="the AppGroup is seen"
    )
    events, pods = writes(controller, "events"), writes(controller, "pods")
    for number in range(MEMBERS - 1):
        stage.pod(f"p{number}", cpu="10m", memory="1Mi", group="shop", workload="web")
        eventually(
            lambda: controller.metric("berth_placement_attempts_total", entry="group", result="waiting"),
            accept=float(number + 1).__le__,
            what="an attempt with the pod that came",
        )
    # Whoever looks at a pod or at the AppGroup sees why nothing is placed.
    stage.wait_event("shop", "WaitingForMembers", "of 200 pods")
    for name in ("p0", f"p{MEMBERS - 2}"):
        eventually(
            partial(stage.condition, name),
            accept=lambda found: found.get("reason") == "WaitingForMembers",
            what=f"why {name} waits",
        )
        stage.wait_event(name, "WaitingForMembers", "AppGroup shop")
    stage.pod("last", cpu="10m", memory="1Mi", group="shop", workload="db")
    stage.wait_bound(timeout=60)
    for name in stage.pods():
        stage.wait_event(name, "Scheduled")
    stage.wait_event("shop", "Placed")
    # Of each pod: that it waits and that it is placed; of the group: that it gathers, now and then, and is placed. On a
    # busy machine all of it takes minutes, and that is told oftener.
    assert writes(controller, "events") - events <= 2 * MEMBERS + MEMBERS / 10
    # Of each pod: the condition while it waits, and the binding.
    assert writes(controller, "pods") - pods <= 2 * MEMBERS + MEMBERS / 10

"""Which policies are due after a change."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from berth.kube.objects import ObjectMeta
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.cache.cache import Cache
from controllers.latency.candidates import Candidates
from controllers.latency.handlers import Handlers
from controllers.latency.objects import AddressedPod, AddressedService, Deployment, NetworkNode, ServiceAddresses
from controllers.latency.places import Places
from controllers.latency.policies import Policies
from controllers.latency.workloads import Workloads
from tests.unit.controllers.latency.test_workloads import autoscaler, deployment, policy, web_pod


class Noted(WorkQueue[str]):
    """Keeps what is due, and does nothing about it."""

    def __init__(self) -> None:
        super().__init__(lambda key: key.partition("/")[0])
        self.due: list[str] = []
        self.all_added = 0

    def add(self, key: str, *, delay: float = 0.0) -> None:
        assert delay > 0, "changes are gathered"
        self.due.append(key)

    def add_known(self, *, delay: float = 0.0) -> None:
        self.all_added += 1


class Stand:
    """Handlers that know of two policies on one Deployment, and one on another."""

    def __init__(self) -> None:
        self.queue, self.places = Noted(), Places([])
        self.policies = Policies()
        self.handlers = Handlers(
            self.queue,
            policies=self.policies,
            workloads=Workloads(),
            candidates=Candidates(Cache(clock=time.monotonic)),
            places=self.places,
        )
        for each in (policy(), policy("again"), policy("other", target="db")):
            self.handlers.policy_changed(None, each)
        self.queue.due.clear()

    def after(self, change: Callable[[Handlers], Any]) -> set[str]:
        """Keys that are due after a change, but for those that were before."""
        self.queue.due.clear()
        change(self.handlers)
        return set(self.queue.due)


OF_WEB = {"shop/web", "shop/again"}
NODE = NetworkNode(metadata=ObjectMeta(name="a"))


def renamed() -> Deployment:
    found = deployment()
    found.metadata.name = "nobody"
    return found


@pytest.mark.parametrize(
    ("change", "due"),
    [
        pytest.param(lambda h: h.deployment_changed(None, deployment()), OF_WEB, id="their Deployment"),
        pytest.param(lambda h: h.deployment_changed(None, renamed()), set(), id="another Deployment"),
        pytest.param(lambda h: h.deployment_changed(deployment(), None), OF_WEB, id="their Deployment is gone"),
        pytest.param(lambda h: h.autoscaler_changed(None, autoscaler()), OF_WEB, id="an autoscaler of theirs"),
        pytest.param(
            lambda h: h.autoscaler_changed(autoscaler(), autoscaler("db")),
            OF_WEB | {"shop/other"},
            id="one that goes elsewhere",
        ),
        pytest.param(lambda h: h.pod_changed(None, web_pod("u1")), OF_WEB, id="a pod of theirs"),
        pytest.param(lambda h: h.pod_changed(web_pod("u1"), None), OF_WEB, id="a pod of theirs is gone"),
        pytest.param(lambda h: h.told("shop/web"), {"shop/web"}, id="a meter of one"),
        pytest.param(
            lambda h: h.policy_changed(policy(), policy(version=2)), {"shop/web"}, id="the policy, its target as before"
        ),
        pytest.param(
            lambda h: h.policy_changed(policy("again"), None), OF_WEB, id="one that is gone, and the other works again"
        ),
        pytest.param(
            lambda h: h.policy_changed(policy(), policy(version=2, target="db")),
            OF_WEB | {"shop/other"},
            id="one that goes from one Deployment to another",
        ),
        pytest.param(
            lambda h: h.policy_changed(policy(), policy(version=2, hardMaxLatency="near")),
            OF_WEB,
            id="one that cannot be read any more",
        ),
    ],
)
def test_what_is_due(change: Callable[[Handlers], Any], due: set[str]) -> None:
    stand = Stand()
    assert stand.after(change) == due
    assert stand.queue.all_added == 0


def test_nodes_that_come_and_go_make_all_due_and_others_none() -> None:
    stand = Stand()
    stand.handlers.node_changed(None, NODE)
    assert (stand.queue.all_added, stand.queue.due) == (1, [])
    stand.handlers.node_changed(NODE, NODE)
    assert stand.queue.all_added == 1
    stand.handlers.node_changed(NODE, None)
    assert stand.queue.all_added == 2


def test_one_that_cannot_be_read_counts_for_nothing_until_it_can() -> None:
    stand = Stand()
    stand.handlers.policy_changed(policy(), policy(version=2, hardMaxLatency="near"))
    assert stand.policies.get("shop/web") is None
    stand.handlers.policy_changed(policy(version=2, hardMaxLatency="near"), policy(version=3))
    assert stand.policies.get("shop/web") is not None


@pytest.mark.parametrize("kind", ["pod", "service"])
def test_nobody_is_probed_at_an_address_that_something_in_the_cluster_has(kind: str) -> None:
    stand, address = Stand(), "10.77.0.5"
    if kind == "pod":
        pod = AddressedPod(metadata=ObjectMeta(name="p", namespace="shop", uid="p"))
        pod.addresses = (address,)
        change: Callable[[Any, Any], None] = stand.handlers.pod_changed
        there: Any = pod
    else:
        change = stand.handlers.service_changed
        there = AddressedService(metadata=ObjectMeta(name="s"), spec=ServiceAddresses([address]))
    change(None, there)
    assert not stand.places.may_probe(address)
    change(there, None)
    assert stand.places.may_probe(address)

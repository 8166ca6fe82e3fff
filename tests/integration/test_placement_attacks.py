"""Everything changes while an application is placed: AppGroups, Services, rules, replicas and nodes, at random.

Bindings are held back now and then, so that changes come between plan and binding. Once all nodes take pods again,
every pod gets one, no rule between pods was broken, and no pod was moved.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.bindings import BindingHistory, over_committed
from tests.support.faults import Fault, FaultProxy, Rule
from tests.support.placing import Stage, chain, configuration, profile

STEPS = 30
ZONES = "abc"
NODES = [f"{zone}{number}" for zone in ZONES for number in range(3)]
WORKLOADS = ("web", "cart", "db")
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SERVICES: list[dict[str, Any]] = [
    {"trafficDistribution": "PreferClose"},
    {"internalTrafficPolicy": "Local"},
    {"internalTrafficPolicy": "Cluster"},
    {"selector": {"app": "db"}},
]
UNUSABLE: list[dict[str, Any]] = [{"unschedulable": True}, {"taints": [{"key": "x", "effect": "NoSchedule"}]}]
APART = "apart"


def rules(kind: str, workload: str) -> dict[str, Any]:
    """Fields of a pod's spec."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    own, last = ({"matchLabels": {"app": name}} for name in (workload, "db"))
    if kind == APART:
        return {"affinity": {"podAntiAffinity": {required: [{"topologyKey": HOST, "labelSelector": own}]}}}
    if kind in (HOST, ZONE):
        return {"affinity": {"podAffinity": {required: [{"topologyKey": kind, "labelSelector": last}]}}}
    if kind == "spread":
        constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": own}
        return {"topologySpreadConstraints": [constraint]}
    return {}


@pytest.fixture(scope="module")
def proxy(own_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultProxy]:
    """The network between controller and API server, with a controller behind it."""
    directory = tmp_path_factory.mktemp("controller")
    arguments = ["--no-leader-elect", *configuration(directory, profile(waitSeconds=4), bindingsInFlight=4)]
    with (
        FaultProxy(own_cluster, directory=tmp_path_factory.mktemp("proxy")) as proxy,
        ControllerProcess.start(
            ["placement"], kubeconfig=proxy.kubeconfig, directory=directory, arguments=arguments
        ) as process,
    ):
        process.wait_ready()
        yield proxy


class Attack:
    """One application and what is done to it."""

    def __init__(self, stage: Stage, proxy: FaultProxy, seed: int) -> None:
        self.stage, self._proxy, self._rng = stage, proxy, random.Random(seed)
        self._kinds = {name: self._rng.choice(["", APART, HOST, ZONE, "spread"]) for name in WORKLOADS}
        self.pods: dict[str, tuple[str, str]] = {}
        """workload and rule of each pod"""
        self._number, self._services, self._held = 0, set[str](), list[Rule]()

    def add(self, workload: str) -> None:
        """One more replica."""
        self._number += 1
        name, kind = f"{workload}-{self._number}", self._kinds[workload]
        group = self._rng.choice(["shop", "shop", "shop", "second"])
        self.stage.pod(
            name, cpu="200m", group=group, workload=workload, labels={"app": workload}, **rules(kind, workload)
        )
        self.pods[name] = workload, kind

    def delete(self, name: str) -> None:
        """One replica less."""
        self.stage.delete_pod(name)
        del self.pods[name]

    def step(self) -> None:
        """Change something."""
        rng, stage = self._rng, self.stage
        workload, node = rng.choice(WORKLOADS), rng.choice(NODES)
        match rng.choice(["scale", "scale", "shrink", "rules", "node", "mend", "replace", "service", "group", "hold"]):
            case "scale":
                for _ in range(rng.randint(1, 3)):
                    self.add(rng.choice(WORKLOADS))
            case "shrink" if self.pods:
                self.delete(rng.choice(sorted(self.pods)))
            case "rules":
                self._kinds[workload] = rng.choice(["", APART, HOST, ZONE, "spread"])
                for name in [name for name, (owner, _) in self.pods.items() if owner == workload]:
                    self.add(workload)
                    self.delete(name)
            case "node":
                stage.change_node(node, {"spec": rng.choice(UNUSABLE)})
            case "mend":
                self.mend(node)
            case "replace":
                for name in [name for name, home in stage.bound().items() if home == node and name in self.pods]:
                    self.add(self.pods[name][0])
                    self.delete(name)
                stage.change_node(node, {"spec": {"unschedulable": True}})
            case "service":
                self._serve(workload, rng.choice(SERVICES))
            case "group":
                stage.apply(chain(*WORKLOADS, name=rng.choice(["shop", "second"]), members=rng.choice([3, 6])))
            case "hold":
                self.release()
                self._held.append(self._proxy.add(Fault.HOLD))

    def _serve(self, workload: str, spec: dict[str, Any]) -> None:
        path = f"/api/v1/namespaces/{self.stage.name}/services"
        if workload in self._services:
            kind = "application/merge-patch+json"
            self.stage.api.request("PATCH", f"{path}/{workload}", {"spec": spec}, content_type=kind)
            return
        body = {"selector": {"app": workload}, "ports": [{"port": 80}], **spec}
        self.stage.api.request("POST", path, {"metadata": {"name": workload}, "spec": body})
        self._services.add(workload)

    def mend(self, node: str) -> None:
        """Have a node take pods again."""
        self.stage.change_node(node, {"spec": {"unschedulable": None, "taints": None}})

    def release(self) -> None:
        """Let bindings go on."""
        for rule in self._held:
            self._proxy.release(rule)
        self._held.clear()
        self._proxy.clear()

    def end(self) -> None:
        """Let everybody have what he needs: nodes, AppGroups, and one of those that others must be near."""
        self.release()
        for node in NODES:
            self.mend(node)
        for group in ("shop", "second"):
            self.stage.apply(chain(*WORKLOADS, name=group))
        self._kinds["db"] = ""
        self.add("db")


@pytest.mark.parametrize("seed", range(4))
def test_whatever_changes_all_are_placed_in_the_end(own_cluster: LocalCluster, proxy: FaultProxy, seed: int) -> None:
    stage = Stage(own_cluster)
    for zone in ZONES:
        stage.nodes(*[node for node in NODES if node[0] == zone], zone=f"z{zone}", cpu="4")
    stage.costs(names=[f"z{zone}" for zone in ZONES])
    attack = Attack(stage, proxy, seed)
    with BindingHistory(own_cluster) as history:
        for _ in range(STEPS):
            attack.step()
        attack.end()
        bound = stage.wait_bound()
    for name, (workload, kind) in attack.pods.items():
        beside = [
            other
            for other, (owner, _) in attack.pods.items()
            if other != name and owner == workload and bound[other] == bound[name]
        ]
        assert kind != APART or not beside, f"{name} is beside {beside}"
    assert history.moved() == {}
    assert over_committed(own_cluster) == []
    stage.close()

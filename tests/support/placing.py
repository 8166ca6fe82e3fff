"""Placement on a real cluster: a stage of nodes and pods of a test's own.

Many stages share one cluster and one controller: a stage has its own namespace and its own nodes, and its pods ask for
those by node selector. Nothing here waits for time to pass; what must not happen is looked for after a later pod,
the witness, has been bound.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import yaml

from berth.api import appgroup, networktopology
from berth.api.labels import ANNOTATION_DECISION, LABEL_APPGROUP, LABEL_WORKLOAD, WEIGHTS_ALLOCATED
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.events import EventRecorder
from berth.kube.precedence import Precedence
from berth.runtime.component import ComponentContext
from berth.runtime.health import Checks
from controllers.placement.controller import PlacementController
from controllers.placement.settings import PlacementSettings
from hack.harness.cluster import PATIENCE, eventually
from hack.localcluster import LocalCluster
from hack.localcluster.components import Options
from hack.localcluster.rest import ApiError
from hack.localcluster.topology import NodeSpec

SCHEDULER = "berth-scheduler"
STAGE_LABEL = "test.berth.dev/stage"

BARE: dict[str, Any] = {
    "kwok": False,
    "options": Options(
        controller_manager=False,
        apiserver_args=("--disable-admission-plugins=TaintNodesByCondition,ServiceAccount",),
    ),
}
"""Arguments of a cluster of etcd and kube-apiserver alone, where nothing but Berth and the test changes anything.

Without kube-controller-manager nobody would take the taint from new nodes or give service accounts to namespaces."""
_PLURALS = {
    appgroup.KIND: f"/apis/{appgroup.API_VERSION}/namespaces/{{}}/{appgroup.PLURAL}",
    networktopology.KIND: f"/apis/{networktopology.API_VERSION}/namespaces/{{}}/{networktopology.PLURAL}",
}

Objects = list[dict[str, Any]]


def configuration(directory: Path, *profiles: dict[str, Any], **fields: Any) -> list[str]:
    """Arguments that give the placement controller these profiles; `fields` stand beside them, by their API names."""
    path = directory / f"placement-{secrets.token_hex(3)}.yaml"
    path.write_text(yaml.safe_dump({**fields, "profiles": list(profiles) or [{}]}))
    return ["--placement-config", str(path)]


def profile(name: str = SCHEDULER, **gang: Any) -> dict[str, Any]:
    """Profile of a scheduler name with settings of ``gang``; a plan has the time that it takes on a busy machine."""
    return {"schedulerName": name, "gang": {"planningSeconds": 20, **gang}}


class Stage:
    """A namespace, nodes and pods."""

    def __init__(self, cluster: LocalCluster, *, name: str = "") -> None:
        """Make the namespace; the nodes come by :meth:`nodes`."""
        self.cluster = cluster
        self.name = name or f"s-{secrets.token_hex(4)}"
        self.api = cluster.api()
        self._request("POST", "/api/v1/namespaces", {"metadata": {"name": self.name}})
        # Clusters without kube-controller-manager have nobody else to make it.
        self._request("POST", f"/api/v1/namespaces/{self.name}/serviceaccounts", {"metadata": {"name": "default"}})
        self._pods = f"/api/v1/namespaces/{self.name}/pods"

        self._nodes: list[str] = []

    def close(self) -> None:
        """Delete the nodes, and the namespace, unawaited."""
        for name in self._nodes:
            self.delete_node(name)
        self.api.raw("DELETE", f"/api/v1/namespaces/{self.name}")
        self.api.close()

    def _request(self, method: str, path: str, body: Any = None, **arguments: Any) -> Any:
        """A request; an object that exists already is left alone."""
        try:
            return self.api.request(method, path, body, **arguments)
        except ApiError as error:
            if method != "POST" or error.status != 409:
                raise
            return None

    # Making things

    def nodes(
        self, *names: str, zone: str = "z1", region: str = "r1", pods: int = 110, taint: str = "", **capacity: str
    ) -> list[str]:
        """Create nodes of this stage; their names begin with the stage's."""
        amounts = {"cpu": "4", "memory": "16Gi", "pods": str(pods), **capacity}
        key, _, effect = taint.partition(":")
        specs = [
            NodeSpec(
                name=self.node(name),
                region=f"{self.name}-{region}",
                zone=f"{self.name}-{zone}",
                capacity=amounts,
                allocatable=amounts,
                labels={STAGE_LABEL: self.name},
                annotations={},
                taints=({"key": key, "effect": effect},) if taint else (),
            )
            for name in names
        ]
        self.cluster.create_nodes(specs)
        self._nodes += names
        return [spec.name for spec in specs]

    def node(self, name: str) -> str:
        """Full name of a node of this stage."""
        return f"{self.name}-{name}"

    def change_node(self, name: str, body: dict[str, Any], *, status: bool = False) -> None:
        """Merge-patch a node, or its status."""
        path = f"/api/v1/nodes/{self.node(name)}{'/status' if status else ''}"
        self._request("PATCH", path, body, content_type="application/merge-patch+json")

    def delete_node(self, name: str) -> None:
        """Delete a node."""
        self._request("DELETE", f"/api/v1/nodes/{self.node(name)}")

    def costs(self, *, zones: float = 5.0, regions: float = 50.0, names: Iterable[str] = ("z1", "z2")) -> None:
        """A NetworkTopology for the stage's zones, each pair at one cost, and regions r1 and r2."""
        self.apply(
            {
                "apiVersion": networktopology.API_VERSION,
                "kind": networktopology.KIND,
                "metadata": {"name": "net"},
                "spec": {
                    "configmapName": "",
                    "weights": [
                        {
                            "name": "UserDefined",
                            "topologyList": [
                                _costs("zone", [f"{self.name}-{name}" for name in names], zones),
                                _costs("region", [f"{self.name}-r1", f"{self.name}-r2"], regions),
                            ],
                        }
                    ],
                },
            }
        )

    def links(self, **capacity: str) -> None:
        """A NetworkTopology whose zones have cost 5 and these capacities, such as ``z1_z2="1M"``; in one direction."""
        rows = []
        for pair, amount in capacity.items():
            origin, other = (f"{self.name}-{zone}" for zone in pair.split("_"))
            rows.append(
                {
                    "origin": origin,
                    "costList": [{"destination": other, "networkCost": 5, "bandwidthCapacity": amount}],
                }
            )
        level = {"topologyKey": "topology.kubernetes.io/zone", "originList": rows}
        self.apply(
            {
                "apiVersion": networktopology.API_VERSION,
                "kind": networktopology.KIND,
                "metadata": {"name": "net"},
                "spec": {"configmapName": "", "weights": [{"name": "UserDefined", "topologyList": [level]}]},
            }
        )

    def apply(self, document: dict[str, Any]) -> None:
        """Apply an AppGroup or NetworkTopology in the stage's namespace."""
        name = document["metadata"]["name"]
        body = {**document, "metadata": {"name": name, "namespace": self.name}}
        path = f"{_PLURALS[document['kind']].format(self.name)}/{name}?fieldManager=test&force=true"
        self._request("PATCH", path, body, content_type="application/apply-patch+yaml")

    def topology(self) -> dict[str, Any]:
        """The NetworkTopology `net` of the stage as it is now."""
        found: dict[str, Any] = self._request("GET", f"{_PLURALS[networktopology.KIND].format(self.name)}/net")
        return found

    def overwrite_allocated(self, amount: str) -> None:
        """Write this into every entry of the weight set BandwidthAllocated, as somebody does by hand."""
        weights = self.topology()["spec"]["weights"]
        (ours,) = (item for item in weights if item["name"] == WEIGHTS_ALLOCATED)
        for level in ours["topologyList"]:
            for row in level["originList"]:
                row["costList"] = [{**cost, "bandwidthAllocated": amount} for cost in row["costList"]]
        path = f"{_PLURALS[networktopology.KIND].format(self.name)}/net"
        self._request("PATCH", path, {"spec": {"weights": weights}}, content_type="application/merge-patch+json")

    def delete_group(self, name: str) -> None:
        """Delete an AppGroup."""
        self._request("DELETE", f"{_PLURALS[appgroup.KIND].format(self.name)}/{name}")

    def pod(
        self,
        name: str,
        *,
        cpu: str = "100m",
        memory: str = "64Mi",
        group: str = "",
        workload: str = "",
        labels: dict[str, str] | None = None,
        owner: str = "",
        **spec: Any,
    ) -> str:
        """Create a pod for Berth that asks for the stage's nodes, with further fields of its spec; returns its uid."""
        own = {LABEL_APPGROUP: group, LABEL_WORKLOAD: workload} if group else {}
        metadata: dict[str, Any] = {"name": name, "labels": {**own, **(labels or {})}}
        if owner:
            # Only the uid counts for placement; garbage collection does not follow owners that it has never seen.
            metadata["ownerReferences"] = [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner, "controller": True}
            ]
        body = {
            "metadata": metadata,
            "spec": {
                "schedulerName": SCHEDULER,
                "nodeSelector": {STAGE_LABEL: self.name},
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.invalid/main:1",
                        "resources": {"requests": {"cpu": cpu, "memory": memory}},
                    }
                ],
                **spec,
            },
        }
        return str(self.api.request("POST", self._pods, body)["metadata"]["uid"])

    def delete_pod(self, name: str) -> None:
        """Delete a pod without grace."""
        self._request("DELETE", f"{self._pods}/{name}", {"gracePeriodSeconds": 0})

    def change_status(self, name: str, status: dict[str, Any]) -> None:
        """Merge-patch a pod's status, as its kubelet would."""
        path = f"{self._pods}/{name}/status"
        self._request("PATCH", path, {"status": status}, content_type="application/merge-patch+json")

    # Looking

    def pods(self) -> dict[str, dict[str, Any]]:
        """The stage's pods by name."""
        return {item["metadata"]["name"]: item for item in self.api.request("GET", self._pods)["items"]}

    def bound(self) -> dict[str, str]:
        """Short node name by pod, pods without a node left out."""
        prefix = f"{self.name}-"
        return {
            name: item["spec"]["nodeName"].removeprefix(prefix)
            for name, item in self.pods().items()
            if item["spec"].get("nodeName")
        }

    def wait_bound(self, *names: str, timeout: float = PATIENCE) -> dict[str, str]:
        """Wait until these pods have nodes, all pods by default; returns where they are."""

        def missing() -> list[str]:
            bound = self.bound()
            return [name for name in names or self.pods() if name not in bound]

        eventually(
            missing, accept=lambda left: not left, timeout=timeout, what=f"pods of {self.name} bound; the rest is"
        )
        return self.bound()

    def witness(self, **arguments: Any) -> None:
        """Have another pod placed: whatever was due before has been looked at when this returns."""
        name = f"witness-{secrets.token_hex(3)}"
        self.pod(name, **{"cpu": "1m", "memory": "1Mi", **arguments})
        self.wait_bound(name)

    def events(self, name: str, *, reason: str = "") -> list[str]:
        """Notes of the Events about an object, only those of one reason if given."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.name}/events"
        return [
            item["note"]
            for item in self.api.request("GET", path)["items"]
            if item["regarding"]["name"] == name and reason in ("", item["reason"])
        ]

    def wait_event(self, name: str, reason: str, text: str = "", *, timeout: float = PATIENCE) -> str:
        """Wait for an Event about an object whose note holds `text`; returns the note."""

        def find() -> str:
            return next((note for note in self.events(name, reason=reason) if text in note), "")

        return eventually(find, timeout=timeout, what=f"Event {reason} of {name} with {text!r}")

    def condition(self, name: str) -> dict[str, Any]:
        """The pod's condition PodScheduled, empty when it has none."""
        conditions = self.pods()[name].get("status", {}).get("conditions", [])
        return next((item for item in conditions if item["type"] == "PodScheduled"), {})

    def decision(self, name: str) -> dict[str, Any]:
        """The pod's annotation berth.dev/decision, decoded."""
        found: dict[str, Any] = json.loads(self.pods()[name]["metadata"]["annotations"][ANNOTATION_DECISION])
        return found


def _costs(level: str, names: list[str], cost: float) -> dict[str, Any]:
    return {
        "topologyKey": f"topology.kubernetes.io/{level}",
        "originList": [
            {
                "origin": one,
                "costList": [{"destination": other, "networkCost": int(cost)} for other in names if other != one],
            }
            for one in names
        ],
    }


def chain(*selectors: str, name: str = "shop", members: int | None = None, **demand: Any) -> dict[str, Any]:
    """AppGroup whose workloads each call the next one; `demand` (maxNetworkCost, ...) goes into every dependency."""
    workloads: Objects = []
    for selector, target in zip(selectors, [*selectors[1:], None], strict=True):
        entry: dict[str, Any] = {"workload": _workload(selector)}
        if target is not None:
            entry["dependencies"] = [{"workload": _workload(target), **demand}]
        workloads.append(entry)
    return {
        "apiVersion": appgroup.API_VERSION,
        "kind": appgroup.KIND,
        "metadata": {"name": name},
        "spec": {
            "numMembers": members or len(selectors),
            "topologySortingAlgorithm": "KahnSort",
            "workloads": workloads,
        },
    }


def _workload(selector: str) -> dict[str, Any]:
    return {"kind": "Deployment", "name": selector, "selector": selector}


class InProcess:
    """A placement controller in a thread of this process, where its client can be made impatient."""

    def __init__(self, kubeconfig: Path, *profiles: dict[str, Any], timeout: float) -> None:
        """Prepare; it runs inside the ``with`` block, its client's requests may take `timeout` seconds."""
        self._arguments = (str(kubeconfig), list(profiles), timeout)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="placement", daemon=True)

    def __enter__(self) -> Self:
        """Run."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._stop.set()
        self._thread.join(timeout=PATIENCE)
        assert not self._thread.is_alive(), "the controller does not stop"

    async def _run(self) -> None:
        kubeconfig, profiles, timeout = self._arguments
        connection = await load_connection(kubeconfig=kubeconfig)
        async with ApiClient(connection, timeout=timeout) as client:
            recorder = EventRecorder(
                client, controller="berth.dev/placement", instance="test", gives_way_to=Precedence()
            )
            with tempfile.TemporaryDirectory() as directory:
                _, path = configuration(Path(directory), *profiles)
                context = ComponentContext(
                    connection=connection,
                    client=client,
                    recorder=recorder,
                    checks=Checks(),
                    identity="test",
                )
                controller = PlacementController(context, PlacementSettings(config=Path(path)))
            tasks = [asyncio.create_task(recorder.run()), asyncio.create_task(controller.run())]
            await asyncio.to_thread(self._stop.wait)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

"""Longest time without a turn for the event loop while it is decided where each user counts.

``python -m bench.latency.stall``: whole passes of the latency controller over one policy of full size, with an API
server that takes everything. Meters of all pods have told of all users, and agents of all nodes of a hundred.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from math import dist
from time import monotonic
from typing import Any, Final, NamedTuple, cast

from bench.planning.event_loop import Watched, watched
from berth.api.labels import LABEL_ZONE, SCHEDULER_NAME
from berth.api.latency_exchange import UserRoundTrips
from berth.api.latencypolicy import API_VERSION, KIND, MAX_ASSOCIATIONS, MAX_NODES, MeasurementSource
from berth.kube.client import ApiClient
from berth.kube.events import EventRecorder, Note
from berth.kube.memory import freeze_objects, give_back_large_blocks
from berth.kube.objects import ObjectMeta, OwnerReference, Pod, PodCondition, PodSpec, PodStatus
from berth.kube.resources import Resource
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.cache.cache import Cache
from controllers.latency.candidates import Candidates
from controllers.latency.clock import SlewedClock
from controllers.latency.crowd import AT_ONCE, MOST_PROBED
from controllers.latency.evictions import Evictions
from controllers.latency.objects import Deployment, DeploymentSpec, NetworkNode, PodTemplate, PodTemplateSpec
from controllers.latency.observations import Observations
from controllers.latency.orders import Orders
from controllers.latency.places import Places
from controllers.latency.policies import Policies
from controllers.latency.reconciler import Reconciler
from controllers.latency.workloads import Workloads

KEY: Final = "shop/web"
AGE: Final = 60.0
"""Seconds since users had their requests: nobody is waited for any more."""
PASSES: Final = 3
"""Passes of each case."""


class Case(NamedTuple):
    """What is decided about."""

    nodes: int
    networks: int
    pods: int
    most_pods: int
    sharing: str = "Node"


CASES: Final[Mapping[str, Case]] = {
    "100-networks": Case(256, 100, 4, 8),
    "1000-networks": Case(256, 1000, 16, 32),
    "1000-networks-5000-nodes": Case(5000, 1000, 16, 32),
    "zones-5000-nodes": Case(5000, 1000, 16, 32, "Zone"),
}


class _Server:
    """Takes everything, and says so."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec, self._version = spec, 1

    async def apply(self, _resource: Resource[Any], _name: str, body: dict[str, Any], **_: object) -> bytes:
        """Take a status."""
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        return json.dumps(body | {"spec": self.spec}).encode()

    async def strategic_patch(self, *_: object, **__: object) -> bytes:
        """Take a number of replicas."""
        self._version += 1
        return json.dumps({"metadata": {"resourceVersion": str(self._version)}}).encode()

    async def create(self, *_: object, **__: object) -> bytes:
        """Take an eviction."""
        return b"{}"


class _Silent:
    def record(self, note: Note) -> None:
        """Tell nobody."""


def prepare(case: Case, observations: Observations, policies: Policies, server: _Server) -> Reconciler:
    """Return a reconciler that knows the cluster."""
    workloads, places = Workloads(), Places([])
    candidates, evictions = Candidates(Cache(clock=monotonic)), Evictions(cast("ApiClient", server), monotonic)
    for number in range(case.nodes):
        node = NetworkNode(metadata=ObjectMeta(name=f"n{number}", labels={LABEL_ZONE: f"z{number % 3}"}))
        node.status.allocatable = {"cpu": "8", "memory": "16Gi", "pods": "110"}
        candidates.node_changed(None, node)
        places.node_changed(None, node)
    template = PodTemplate(spec=PodTemplateSpec(scheduler_name=SCHEDULER_NAME))
    metadata = ObjectMeta(name="web", namespace="shop", uid="d", resource_version="1")
    workloads.deployment_changed(None, Deployment(metadata, DeploymentSpec(replicas=case.pods, template=template)))
    for number in range(case.pods):
        pod = Pod(metadata=ObjectMeta(name=f"web-{number}", namespace="shop", uid=f"p{number}"), spec=PodSpec())
        pod.metadata.labels = {"pod-template-hash": "5d"}
        pod.metadata.owner_references = [OwnerReference(kind="ReplicaSet", name="web-5d", uid="rs", controller=True)]
        pod.spec.node_name = f"n{number}"
        pod.status = PodStatus(conditions=[PodCondition(type="Ready", status="True")])
        workloads.pod_changed(None, pod)
        candidates.pod_changed(None, pod)
    return Reconciler(
        client=cast("ApiClient", server),
        recorder=cast("EventRecorder", _Silent()),
        queue=WorkQueue(lambda key: key.partition("/")[0]),
        policies=policies,
        workloads=workloads,
        candidates=candidates,
        places=places,
        observations=observations,
        orders=Orders(monotonic),
        evictions=evictions,
        status_interval=0.0,
        clock=SlewedClock(),
    )


def tell(case: Case, observations: Observations) -> None:
    """Have meters tell of all users, and agents of as many as are kept."""
    chance, now = random.Random(1), datetime.now(UTC)
    at = [(chance.random(), chance.random()) for _ in range(case.nodes + case.networks)]

    def far(network: int, node: int) -> tuple[int, ...]:
        return (round(10_000 + 100_000 * dist(at[node], at[case.nodes + network]) * chance.uniform(0.9, 1.1)),) * 3

    def place(node: int) -> str:
        return f"zone z{node % 3}" if case.sharing == "Zone" else f"n{node}"

    for node in range(case.pods):
        users = [
            UserRoundTrips(f"u{user}", far(user % case.networks, node), AGE, _address(user, case.networks))
            for user in range(MAX_ASSOCIATIONS)
        ]
        observations.served(KEY, place(node), users, now, source=MeasurementSource.METER, each=True)
    for _ in range(MOST_PROBED // AT_ONCE):
        for address in observations.to_probe(KEY, bool, now):
            _, high, low, _ = map(int, address.split("."))
            for node in range(min(MAX_NODES, case.nodes)):
                observations.probed(KEY, place(node), address, far(high * 250 + low, node), now)


def _address(user: int, networks: int) -> str:
    network = user % networks
    return f"20.{network // 250}.{network % 250}.{user // networks + 1}"


async def measure(case: Case) -> list[Watched]:
    """Return what passes do to the event loop: with an empty status, and with a full one."""
    spec = {
        "targetRef": {"name": "web"},
        "hardMaxLatency": 40,
        "sharing": case.sharing,
        "users": {"mode": "PerUser", "maxReplicas": case.most_pods},
    }
    server, policies, observations = _Server(spec), Policies(), Observations()
    names = {"name": "web", "namespace": "shop", "uid": "web", "resourceVersion": "1"}
    policies.written({"apiVersion": API_VERSION, "kind": KIND, "metadata": names, "spec": spec, "status": {}})
    found = []
    for _ in range(PASSES):
        tell(case, observations)
        reconciler = prepare(case, observations, policies, server)
        give_back_large_blocks()
        freeze_objects()
        async with watched() as seen:
            await reconciler.reconcile(KEY)
        found.append(seen)
    return found


def main() -> None:
    """Run the cases and print a line each."""
    parser = argparse.ArgumentParser(prog="python -m bench.latency.stall", description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE", help=f"of {', '.join(CASES)}")
    for name in parser.parse_args().cases:
        seen = asyncio.run(measure(CASES[name]))
        taken, turn = max(each.processor for each in seen), max(each.longest_turn for each in seen)
        stall = max(each.longest_stall for each in seen)
        figures = f"{turn * 1000:.0f} ms of a processor, {stall * 1000:.0f} ms by the clock"
        print(f"{name}: a pass takes up to {taken:.2f} s of a processor; longest stall {figures}", flush=True)


if __name__ == "__main__":
    main()

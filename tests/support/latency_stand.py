"""An application near its users on a real API server: its nodes, its meters and node agents, and who places its pods.

Everything but the latency controller that has to be there is played here, by a thread that goes on until the stand is
closed: pods without a node get the one that the policy's status names, else the first; each ready pod's meter tells how
far its users are; and agents answer the orders that they get. The API server, the Deployment's own controllers and
KWOK's nodes are real.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Self

import aiohttp
import msgspec

from berth.api import latency_exchange as exchange
from berth.api.base import format_timestamp
from berth.api.labels import SCHEDULER_NAME
from berth.api.latencypolicy import API_VERSION, KIND, MANAGER, PLURAL, LatencyPolicyStatus, Move
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.objects import Pod
from berth.kube.reflector import Reflector
from berth.kube.resources import PODS
from berth.scheduling.latency.moves import OPEN
from controllers.latency.objects import is_ready
from hack.harness.cluster import eventually
from hack.localcluster import LocalCluster
from hack.localcluster.rest import Api, ApiError
from tests.support.placing import STAGE_LABEL, Stage

USER = "203.0.113.7"
"""Address of the user, of a network for examples."""
TURN = 0.2
"""Seconds between two turns of the thread."""
START_SECONDS = 5.0
"""Seconds without a node for a pod that takes a moved one's place, while there is one too many: elsewhere images and
probes take that long, and a ReplicaSet deletes the pod that is not ready."""


def token_of(api: Api, pod: dict[str, Any], *, audience: str = exchange.AUDIENCE) -> str:
    """Return a token of a pod's service account, bound to the pod."""
    metadata = pod["metadata"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
    account = pod["spec"].get("serviceAccountName", "default")
    path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
    answer = api.request(
        "POST", path, {"spec": {"audiences": [audience], "expirationSeconds": 3600, "boundObjectRef": bound}}
    )
    return str(answer["status"]["token"])


class SharedApi(Api):
    """A client that several threads may use, one after the other."""

    def __init__(self, api: Api) -> None:
        """Take the place of a client."""
        self._lock = threading.Lock()
        self.__dict__.update(api.__dict__)

    def raw(self, *args: Any, **arguments: Any) -> tuple[int, dict[str, str], bytes]:
        """Send one request."""
        with self._lock:
            return super().raw(*args, **arguments)


class LatencyStand:
    """A stage with a Deployment ``web`` and a LatencyPolicy of the same name."""

    def __init__(
        self, cluster: LocalCluster, far: Mapping[str, float], *, system: str = "default", agents: bool = True
    ) -> None:
        """Make the nodes.

        Args:
            cluster: with kube-controller-manager and KWOK.
            far: how far users are from each node, in milliseconds; the first node is where pods go that nobody moves.
            system: namespace of the controller.
            agents: whether node agents are played.
        """
        self.stage = Stage(cluster)
        self.api = self.stage.api = SharedApi(self.stage.api)
        self.far = {self.stage.node(name): value for name, value in far.items()}
        self.probed: dict[str, float] = dict(self.far)
        """what agents measure; a node that is left out has none that answers"""
        self.address = USER
        """address that meters tell of the user; empty: they tell none"""
        self.users: dict[str, tuple[str, dict[str, float]]] = {}
        """users of whom each counts: address and milliseconds by short name of each node; none: all count as one"""
        self.silent: set[str] = set()
        """addresses that do not answer agents"""
        self.steps: list[str] = []
        """nodes that pods were placed on, in order"""
        self.refused: list[int] = []
        """statuses but 200 that the endpoint has answered"""
        self.places_pods = True
        """whether pods are placed here, and not by a placement controller"""
        self.meters = True
        """whether pods have meters"""
        self.cluster = cluster
        self.serving: list[int] = []
        """how many ready pods stayed, after each change of one"""
        self.staying: list[int] = []
        """how many pods stayed, ready or not, after each change of one"""
        self._system = system
        self._plays_agents = agents
        self.stage.nodes(*far)
        self._tokens: dict[str, str] = {}
        self._waiting: dict[str, float] = {}
        self._stop = threading.Event()
        self._deployments = f"/apis/apps/v1/namespaces/{self.stage.name}/deployments"
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="world", daemon=True)

    def __enter__(self) -> Self:
        """Begin to play the rest."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it, and delete all of the stage."""
        self._stop.set()
        self._thread.join(timeout=30)
        self.api.raw("DELETE", self.path())
        self.stage.close()

    # Making

    def deploy(self, *, replicas: int = 1, annotations: Mapping[str, str] | None = None, **spec: Any) -> None:
        """Create the workload; `spec` are fields of its pods, and `annotations` theirs."""
        labels = {"app": "web"}
        pod = {
            "schedulerName": SCHEDULER_NAME,
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {STAGE_LABEL: self.stage.name},
            "containers": [{"name": "main", "image": "registry.invalid/main:1"}],
            **spec,
        }
        body = {
            "metadata": {"name": "web"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels, "annotations": dict(annotations or {})}, "spec": pod},
            },
        }
        self.api.request("POST", self._deployments, body)

    def want(self, name: str = "web", **spec: Any) -> None:
        """Create or change the policy."""
        body = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": name},
            "spec": {"targetRef": {"name": "web"}} | spec,
        }
        path = f"{self.path(name)}?fieldManager=test&force=true"
        self.api.request("PATCH", path, body, content_type="application/apply-patch+yaml")

    def know(self, **far: float) -> None:
        """Write nodes into the status, as a controller leaves it that had pods there; milliseconds by short name."""
        time = format_timestamp(datetime.now(UTC))
        nodes = [
            {"node": self.stage.node(name), "state": "SoftValid", "source": "Meter", "samples": 15, "time": time}
            | {"p50Microseconds": round(value * 1000), "p90Microseconds": round(value * 1000), "rejections": 0}
            for name, value in far.items()
        ]
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "web"}, "status": {"nodes": nodes}}
        path = f"{self.path()}/status?fieldManager={MANAGER}&force=true"
        self.api.request("PATCH", path, body, content_type="application/apply-patch+yaml")

    def budget(self, name: str = "web", **spec: Any) -> None:
        """Create a PodDisruptionBudget for the pods."""
        body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "web"}}} | spec}
        self.api.request("POST", f"/apis/policy/v1/namespaces/{self.stage.name}/poddisruptionbudgets", body)

    def delete(self) -> None:
        """Delete the policy."""
        self.api.request("DELETE", self.path())

    def scale(self, replicas: int) -> None:
        """Set the number of replicas, as somebody else does."""
        self.change({"spec": {"replicas": replicas}})

    def change(self, body: Mapping[str, Any]) -> None:
        """Merge-patch the workload, as somebody else does."""
        path = f"{self._deployments}/web?fieldManager=somebody"
        self.api.request("PATCH", path, body, content_type="application/merge-patch+json")

    # Looking

    def path(self, name: str = "web") -> str:
        """Path of a policy."""
        return f"/apis/{API_VERSION}/namespaces/{self.stage.name}/{PLURAL}/{name}"

    def status(self, name: str = "web") -> LatencyPolicyStatus:
        """The status of the policy."""
        found = self.api.request("GET", self.path(name))
        return LatencyPolicyStatus.model_validate(found.get("status", {}))

    def reasons(self, name: str = "web") -> dict[str, str]:
        """Reason of each condition."""
        return {each.type: each.reason for each in self.status(name).conditions}

    def message(self, condition: str, name: str = "web") -> str:
        """Message of a condition."""
        return next((each.message for each in self.status(name).conditions if each.type == condition), "")

    def replicas(self) -> int:
        """Replicas of the Deployment."""
        return int(self.api.request("GET", f"{self._deployments}/web")["spec"]["replicas"])

    def places(self) -> list[str]:
        """Short names of the nodes of pods that stay, sorted."""
        pods = [pod for pod in self._pods() if "deletionTimestamp" not in pod["metadata"]]
        return sorted(self._short(pod["spec"].get("nodeName", "")) for pod in pods)

    def _pods(self) -> list[dict[str, Any]]:
        """Pods of the workload."""
        return [pod for pod in self.stage.pods().values() if pod["metadata"].get("labels", {}).get("app") == "web"]

    def routed(self) -> dict[str, str]:
        """Short name of the node that each user is routed to."""
        return {each.user: self._short(each.node) for each in self.status().associations}

    def outcomes(self) -> list[str]:
        """How far each move is."""
        return [move.outcome.value for move in self.status().moves]

    def wait_settled(self, *places: str, timeout: float = 180.0) -> None:
        """Wait until pods are on these nodes and no others, no move goes on, and there are as many replicas."""

        def look() -> tuple[list[str], list[str], int]:
            moves = self._moves()
            going = [each.outcome.value for each in moves if each.outcome in OPEN]
            return self.places(), going, self.replicas()

        wanted = (sorted(places), list[str](), len(places))
        eventually(look, accept=lambda found: found == wanted, timeout=timeout, what=f"pods on {places}")

    def least(self, replicas: int = 1) -> int:
        """Fewest ready pods at once since there were so many."""
        first = self.serving.index(replicas)
        return min(self.serving[first:])

    # Playing the rest

    async def _run(self) -> None:
        connection = await load_connection(kubeconfig=str(self.cluster.kubeconfig))
        async with ApiClient(connection) as client, aiohttp.ClientSession() as session:
            pods: Reflector[Pod] = Reflector(client, PODS, namespace=self.stage.name)
            pods.add_handler(lambda *_: self._count(pods.objects.values()))
            agents = [asyncio.create_task(pods.run())]
            agents += [asyncio.create_task(self._agent(session, node)) for node in self.far if self._plays_agents]
            number = 0
            while not self._stop.is_set():
                number += 1
                with suppress(ApiError, OSError, aiohttp.ClientError):
                    if self.places_pods:
                        await asyncio.to_thread(self._place)
                    await self._tell(session, number)
                await asyncio.sleep(TURN)
            for task in agents:
                task.cancel()
            await asyncio.gather(*agents, return_exceptions=True)

    def _moves(self) -> tuple[Move, ...]:
        return self._found_status().moves

    def _found_status(self) -> LatencyPolicyStatus:
        """The status; that of no policy is empty."""
        code, _, body = self.api.raw("GET", self.path())
        return LatencyPolicyStatus.model_validate(json.loads(body).get("status", {}) if code == 200 else {})

    def _count(self, pods: Iterable[Pod]) -> None:
        staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None and not pod.finished]
        self.staying.append(len(staying))
        self.serving.append(sum(map(is_ready, staying)))

    def _place(self) -> None:
        pods = self._pods()
        taken = {pod["spec"].get("nodeName") for pod in pods}
        for pod in pods:
            name = pod["metadata"]["name"]
            if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
                continue
            with suppress(ApiError):
                status = self._found_status()
                targets = [move.target_node for move in status.moves if move.outcome == "Creating"] or status.plan
                wanted = [node for node in targets if node not in taken]
                since = self._waiting.setdefault(pod["metadata"]["uid"], time.monotonic())
                if status.surge is not None and not wanted and time.monotonic() < since + START_SECONDS:
                    continue
                node = next(iter(wanted or self.far))
                body = {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
                self.api.request("POST", f"/api/v1/namespaces/{self.stage.name}/pods/{name}/binding", body)
                self.steps.append(node.removeprefix(f"{self.stage.name}-"))
                taken.add(node)

    async def _tell(self, session: aiohttp.ClientSession, number: int) -> None:
        pods = await asyncio.to_thread(self._pods)
        status = await asyncio.to_thread(self._found_status) if self.users else LatencyPolicyStatus()
        ready = {node for pod in pods if _is_ready(pod) and (node := pod["spec"].get("nodeName"))}
        routed = {each.user: each.node for each in status.associations if each.node in ready}
        for pod in pods if self.meters else ():
            node = pod["spec"].get("nodeName")
            if node in self.far and _is_ready(pod):
                users = tuple(self._served(node, routed))
                message = exchange.RoundTrips(pod["metadata"]["uid"], number, users)
                await self.post(session, pod, exchange.ROUND_TRIPS_PATH, message)

    def _served(self, node: str, routed: Mapping[str, str]) -> Iterable[exchange.UserRoundTrips]:
        """What a pod's meter tells: of those who are routed to its node, and of who is routed to none."""
        if not self.users:
            yield exchange.UserRoundTrips("somebody", (round(self.far[node] * 1000),), address=self.address)
        for user, (address, far) in self.users.items():
            if routed.get(user, node) == node:
                yield exchange.UserRoundTrips(user, (round(far[self._short(node)] * 1000),), address=address)

    def _short(self, node: str) -> str:
        return node.removeprefix(f"{self.stage.name}-")

    def _found(self, node: str, address: str) -> float | None:
        """What an agent finds: how far a user is, in milliseconds; None: no answer."""
        if address in self.silent:
            return None
        if not self.users:
            return self.probed.get(node)
        return next((far[self._short(node)] for known, far in self.users.values() if known == address), None)

    async def post(
        self, session: aiohttp.ClientSession, pod: dict[str, Any], path: str, message: msgspec.Struct
    ) -> bytes:
        """Send a message of a pod; returns the answer."""
        uid = pod["metadata"]["uid"]
        if uid not in self._tokens:
            self._tokens[uid] = await asyncio.to_thread(token_of, self.api, pod)
        return await self.send(session, self._tokens[uid], path, msgspec.json.encode(message))

    async def send(self, session: aiohttp.ClientSession, token: str, path: str, body: bytes) -> bytes:
        """Send a message with a token; returns the answer."""
        where = await asyncio.to_thread(
            self.api.request, "GET", f"/api/v1/namespaces/{self._system}/configmaps/{exchange.CONFIGMAP}"
        )
        context = ssl.create_default_context(cadata=where["data"][exchange.CONFIGMAP_CA])
        async with session.post(
            where["data"][exchange.CONFIGMAP_URL] + path,
            data=body,
            headers={"Authorization": f"Bearer {token}"},
            ssl=context,
            server_hostname=exchange.SERVER_NAME,
        ) as answer:
            if answer.status != 200:
                self.refused.append(answer.status)
            return await answer.read()

    async def _agent(self, session: aiohttp.ClientSession, node: str) -> None:
        token = await asyncio.to_thread(self.agent_token, node)
        answers: tuple[exchange.ProbeAnswer, ...] = ()
        while True:
            try:
                body = msgspec.json.encode(exchange.ProbeAnswers(answers))
                text = await self.send(session, token, exchange.PROBES_PATH, body)
                orders = msgspec.json.decode(text, type=exchange.ProbeOrders).orders
            except (ApiError, OSError, aiohttp.ClientError, TimeoutError, msgspec.DecodeError):
                answers = ()
                await asyncio.sleep(TURN)
                continue
            found = [(order.id, self._found(node, order.address)) for order in orders]
            answers = tuple(
                exchange.ProbeAnswer(number, (round(far * 1000),) * 3 if far is not None else ())
                for number, far in found
            )

    def agent_token(self, node: str) -> str:
        """Return the token of a node agent's pod on a node."""
        account = f"/api/v1/namespaces/{self._system}/serviceaccounts"
        with suppress(ApiError):
            self.api.request("POST", account, {"metadata": {"name": "berth-node"}})
        pod = {
            "metadata": {"name": f"agent-on-{node}"},
            "spec": {
                "nodeName": node,
                "serviceAccountName": "berth-node",
                "containers": [{"name": "agent", "image": "registry.invalid/agent:1"}],
            },
        }
        return token_of(self.api, self.api.request("POST", f"/api/v1/namespaces/{self._system}/pods", pod))


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

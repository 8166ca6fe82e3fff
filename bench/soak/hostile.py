"""What one tenant can do to all others' placement, each act found to hurt once. They run in turn, for ever."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from bench.soak.large import LARGE_ACTS
from bench.soak.related import RELATED_ACTS
from bench.soak.small import SMALL_ACTS
from bench.soak.tenant import Tenant, app_group, pod
from berth.api.labels import LABEL_ZONE as ZONE
from berth.kube.resources import APP_GROUPS, NETWORK_TOPOLOGIES, PODS

Act = Callable[[Tenant], Awaitable[None]]
Tree = dict[str, dict[str, dict[str, str]]]
HOST = "kubernetes.io/hostname"
PAUSE = 5.0
"""Seconds that an act's objects stay once all are there, so that every retry meets them too."""
WEIRD = ("9223372036854775807", "1e30", "-5", "1e-30", "8Ei")
"""Quantities at the edge of what can be counted."""


def _affinity(kind: str, workload: str, *, required: bool, key: str = HOST) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"part": workload}}}
    if required:
        return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}}


def _members(group: str, workload: str, count: int, **options: Any) -> list[dict[str, Any]]:
    labels = {"part": workload}
    return [
        pod(f"{group}-{workload}-{n}", group=group, workload=workload, labels=labels, **options) for n in range(count)
    ]


async def soft_anti_affinity(tenant: Tenant) -> None:
    """Two workloads of 200 replicas that would rather not meet."""
    await tenant.create(APP_GROUPS, app_group("soft", {"a": {"b": {}}, "b": {}}))
    affinity = {w: _affinity("podAntiAffinity", w, required=False) for w in "ab"}
    await tenant.create_all(PODS, [p for w in "ab" for p in _members("soft", w, 200, affinity=affinity[w])])


async def chain(tenant: Tenant) -> None:
    """200 pods, each of which must be beside the one before."""
    names = [f"w{n}" for n in range(200)]
    tree: Tree = {name: {names[n - 1]: {}} if n else {} for n, name in enumerate(names)}
    await tenant.create(APP_GROUPS, app_group("chain", tree))
    pods: list[dict[str, Any]] = []
    for n, name in enumerate(names):
        options = {"affinity": _affinity("podAffinity", names[n - 1], required=True)} if n else {}
        pods += _members("chain", name, 1, **options)
    await tenant.create_all(PODS, reversed(pods))


async def huge_group(tenant: Tenant) -> None:
    """3000 pods of one application."""
    await tenant.create(APP_GROUPS, app_group("huge", {"a": {"b": {}}, "b": {"c": {}}, "c": {}}))
    await tenant.create_all(PODS, [p for w in "abc" for p in _members("huge", w, 1000)])


async def selectors(tenant: Tenant) -> None:
    """Pods that ask for 5000 labels which no node has, other ones each time."""
    turn = next(_turns)
    wanted = [{f"key-{turn}-{n}-{k}": "x" for k in range(5000)} for n in range(5)]
    await tenant.create_all(PODS, [pod(f"labels-{n}", nodeSelector=keys) for n, keys in enumerate(wanted)])


async def resources(tenant: Tenant) -> None:
    """A running and a waiting pod with 1500 resource names, other ones each time."""
    turn = next(_turns)
    specs: dict[str, dict[str, Any]] = {"running": {"nodeName": tenant.nodes[0].metadata.name}, "waiting": {}}
    for name, spec in specs.items():
        requests = {f"example.com/r{turn}-{name}-{n}": "1" for n in range(1500)}
        await tenant.create(PODS, pod(name, requests=requests, **spec))


async def never_fitting(tenant: Tenant) -> None:
    """300 pods and 30 groups that never fit, relabelled and edited so that they are tried again and again."""
    large = {"cpu": "4000"}
    await tenant.create_all(APP_GROUPS, [app_group(f"big-{n}", {"a": {"b": {}}, "b": {}}) for n in range(30)])
    pods = [pod(f"never-{n}", requests=large) for n in range(300)]
    pods += [p for n in range(30) for w in "ab" for p in _members(f"big-{n}", w, 1, requests=large)]
    await tenant.create_all(PODS, pods)
    for turn in range(5):
        label = {"metadata": {"labels": {"turn": str(turn)}}}
        await asyncio.gather(*(tenant.patch(PODS, p["metadata"]["name"], label) for p in pods))
        changed = {"spec": {"topologySortingAlgorithm": "TarjanSort" if turn % 2 else "KahnSort"}}
        await asyncio.gather(*(tenant.patch(APP_GROUPS, f"big-{n}", changed) for n in range(30)))


async def one_by_one(tenant: Tenant) -> None:
    """200 members that arrive one after another at a group which waits for one more, and a finished one among them."""
    await tenant.create(APP_GROUPS, app_group("late", {"a": {"b": {}}, "b": {}, "never": {"a": {}}}))
    for body in _members("late", "a", 200):
        await tenant.create(PODS, body)
    await tenant.create_all(PODS, _members("late", "b", 1, nodeName=tenant.nodes[1].metadata.name))
    await tenant.patch_status("late-b-0", {"phase": "Succeeded"})


async def bandwidth(tenant: Tenant) -> None:
    """A group that asks for more bandwidth than the world has, before and after it is placed."""
    for number, amount in enumerate(("1e30", "10M")):
        name = f"wide-{number}"
        tree = {"a": {"b": {"minBandwidth": amount}}, "b": {}}
        await tenant.create(APP_GROUPS, app_group(name, tree))
        await tenant.create_all(PODS, [p for w in "ab" for p in _members(name, w, 5)])
    await asyncio.sleep(PAUSE)
    await tenant.patch(APP_GROUPS, "wide-1", app_group("wide-1", {"a": {"b": {"minBandwidth": "1e30"}}, "b": {}}))


async def topology(tenant: Tenant) -> None:
    """A NetworkTopology that calls everybody's zones far, changed ten times a second."""
    zones = sorted({node.metadata.labels[ZONE] for node in tenant.nodes})
    spec = {"configmapName": "", "weights": [_weights(zones, 10_000)]}
    await tenant.create(NETWORK_TOPOLOGIES, {"metadata": {"name": "bench"}, "spec": spec})
    for cost in range(1, 51):
        await tenant.patch(NETWORK_TOPOLOGIES, "bench", {"spec": {"weights": [_weights(zones, cost)]}})
        await asyncio.sleep(0.1)


def _weights(zones: Sequence[str], cost: int) -> dict[str, Any]:
    origins = [
        {"origin": a, "costList": [{"destination": b, "networkCost": cost} for b in zones if b != a]} for a in zones
    ]
    return {"name": "UserDefined", "topologyList": [{"topologyKey": ZONE, "originList": origins}]}


async def stolen_owner(tenant: Tenant) -> None:
    """Pods that say they belong to the ordinary applications' AppGroups, by label and by owner."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "shop", "uid": "shop", "controller": True}
    names = [f"shop-{n}" for n in range(50)]
    bodies = [pod(name, group=name, workload="frontend", metadata={"ownerReferences": [owner]}) for name in names]
    await tenant.create_all(PODS, bodies)


async def odd_amounts(tenant: Tenant) -> None:
    """Requests that overflow, alone and added up, on pods that wait and pods that run."""
    bodies: list[dict[str, Any]] = []
    for n, (amount, on) in enumerate(itertools.product(WEIRD, ("", tenant.nodes[2].metadata.name))):
        containers = [
            {"name": f"c{k}", "image": "x", "resources": {"requests": {"cpu": amount, "memory": amount}}}
            for k in range(4)
        ]
        spec: dict[str, Any] = {"nodeName": on} if on else {}
        bodies.append(pod(f"odd-{n}", containers=containers, **spec))
    await tenant.create_all(PODS, bodies)


async def vanishing(tenant: Tenant) -> None:
    """200 pods that are deleted as soon as they exist, so that their bindings are refused."""

    async def one(number: int) -> None:
        await tenant.create(PODS, pod(f"brief-{number}"))
        await tenant.delete(PODS, f"brief-{number}")

    await asyncio.gather(*(one(number) for number in range(200)))


async def spread(tenant: Tenant) -> None:
    """300 replicas that must be spread over hosts and zones, and 300 that must not meet."""
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"part": "a"}},
        }
        for key in (ZONE, HOST)
    ]
    await tenant.create(APP_GROUPS, app_group("spread", {"a": {"b": {}}, "b": {}}))
    apart = _affinity("podAntiAffinity", "b", required=True)
    pods = _members("spread", "a", 300, topologySpreadConstraints=constraints)
    await tenant.create_all(PODS, [*pods, *_members("spread", "b", 300, affinity=apart)])


async def wide_objects(tenant: Tenant) -> None:
    """Pods whose annotations leave no room for ours, and a group with hundreds of workloads that depend on all."""
    names = [f"w{n}" for n in range(60)]
    tree: Tree = {a: {b: {} for b in names if b != a} for a in names}
    await tenant.create(APP_GROUPS, app_group("dense", tree))
    await tenant.create_all(PODS, [p for name in names for p in _members("dense", name, 2)])
    full = {"annotations": {"example.com/text": "x" * (256 * 1024 - 100)}}
    await tenant.create_all(PODS, [pod(f"full-{n}", metadata=full) for n in range(10)])


ACTS: Sequence[Act] = (
    soft_anti_affinity,
    chain,
    huge_group,
    selectors,
    resources,
    never_fitting,
    one_by_one,
    bandwidth,
    topology,
    stolen_owner,
    odd_amounts,
    vanishing,
    spread,
    wide_objects,
    *LARGE_ACTS,
    *SMALL_ACTS,
    *RELATED_ACTS,
)
_turns = itertools.count()


class Hostility:
    """The acts, one after another until cancelled."""

    def __init__(self, tenant: Tenant, acts: Sequence[Act] = ACTS) -> None:
        """Prepare."""
        self._tenant = tenant
        self._acts = acts
        self.current = ""
        """the act that goes on"""
        self.done = 0
        """acts that have ended"""

    async def run(self) -> None:
        """Act, wait a moment, clean up, and go on with the next."""
        await self._tenant.open()
        for act in itertools.cycle(self._acts):
            self.current = act.__name__
            await act(self._tenant)
            await asyncio.sleep(PAUSE)
            await self._tenant.clear()
            self.done += 1

"""What a tenant can do with rules between pods, and with calls of all to all."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from bench.soak.tenant import Tenant, Workloads, app_group, pod
from berth.api.labels import LABEL_REGION
from berth.kube.resources import APP_GROUPS, PODS

RULES: Final = 250
"""Of a pod."""
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
HOST: Final = "kubernetes.io/hostname"


async def topology_keys(tenant: Tenant) -> None:
    """60 pods that must be near another by hundreds of topology keys each, which no node has."""
    await tenant.create(APP_GROUPS, app_group("keys", {"a": {"b": {}}, "b": {}}))
    wanted = {"labelSelector": {"matchLabels": {"part": "a"}}}
    terms = [[{"topologyKey": f"example.com/k{n}-{at}", **wanted} for at in range(RULES)] for n in range(60)]
    affinity: list[dict[str, Any]] = [{"podAffinity": {REQUIRED: each}} for each in terms]
    await tenant.create_all(
        PODS, [pod(f"keys-{n}", group="keys", workload="ab"[n % 2], affinity=each) for n, each in enumerate(affinity)]
    )


async def everybody(tenant: Tenant) -> None:
    """Pods, one by one, with hundreds of terms that each mean nearly all pods of the cluster."""
    for number in range(20):
        selectors = [
            {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": [f"{number}-{at}"]}]}
            for at in range(RULES)
        ]
        terms = [{"topologyKey": HOST, "namespaceSelector": {}, "labelSelector": each} for each in selectors]
        apart = {"podAntiAffinity": {REQUIRED: terms}}
        await tenant.create(PODS, pod(f"everybody-{number}", affinity=apart))


async def backwards(tenant: Tenant) -> None:
    """A chain of 400 pods of which each must be near the next."""
    names = [f"w{number}" for number in range(400)]
    tree: Workloads = {name: {to: {}} for name, to in itertools.pairwise(names)} | {names[-1]: {}}
    await tenant.create(APP_GROUPS, app_group("backwards", tree))
    bodies = []
    for name, to in zip(names, [*names[1:], ""], strict=True):
        term = {"topologyKey": LABEL_REGION, "labelSelector": {"matchLabels": {"part": to}}}
        near: dict[str, Any] = {"affinity": {"podAffinity": {REQUIRED: [term]}}} if to else {}
        bodies.append(pod(f"backwards-{name}", group="backwards", workload=name, labels={"part": name}, **near))
    await tenant.create_all(PODS, bodies)


RELATED_ACTS: Final[Sequence[Callable[[Tenant], Awaitable[None]]]] = (
    topology_keys,
    everybody,
    backwards,
)

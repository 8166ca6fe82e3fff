"""AppGroups that an author made to hold others up: ``python -m bench.planning.hostile``.

Each case is planned as the scheduler would, attempt after attempt, in a process of its own: how long an attempt takes,
how long others wait in between, and how many pods each one places.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import resource
import time
from collections.abc import Callable
from typing import Any

import msgspec

from bench.planning import relations
from bench.planning.__main__ import COSTS, HOST, Clock, in_turns, layered, make_pod
from bench.planning.relations import Case, cluster, waiting, with_spec
from berth.api.labels import LABEL_ZONE
from berth.kube.memory import freeze_objects
from berth.kube.objects import PersistentVolume, PersistentVolumeClaim, StorageClass
from berth.scheduling.configuration import Profile
from berth.scheduling.planner import Planner


def rules(clock: Clock, nodes: int = 5000, pods: int = 230, terms: int = 256) -> Case:
    """Pods of which each states as many rules as it may, all of them different and about the others."""
    edges = layered(10)
    cache, group = cluster(clock, nodes, edges, {})
    made = [make_pod(f"w{n % 10}", n, {}) for n in range(pods)]
    for number, pod in enumerate(made):
        unlike = [
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [f"{number}-{at}"]}]}
            for at in range(terms)
        ]
        keys = (HOST, LABEL_ZONE)
        about = [{"topologyKey": keys[at % 2], "labelSelector": each} for at, each in enumerate(unlike)]
        third = terms // 3
        pod.spec = with_spec(
            pod,
            affinity={
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": each} for each in about[:third]
                    ]
                },
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": each} for each in about[third : 2 * third]
                    ]
                },
            },
            topologySpreadConstraints=[
                {**each, "maxSkew": 1000, "whenUnsatisfiable": "DoNotSchedule"} for each in about[2 * third :]
            ],
        )
    return cache, group, waiting(cache, made)


def ports(clock: Clock, nodes: int = 1000, pods: int = 15, each: int = 5000, among: int = 10_000) -> Case:
    """Pods with thousands of host ports, each with other ones."""
    cache, group = cluster(clock, nodes, layered(5), {})
    made = [make_pod(f"w{n % 5}", n, {}) for n in range(pods)]
    for number, pod in enumerate(made):
        taken = random.Random(number).sample(range(1, among + 1), each)
        stated = [{"containerPort": 1, "hostPort": port} for port in taken]
        container = {"name": "main", "resources": {"requests": {"cpu": "250m"}}, "ports": stated}
        pod.spec = with_spec(pod, containers=[container])
    return cache, group, waiting(cache, made)


def members(clock: Clock, nodes: int = 40, pods: int = 3000) -> Case:
    """Members of which each has a priority of its own and a limit of its calls."""
    cache, group = cluster(clock, nodes, layered(pods), {"maxNetworkCost": 12})
    made = [make_pod(f"w{n}", n, {}) for n in range(pods)]
    for number, pod in enumerate(made):
        pod.spec.priority = number
    return cache, group, waiting(cache, made)


def dense(clock: Clock, nodes: int = 40, workloads: int = 60, replicas: int = 50) -> Case:
    """Every workload calls every other."""
    names = [f"w{n}" for n in range(workloads)]
    edges = {name: names[at + 1 :] for at, name in enumerate(names)}
    cache, group = cluster(clock, nodes, edges, {"minBandwidth": "1M", "maxNetworkCost": 15})
    return cache, group, waiting(cache, [make_pod(name, n, {}) for name in names for n in range(replicas)])


def pairs(clock: Clock, nodes: int = 27, workloads: int = 92, replicas: int = 2) -> Case:
    """Every workload calls every other, and each has two pods: exact search might table all ways to place a pair."""
    return dense(clock, nodes, workloads, replicas)


def many(clock: Clock, nodes: int = 5000, workloads: int = 2000, replicas: int = 5) -> Case:
    """Thousands of workloads."""
    edges = layered(workloads)
    cache, group = cluster(clock, nodes, edges, {})
    return cache, group, waiting(cache, [make_pod(name, n, {}) for name in edges for n in range(replicas)])


def claims(clock: Clock, nodes: int = 1000, pods: int = 400, each: int = 20) -> Case:
    """Pods of which each has claims that wait for it."""
    cache, group = cluster(clock, nodes, layered(10), {})
    body: dict[str, Any] = {
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    cache.update_storage(msgspec.convert(body, StorageClass))
    for number in range(pods * each):
        cache.update_storage(_volume(number, f"node-{number // each % nodes}"))
        cache.update_storage(_claim(number))
    made = [make_pod(f"w{n % 10}", n, {}) for n in range(pods)]
    for number, pod in enumerate(made):
        volumes = [
            {"name": f"v{at}", "persistentVolumeClaim": {"claimName": f"claim-{at}"}}
            for at in range(number * each, (number + 1) * each)
        ]
        pod.spec = with_spec(pod, volumes=volumes)
    return cache, group, waiting(cache, made)


def _volume(number: int, node: str) -> PersistentVolume:
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}
    body = {
        "metadata": {"name": f"volume-{number}"},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
        "status": {"phase": "Available"},
    }  # fmt: skip
    return msgspec.convert(body, PersistentVolume)


def _claim(number: int) -> PersistentVolumeClaim:
    body = {
        "metadata": {"name": f"claim-{number}", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }  # fmt: skip
    return msgspec.convert(body, PersistentVolumeClaim)


def measure(clock: Clock, name: str, partial: bool, attempts: int) -> dict[str, Any]:
    """Plan a case, attempt after attempt; returns seconds, MiB above what the process had before, and progress."""
    cache, group, pods = CASES[name](clock)
    planner = Planner(cache, Profile())
    freeze_objects()  # as the controller does
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    left, rows = pods, list[dict[str, Any]]()
    while left and len(rows) < attempts:
        start = clock()
        outcome, longest = in_turns(planner.place_group(group, left, COSTS, partial=partial), clock)
        placed = {decision.pod.metadata.uid for decision in outcome.decisions}
        rows.append({"seconds": clock() - start, "longest": longest, "placed": len(placed)})
        if not placed:
            break
        left = [pod for pod in left if pod.metadata.uid not in placed]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "case": name,
        "pods": len(pods),
        "partial": partial,
        "attempts": len(rows),
        "placed": [row["placed"] for row in rows],
        "seconds": round(max(row["seconds"] for row in rows), 1),
        "longestTurn": round(max(row["longest"] for row in rows), 2),
        "MiB": round((peak - before) / 1024),
    }


CASES: dict[str, Callable[[Clock], Case]] = {
    "rules": rules,
    "ports": ports,
    "members": members,
    "dense": dense,
    "pairs": pairs,
    "many": many,
    "claims": claims,
    **relations.CASES,
}


def main() -> None:
    """Run the cases and print a JSON object each."""
    parser = argparse.ArgumentParser(prog="python -m bench.planning.hostile", description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--processor-time", action="store_true", help="measure and limit plans by it")
    parser.add_argument("--attempts", type=int, default=5, help="at the most (default 5)")
    options = parser.parse_args()
    clock = time.process_time if options.processor_time else time.monotonic
    for name in options.cases:
        for partial in (False, True):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                print(json.dumps(pool.apply(measure, (clock, name, partial, options.attempts))), flush=True)


if __name__ == "__main__":
    main()

"""Online Boutique as the orders' reference states it, as a graph and as manifests."""

from __future__ import annotations

from typing import Any

EDGES: dict[str, list[str]] = {
    "p1": ["p2", "p3", "p4", "p6", "p8", "p9", "p10"],
    "p2": ["p11"],
    "p8": ["p2", "p3", "p4", "p5", "p6", "p7"],
    "p9": ["p3"],
}

ORDERS_11: dict[str, str] = {
    "KahnSort": "p1 p10 p9 p8 p7 p6 p5 p4 p3 p2 p11",
    "AlternateKahn": "p1 p11 p10 p2 p9 p3 p8 p4 p7 p5 p6",
    "ReverseKahn": "p11 p2 p3 p4 p5 p6 p7 p8 p9 p10 p1",
    "TarjanSort": "p1 p10 p9 p8 p7 p5 p6 p4 p3 p2 p11",
    "AlternateTarjan": "p1 p11 p10 p2 p9 p3 p8 p4 p7 p6 p5",
    "ReverseTarjan": "p11 p2 p3 p4 p6 p5 p7 p8 p9 p10 p1",
}
"""The form with redis-cart (p11); the Alternate and Reverse ones of Tarjan follow from their definition."""

ORDERS_10: dict[str, str] = {
    "KahnSort": "p1 p10 p9 p8 p7 p6 p5 p4 p3 p2",
    "AlternateKahn": "p1 p2 p10 p3 p9 p4 p8 p5 p7 p6",
    "ReverseKahn": "p2 p3 p4 p5 p6 p7 p8 p9 p10 p1",
    "TarjanSort": "p1 p10 p9 p8 p7 p5 p6 p4 p3 p2",
    "AlternateTarjan": "p1 p2 p10 p3 p9 p4 p8 p6 p7 p5",
    "ReverseTarjan": "p2 p3 p4 p6 p5 p7 p8 p9 p10 p1",
}


def names(size: int) -> list[str]:
    """Return the selectors p1..p<size> in declaration order."""
    return [f"p{number}" for number in range(1, size + 1)]


def successors(size: int) -> list[list[int]]:
    """Return the graph of the first ``size`` workloads as numbers from 0."""
    known = {name: number for number, name in enumerate(names(size))}
    return [[known[target] for target in EDGES.get(name, []) if target in known] for name in names(size)]


def workload_ref(name: str) -> dict[str, Any]:
    """Return the reference to a Deployment whose selector is its name."""
    return {"kind": "Deployment", "name": name, "selector": name, "apiVersion": "apps/v1", "namespace": "default"}


def appgroup(
    edges: dict[str, list[str]],
    selectors: list[str],
    *,
    algorithm: str = "KahnSort",
    name: str = "boutique",
    namespace: str = "default",
    generation: int = 1,
) -> dict[str, Any]:
    """Return an AppGroup as the API server shows it."""
    workloads = [
        {
            "workload": workload_ref(selector),
            "dependencies": [{"workload": workload_ref(target)} for target in edges.get(selector, [])],
        }
        for selector in selectors
    ]
    return {
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
        "kind": "AppGroup",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "generation": generation,
            "resourceVersion": "1",
        },
        "spec": {
            "numMembers": max(1, len(selectors)),
            "topologySortingAlgorithm": algorithm,
            "workloads": workloads,
        },
    }


def boutique(*, size: int = 11, algorithm: str = "KahnSort", **metadata: Any) -> dict[str, Any]:
    """Return Online Boutique's AppGroup with its first ``size`` workloads."""
    selectors = names(size)
    edges = {name: [target for target in EDGES.get(name, []) if target in selectors] for name in selectors}
    return appgroup(edges, selectors, algorithm=algorithm, **metadata)

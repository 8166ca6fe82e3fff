"""Raw API objects of our kinds in a line, for tests of any area."""

from __future__ import annotations

from typing import Any

from berth.api import appgroup, networktopology


def ref(selector: str) -> dict[str, Any]:
    """Reference to the Deployment whose name and selector are *selector*."""
    return {"kind": "Deployment", "name": selector, "selector": selector}


def workload(selector: str, *depends_on: str, **demand: Any) -> dict[str, Any]:
    """Entry of spec.workloads; *demand* (minBandwidth, maxNetworkCost) goes into every dependency."""
    entry: dict[str, Any] = {"workload": ref(selector)}
    if depends_on:
        entry["dependencies"] = [{"workload": ref(name), **demand} for name in depends_on]
    return entry


def app_group(*workloads: dict[str, Any], name: str = "shop", **spec: Any) -> dict[str, Any]:
    """AppGroup of *workloads* with one member each; *spec* replaces fields of the spec."""
    return {
        "apiVersion": appgroup.API_VERSION,
        "kind": appgroup.KIND,
        "metadata": {"name": name},
        "spec": {
            "numMembers": max(1, len(workloads)),
            "topologySortingAlgorithm": "KahnSort",
            "workloads": list(workloads),
            **spec,
        },
    }


def weight_set(name: str = "UserDefined", *, key: str = "topology.kubernetes.io/zone", **costs: Any) -> dict[str, Any]:
    """Weight set of one level; ``a={"b": 5}`` is the cost 5 from a to b, a dict instead of 5 gives all fields."""
    return {
        "name": name,
        "topologyList": [
            {
                "topologyKey": key,
                "originList": [
                    {
                        "origin": origin,
                        "costList": [
                            {"destination": to, **(cost if isinstance(cost, dict) else {"networkCost": cost})}
                            for to, cost in destinations.items()
                        ],
                    }
                    for origin, destinations in costs.items()
                ],
            }
        ],
    }


def network_topology(*weights: dict[str, Any], name: str = "net", **spec: Any) -> dict[str, Any]:
    """NetworkTopology of *weights*; *spec* replaces fields of the spec."""
    return {
        "apiVersion": networktopology.API_VERSION,
        "kind": networktopology.KIND,
        "metadata": {"name": name},
        "spec": {"configmapName": "", "weights": list(weights), **spec},
    }

"""Plugins and reasons that single placement and joint planning share: one rule has one name and one text."""

from __future__ import annotations

NODE_RESOURCES_FIT = "NodeResourcesFit"

USAGE_THRESHOLD = "UsageThreshold"
FILLED_TO_THRESHOLD = "node(s) were filled to their usage threshold"

MAX_UNIT = "MaxUnit"
POD_TOO_LARGE = "node(s) took no pod as large as this one"

NETWORK_OVERHEAD = "NetworkOverhead"
MAX_NETWORK_COST_EXCEEDED = "node(s) exceeded maxNetworkCost towards a placed dependency"

BANDWIDTH = "Bandwidth"
TOO_LITTLE_BANDWIDTH = "node(s) had too little bandwidth for the pod's dependencies"

NODE_PORTS = "NodePorts"
PORTS_TAKEN = "node(s) didn't have free ports for the requested pod ports"


def insufficient(resource: str) -> str:
    """Return NodeResourcesFit's reason for a resource: ``Insufficient cpu``, or ``Too many pods``."""
    return "Too many pods" if resource == "pods" else f"Insufficient {resource}"

"""Plugins and reasons that single placement and joint planning share: one rule has one name and one text."""

from __future__ import annotations

NODE_RESOURCES_FIT = "NodeResourcesFit"

USAGE_THRESHOLD = "UsageThreshold"
MAX_UNIT = "MaxUnit"
NETWORK_OVERHEAD = "NetworkOverhead"
MAX_NETWORK_COST_EXCEEDED = "node(s) exceeded maxNetworkCost towards a placed dependency"

BANDWIDTH = "Bandwidth"
TOO_LITTLE_BANDWIDTH = "node(s) had too little bandwidth for the pod's dependencies"
LINK_TOO_NARROW = "node(s) had a link with too little bandwidth for the pod's dependencies"
LINK_TAKEN_BY_CALLS = "node(s) had too little bandwidth for the pod's request beside the calls of others"
RISKY_BANDWIDTH = "node(s) had a link that is likely to be too busy for the pod's bandwidth"

NODE_PORTS = "NodePorts"
PORTS_TAKEN = "node(s) didn't have free ports for the requested pod ports"


def link_too_narrow(link: str, wanted: int, free: int) -> str:
    """Return Bandwidth's reason for a link; amounts in bit/s."""
    return f"node(s) had too little bandwidth on link {link}: {_bits(wanted)} wanted, {_bits(max(free, 0))} free"


def _bits(amount: int) -> str:
    """Return an amount as a quantity of bit/s, exactly."""
    for suffix in ("", "k", "M", "G"):
        if not amount or amount % 1000:
            return f"{amount}{suffix} bit/s"
        amount //= 1000
    return f"{amount}T bit/s"


def insufficient(resource: str) -> str:
    """Return NodeResourcesFit's reason for a resource: ``Insufficient cpu``, or ``Too many pods``."""
    return "Too many pods" if resource == "pods" else f"Insufficient {resource}"


def filled_to_threshold(resource: str) -> str:
    """Return UsageThreshold's reason for a resource."""
    return f"node(s) were filled to their usage threshold of {resource}"


def above_max_unit(resource: str) -> str:
    """Return MaxUnit's reason for a resource."""
    return f"node(s) had a largest unit of {resource} below the pod's request"

"""What the placement of an AppGroup is worth, as fields of a document and as text: shared by plan and explain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from berth.api.spread import SpreadLevel
from berth.api.text import cost_text, counted, listed, share_text
from berth.network.groups import Group
from berth.network.routing import Routing
from berth.network.service_settings import Setting
from berth.network.sites import Sites
from berth.scheduling.configuration import Profile
from berth.scheduling.group_summary import GroupSummary, RoutingOf
from berth.scheduling.replica_plan.prices import objective_prices

MAX_SAVINGS = 10
"""Edges that would gain by a setting and are shown."""
MAX_NAMES = 4
"""Workloads that are named in one line."""
CROWDED = 1.1
"""Calls of the busiest endpoint, as a multiple of the mean, from which on they are told."""


def group_figures(summary: GroupSummary, routing: RoutingOf) -> dict[str, Any]:
    """Fields of an AppGroup in `berth plan` and `berth explain`; docs/reference/plan.md describes them."""
    left = summary.survival
    document: dict[str, Any] = {"edges": len(summary.edges)}
    if summary.edges:
        document["meanEdgeCost"] = round(summary.mean_edge_cost, 6)
        document["crossZoneShare"] = round(summary.cross_zone_share, 6)
    failing = sum(edge.failed for edge in summary.edges)
    if failing:
        document["failedShare"] = round(failing / len(summary.edges), 6)
    document["survival"] = {
        "workloads": left.replicated,
        "surviveNode": left.survive_node,
        "surviveZone": left.survive_zone,
        "lostWithNode": list(left.lost_with_node),
        "lostWithZone": list(left.lost_with_zone),
    }
    advice = summary.advice()
    if advice.settings:
        document["serviceSettings"] = {
            "meanEdgeCost": round(advice.mean_cost, 6),
            "workloads": [_setting(setting, routing) for setting in advice.settings],
            "edges": [
                {
                    "from": saving.caller,
                    "to": saving.callee,
                    "cost": round(saving.now, 6),
                    "costThen": round(saving.then, 6),
                    "trafficDistribution": setting.routing.value,
                }
                for saving, setting in advice.savings
            ],
        }
    return document


def _setting(setting: Setting, routing: RoutingOf) -> dict[str, Any]:
    found: dict[str, Any] = {
        "workload": setting.callee,
        "service": routing(setting.callee).service,
        "trafficDistribution": setting.routing.value,
    }
    if setting.replaces is Routing.LOCAL:
        found["internalTrafficPolicy"] = "Cluster"
    return found | {"busiestEndpoint": round(setting.busiest, 6)}


def price_fields(group: Group, profile: Profile, sites: Sites) -> dict[str, Any]:
    """Weights of the terms of the objective, in units of network cost."""
    prices = objective_prices(group, profile.weights.network, sites.location_cost, profile.spread)
    return {
        "spread": (group.spread or profile.spread).value,
        "network": prices.network,
        "nodeFailure": prices.survive_node,
        "zoneFailure": prices.survive_zone,
        "softRule": prices.soft_affinity,
        "softSpread": prices.soft_spread,
        "load": prices.load,
    }


def price_line(group: Mapping[str, Any]) -> str:
    """What a placement pays for; empty where that is not stated."""
    prices = group.get("prices")
    if prices is None:
        return ""
    spread, node, zone, rule, skew, load = (
        prices[name] if name == "spread" else f"{prices[name]:g}"
        for name in ("spread", "nodeFailure", "zoneFailure", "softRule", "softSpread", "load")
    )
    if spread in (SpreadLevel.NODE, SpreadLevel.ZONE):
        node = f"at least {node}"  # soft rules and prices of nodes add to what must be survived
    if spread == SpreadLevel.ZONE:
        zone = f"at least {zone}"
    return (
        f"{node} a workload that one node ends, {zone} one that a zone ends (spread: {spread}); {rule} a preferred "
        f"term of weight 100 that is not met, {skew} a pod beyond a soft spread, {load} a unit of uneven load"
    )


def cost_line(group: Mapping[str, Any]) -> str:
    """The mean edge cost, and what it would be with other settings; empty without edges."""
    if "meanEdgeCost" not in group:
        return ""
    text = f"{cost_text(group['meanEdgeCost'])} over {counted(group['edges'], 'edge')}"
    settings = group.get("serviceSettings")
    if settings is not None:
        text += f"; {cost_text(settings['meanEdgeCost'])} with {_settings_text(settings['workloads'])}"
    return text


def _settings_text(settings: list[Mapping[str, Any]]) -> str:
    counts = Counter(item["trafficDistribution"] for item in settings)
    parts = [f"{name} on {counted(count, 'Service')}" for name, count in counts.most_common()]
    text = f"trafficDistribution: {' and '.join(parts)}"
    missing = sum(not item["service"] for item in settings)
    if missing == len(settings):
        return f"{text} (no Service is known)"
    return f"{text} ({missing} of them not known)" if missing else text


def calls_line(group: Mapping[str, Any]) -> str:
    """Where calls go; empty without edges."""
    if "crossZoneShare" not in group:
        return ""
    text = f"{share_text(group['crossZoneShare'])} leave their zone"
    failing = group.get("failedShare")
    return f"{text}; {share_text(failing)} reach no endpoint (internalTrafficPolicy: Local)" if failing else text


def survival_lines(group: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the failure of a node or zone leaves, by name of the line."""
    found = group["survival"]
    if not found["workloads"]:
        return [("Survive a failure", "no workload has two placed replicas")]
    return [
        (f"Survive a {place}", _survivors(found, found[f"survive{place.title()}"], found[f"lostWith{place.title()}"]))
        for place in ("node", "zone")
    ]


def _survivors(found: Mapping[str, Any], count: int, lost: list[str]) -> str:
    text = f"{count} of {found['workloads']} workloads with two replicas or more"
    named = lost and (count or len(lost) <= MAX_NAMES)
    return f"{text}, not {listed(lost, limit=MAX_NAMES)}" if named else text


def saving_lines(group: Mapping[str, Any]) -> list[str]:
    """The edges that would gain most by a setting of their callee's Service."""
    settings = group.get("serviceSettings")
    if settings is None:
        return []
    by_name = {item["workload"]: item for item in settings["workloads"]}
    lines = [_saving(edge, by_name[edge["to"]]) for edge in settings["edges"][:MAX_SAVINGS]]
    more = len(settings["edges"]) - len(lines)
    return [*lines, f"and {more} more"] if more else lines


def _saving(edge: Mapping[str, Any], setting: Mapping[str, Any]) -> str:
    change = f"trafficDistribution: {edge['trafficDistribution']}"
    if "internalTrafficPolicy" in setting:
        change += " instead of internalTrafficPolicy: Local"
    if not setting["service"]:
        change = f"a Service that has {change}"
    text = f"{edge['from']} -> {edge['to']}: {cost_text(edge['cost'])} now, {cost_text(edge['costThen'])} with {change}"
    busiest = setting["busiestEndpoint"]
    return f"{text}; its busiest endpoint gets {busiest:.1f} times the mean" if busiest >= CROWDED else text

"""What another setting of a Service would make of the calls to its workload, as pods are placed now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from berth.network.routing import Routing
from berth.network.traffic import EdgeTraffic, Traffic, mean_cost

LEAST_GAIN = 1.0
"""Network cost that a setting has to save on an edge to be worth a word."""
LEAST_SHARE = 0.1
"""Share of the edge's cost likewise."""
_OTHERS = {
    Routing.ALL: (Routing.SAME_ZONE, Routing.SAME_NODE),
    Routing.SAME_ZONE: (Routing.SAME_NODE,),
    Routing.SAME_NODE: (),
    # Calls that find nobody on their node fail; any setting of trafficDistribution serves them.
    Routing.LOCAL: (Routing.SAME_NODE,),
}
"""Settings to look at, the first that is worth it counts: the wider one loads endpoints more evenly."""


@dataclass(frozen=True, slots=True)
class Saving:
    """An edge that would be cheaper."""

    caller: str
    """workload that calls"""
    callee: str
    """workload that is called"""
    now: float
    """mean network cost of a call"""
    then: float
    """the same with the setting"""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting for the Service of one workload."""

    callee: str
    """the workload"""
    routing: Routing
    """how calls would be routed"""
    replaces: Routing
    """how they are routed now"""
    edges: tuple[EdgeTraffic, ...]
    """all edges to the workload with the setting"""
    savings: tuple[Saving, ...]
    """those of them that gain enough"""
    busiest: float
    """calls of the most loaded endpoint then, as a multiple of the mean over all"""


@dataclass(frozen=True, slots=True)
class Advice:
    """Settings that would be worth it for an AppGroup."""

    settings: tuple[Setting, ...] = ()
    """one for each workload that has one"""
    mean_cost: float = 0.0
    """mean edge cost of the AppGroup with all of them"""

    @property
    def savings(self) -> list[tuple[Saving, Setting]]:
        """Edges that gain enough, the largest gain first."""
        found = [(saving, setting) for setting in self.settings for saving in setting.savings]
        return sorted(found, key=lambda each: each[0].then - each[0].now)


def advise(traffic: Traffic, edges: Sequence[EdgeTraffic], settable: Callable[[str], bool]) -> Advice:
    """Look for settings that make edges cheaper.

    Args:
        traffic: the AppGroup.
        edges: what its edges cost now.
        settable: whether a setting changes which replica of a workload is called; none does for those that are called
            by their own names (headless, StatefulSet).
    """
    by_callee: dict[str, list[EdgeTraffic]] = {}
    for edge in edges:
        by_callee.setdefault(edge.callee, []).append(edge)
    settings = [
        setting
        for callee, own in by_callee.items()
        if max(edge.cost for edge in own) >= LEAST_GAIN and settable(callee)
        for setting in _first(traffic, callee, own)
    ]
    better = {(edge.caller, edge.callee): edge for setting in settings for edge in setting.edges}
    then = [better.get((edge.caller, edge.callee), edge) for edge in edges]
    return Advice(tuple(settings), mean_cost(then))


def _first(traffic: Traffic, callee: str, now: Sequence[EdgeTraffic]) -> Iterable[Setting]:
    """The first setting that is worth it, if there is one."""
    for routing in _OTHERS[now[0].routing]:
        then = traffic.to(callee, routing)
        savings = [Saving(edge.caller, callee, edge.cost, then[edge.caller].cost) for edge in now]
        worth = tuple(
            saving for saving in savings if saving.now - saving.then >= max(LEAST_GAIN, LEAST_SHARE * saving.now) - 1e-9
        )
        if worth:
            busiest = traffic.busiest(callee, routing)
            yield Setting(callee, routing, now[0].routing, tuple(then.values()), worth, busiest)
            return

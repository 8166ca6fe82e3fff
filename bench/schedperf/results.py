"""Figures of runs, and what they say of two schedulers beside each other."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hack.harness.observe import percentiles

PEER, OURS = "kube-scheduler", "berth"
BOUND, BOUND_TOLD = "bound", "bound-with-events"
"""Labels of what only binds, and of the same with an Event for each pod: what is possible on the machine."""
GOAL = 1.5
"""Times kube-scheduler's pods/s that Berth is to reach in the median."""


@dataclass(frozen=True, slots=True)
class Result:
    """One run of one case with one scheduler."""

    case: str
    """name in scheduler_perf"""
    workload: str
    """its size as named there; params are what it was made of here"""
    params: Mapping[str, int]
    """numbers of nodes, pods and namespaces as run"""
    scheduler: str
    """who placed the pods"""
    round: int
    """number of the round, from 0"""
    pods: int
    """pods measured"""
    bound: int
    """of these, pods that got a node"""
    told: int
    """of these, pods with an Event Scheduled"""
    pods_per_second: float
    """bound pods by the time from the first creation to the last binding"""
    pods_per_second_told: float
    """told pods by the time from the first creation to their last Event"""
    p50: float
    """median seconds from creation to binding"""
    p99: float
    """99th percentile of the same"""
    cpu_seconds: float
    """CPU time of the scheduler from the first creation to the last Event"""
    server_seconds: float
    """CPU time of API server and etcd meanwhile"""
    problem: str = ""
    """why the workload was not run to its end"""

    @property
    def pending(self) -> int:
        """Measured pods without a node."""
        return self.pods - self.bound

    def row(self) -> dict[str, Any]:
        """All figures by name."""
        return asdict(self)


def rate(first: Iterable[float], last: Iterable[float]) -> float:
    """How many `last` a second there were, from the earliest of `first` to the latest of `last`; nan without any."""
    ends = list(last)
    seconds = max(ends, default=0.0) - min(first, default=0.0)
    return len(ends) / seconds if ends and seconds > 0 else math.nan


def figures(
    measured: Iterable[str], *, created: Mapping[str, float], bound: Mapping[str, float], told: Mapping[str, float]
) -> dict[str, Any]:
    """The fields of a result that times say.

    Args:
        measured: uids of the pods that count.
        created: seconds at which pods appeared, by uid.
        bound: at which they had a node.
        told: at which their Events appeared.
    """
    uids = list(measured)
    begun = [created[uid] for uid in uids if uid in created]
    p50, p99 = percentiles([bound[uid] - created[uid] for uid in uids if uid in bound])
    return {
        "pods": len(uids),
        "bound": sum(uid in bound for uid in uids),
        "told": sum(uid in told for uid in uids),
        "pods_per_second": rate(begun, (bound[uid] for uid in uids if uid in bound)),
        "pods_per_second_told": rate(begun, (told[uid] for uid in uids if uid in told)),
        "p50": p50,
        "p99": p99,
    }


@dataclass(frozen=True, slots=True)
class Comparison:
    """One case, medians over its rounds; ratios are ours by the peer's."""

    case: str
    """name in scheduler_perf"""
    pods: int
    """pods measured in a run"""
    ours: Mapping[str, float]
    """medians by name of the field"""
    peer: Mapping[str, float]
    """the same of the peer"""
    left: int
    """pods that were left pending in some round although the peer placed them"""
    possible: Mapping[str, float] = field(default_factory=dict)
    """pods/s by name of the field of who does nothing but bind, and write Events; empty where that did not run"""

    def share(self, side: Mapping[str, float], name: str = "pods_per_second") -> float:
        """Part of what is possible that ours or the peer reaches; nan where it was not measured."""
        return side[name] / self.possible[name] if self.possible.get(name) else math.nan

    def ratio(self, name: str) -> float:
        """Ours by the peer's; nan where the peer has none."""
        return self.ours[name] / self.peer[name] if self.peer[name] else math.nan


MEDIANS = ("pods_per_second", "pods_per_second_told", "p50", "p99", "cpu_seconds", "server_seconds")


def compare(results: Sequence[Result]) -> list[Comparison]:
    """The cases that both schedulers have run, in the order of their first run."""
    found: list[Comparison] = []
    for case in dict.fromkeys(result.case for result in results):
        ours = [r for r in results if r.case == case and r.scheduler == OURS]
        peer = [r for r in results if r.case == case and r.scheduler == PEER]
        if ours and peer:
            left = max(r.pending for r in ours) - max(r.pending for r in peer)
            possible = _possible([r for r in results if r.case == case])
            found.append(Comparison(case, ours[0].pods, _medians(ours), _medians(peer), max(0, left), possible))
    return found


def _possible(results: Sequence[Result]) -> dict[str, float]:
    """The rates of the bound, and p99 without Events and with; a run that did not bind all pods is none."""
    found = {}
    for label, name, longest in ((BOUND, "pods_per_second", "p99"), (BOUND_TOLD, "pods_per_second_told", "p99_told")):
        runs = [r for r in results if r.scheduler == label and not r.pending]
        if runs:
            found[name] = statistics.median(getattr(run, name) for run in runs)
            found[longest] = statistics.median(run.p99 for run in runs)
    return found


def _medians(results: Sequence[Result]) -> dict[str, float]:
    return {name: statistics.median(getattr(result, name) for result in results) for name in MEDIANS}


COLUMNS = (
    "case", "pods", "pods/s", "kube-scheduler's", "ratio", "to last Event", "p50 s", "its", "p99 s", "its",
    "CPU ms/pod", "its", "API server's and etcd's", "with its", "left pending",
)  # fmt: skip


def table(comparisons: Sequence[Comparison]) -> list[str]:
    """Markdown, a row per case; the ratio to the last Event is ours by the peer's as well."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    for c in comparisons:
        cells = [c.case, str(c.pods), f"{c.ours['pods_per_second']:.0f}", f"{c.peer['pods_per_second']:.0f}"]
        cells += [f"{c.ratio('pods_per_second'):.2f}", f"{c.ratio('pods_per_second_told'):.2f}"]
        cells += [f"{side[name]:.2f}" for name in ("p50", "p99") for side in (c.ours, c.peer)]
        for name in ("cpu_seconds", "server_seconds"):
            cells += [f"{side[name] / max(c.pods, 1) * 1000:.2f}" for side in (c.ours, c.peer)]
        lines.append(f"| {' | '.join([*cells, str(c.left)])} |")
    return lines


BOUND_COLUMNS = (
    "case", "possible pods/s", "kube-scheduler", "Berth", "by kube-scheduler's", "possible to last Event",
    "kube-scheduler", "Berth", "its p99 s", "with Events",
)  # fmt: skip


def bound_table(comparisons: Sequence[Comparison]) -> list[str]:
    """Markdown, a row per case in which the bound ran: what is possible, which part of it both reach, and its p99."""
    rows = [c for c in comparisons if c.possible]
    if not rows:
        return []
    lines = [f"| {' | '.join(BOUND_COLUMNS)} |", f"|{'---|' * len(BOUND_COLUMNS)}"]
    for c in rows:
        cells = [c.case]
        for name in ("pods_per_second", "pods_per_second_told"):
            cells.append(f"{c.possible.get(name, math.nan):.0f}")
            cells += [f"{100 * c.share(side, name):.0f} %" for side in (c.peer, c.ours)]
            if name == "pods_per_second":
                cells.append(f"{1 / c.share(c.peer):.2f} x")
        cells += [f"{c.possible.get(name, math.nan):.2f}" for name in ("p99", "p99_told")]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def summary(comparisons: Sequence[Comparison]) -> list[str]:
    """What the goals are asked of, a line each; empty without a case."""
    if not comparisons:
        return []
    rates = sorted((c.ratio("pods_per_second"), c.case) for c in comparisons)
    middle = statistics.median(ratio for ratio, _ in rates)
    told = [c.ratio("pods_per_second_told") for c in comparisons]
    longest = max((c.ratio("p99"), c.case) for c in comparisons)
    slower = sum(c.ratio("p99") > 1.0 for c in comparisons)
    return [
        f"pods/s to the last binding: median {middle:.2f} x, least {rates[0][0]:.2f} x ({rates[0][1]})",
        f"pods/s to the last Event: median {statistics.median(told):.2f} x, least {min(told):.2f} x",
        f"p99: at most {longest[0]:.2f} x ({longest[1]}), above kube-scheduler's in {slower} of {len(rates)} cases",
        f"left pending that kube-scheduler places: {sum(c.left for c in comparisons)}",
        *_of_the_possible(comparisons),
    ]


def _of_the_possible(comparisons: Sequence[Comparison]) -> list[str]:
    rows = [c for c in comparisons if "pods_per_second" in c.possible]
    if not rows:
        return []
    peer, ours = statistics.median(c.share(c.peer) for c in rows), statistics.median(c.share(c.ours) for c in rows)
    within = sum(1 / c.share(c.peer) >= GOAL for c in rows)
    return [
        f"of the pods/s that are possible, in the median: kube-scheduler {100 * peer:.0f} %, Berth {100 * ours:.0f} %",
        f"{GOAL:g} x kube-scheduler's pods/s are possible in {within} of {len(rows)} cases",
    ]

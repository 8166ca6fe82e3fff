"""One run of Berth's own decisions about one user: pods are created first, requests go on meanwhile (R8 to R10)."""

from __future__ import annotations

import heapq
import random
from datetime import UTC, datetime, timedelta
from math import exp
from typing import Final, NamedTuple

from bench.latency.scenarios import SERVICE, Noise, Scenario
from berth.api.latencypolicy import LatencyPolicySpec, LatencyPolicyStatus, MeasurementSource
from berth.scheduling.latency import knowledge, measuring
from berth.scheduling.latency.decision import decide
from berth.scheduling.latency.situation import Create, Evict, Pod, Probe, Steer, View
from berth.scheduling.latency.window import Window

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""When runs begin."""
HORIZON: Final = 600.0
"""Seconds of a run."""
JUDGED: Final = 120.0
"""Seconds at the end of a run that decide on success."""
PUSH: Final = 1.0
"""Seconds after which what a meter or the router has measured is known."""
PROBING: Final = 2.0
"""Seconds over which agents begin to probe a user; it takes one more."""
PROBES: Final = 3
"""Round trips of a probe."""
TRIPS_STEERED: Final = 2
"""Round trips of a request that is sent through a node: that of the handshake, and that of the answer."""
DETOUR: Final = 30.0
"""Milliseconds that such a request takes longer."""
BIAS: Final = 0.05
"""Standard deviation of the logarithm by which a node's agent always measures too much or too little."""
NOISE: Final = Noise(0.10, 0.01)
"""Of the runs of policies."""


class Terms(NamedTuple):
    """What a run is about."""

    scenario: Scenario
    """clusters and limits"""
    spec: LatencyPolicySpec
    """the policy"""
    goal: float
    """round trip in milliseconds that is low enough"""
    unreachable: float = 0.0
    """share of users that agents cannot probe"""
    horizon: float = HORIZON
    """seconds"""
    start: tuple[float, float] = (3.0, 8.0)
    """seconds that a pod takes to become ready, at least and at most"""


class Outcome(NamedTuple):
    """What one run gave."""

    latency: float
    """mean of what the user saw at the end, in milliseconds"""
    convergence: float
    """when the last request was whose path is beyond the goal, in seconds"""
    success: bool
    """whether no path at the end is"""
    first: float
    """mean of the first 300 seconds, in milliseconds"""
    moves: int
    """pods that were evicted because another had replaced them"""
    cancelled: int
    """moves that were given up"""
    failed: int
    """requests without a pod"""
    extra: int
    """most pods at once beyond the one that should be"""


class Simulation:
    """A user, eight clusters and the decisions of a policy."""

    def __init__(self, terms: Terms, seed: int) -> None:
        """Begin with one ready pod on a cluster by chance."""
        self.terms, self.chance = terms, random.Random(seed)
        scenario = terms.scenario
        self.far = dict(zip(scenario.nodes, scenario.latencies, strict=True))
        self.order = tuple(self.chance.sample(scenario.nodes, len(scenario.nodes)))
        self.bias = {name: exp(self.chance.gauss(0, BIAS)) for name in scenario.nodes}
        self.reachable = self.chance.random() >= terms.unreachable
        self.windows: dict[tuple[str, MeasurementSource], Window] = {}
        self.pods = {"p0": Pod("p0", self.chance.choice(scenario.nodes))}
        self.status = LatencyPolicyStatus()
        self.steered: str | None = None
        self.seen = False
        self.now = 0.0
        self.events: list[tuple[float, int, str, str]] = []
        self.paths: list[tuple[float, float, float]] = []
        self.count = self.created = self.evicted = self.failed = self.extra = 0
        self.due: float | None = None
        self._later(self.chance.uniform(0, 1), "request")

    def run(self) -> Outcome:
        """Run to the end."""
        while self.events[0][0] < self.terms.horizon:
            self.now, _, kind, what = heapq.heappop(self.events)
            getattr(self, f"_{kind}")(what)
        end, goal = self.terms.horizon - JUDGED, self.terms.goal
        last = [(path, seen) for when, path, seen in self.paths if when >= end]
        first = [seen for when, _, seen in self.paths if when < 300]
        moved = [move for move in self.status.moves if move.outcome != "Cancelled"]
        return Outcome(
            latency=sum(seen for _, seen in last) / len(last),
            convergence=max((when for when, path, _ in self.paths if path > goal), default=0.0),
            success=all(path <= goal for path, _ in last),
            first=sum(first) / len(first),
            moves=len(moved),
            cancelled=len(self.status.moves) - len(moved),
            failed=self.failed,
            extra=self.extra,
        )

    @property
    def time(self) -> datetime:
        """The time as decisions know it."""
        return EPOCH + timedelta(seconds=self.now)

    def _later(self, delay: float, kind: str, what: str = "") -> None:
        self.count += 1
        heapq.heappush(self.events, (self.now + delay, self.count, kind, what))

    def _request(self, _: str) -> None:
        ready = [pod for pod in self.pods.values() if pod.ready]
        if not ready:
            self.failed += 1
            self._later(0.5, "request")
            return
        node, source, trips, path = self.chance.choice(ready).node, MeasurementSource.METER, 1, 0.0
        if self.steered in [pod.node for pod in ready]:
            node = self.steered
        elif self.steered is not None:
            node, source, trips, path = self.steered, MeasurementSource.ROUTER, TRIPS_STEERED, DETOUR
        self.steered = None
        path += self.far[node]
        for _trip in range(trips):
            self._measured(node, source, NOISE.apply(self.far[node], self.chance))
        self.paths.append((self.now, path, NOISE.apply(path, self.chance) + SERVICE))
        self._later(PUSH, "told", f"{node} {source}")
        self._later(self.chance.uniform(4, 6), "request")
        if not self.seen:
            self.seen = True
            self._decide("")

    def _measured(self, node: str, source: MeasurementSource, milliseconds: float) -> None:
        self.windows.setdefault((node, source), Window()).add(milliseconds * 1000, self.time)

    def _told(self, what: str) -> None:
        node, source = what.split()
        self._observe([(node, MeasurementSource(source))])
        self._decide("")

    def _observe(self, keys: list[tuple[str, MeasurementSource]]) -> None:
        found = (self.windows[key].measurement(*key, self.time) for key in keys)
        serving = {pod.node for pod in self.pods.values()}
        self.status = knowledge.observe(self.status, self.terms.spec, [each for each in found if each], serving)

    def _probed(self, _: str) -> None:
        if not self.reachable:
            self.status = measuring.unreachable(self.status, self.time)
        else:
            for node, milliseconds in self.far.items():
                for _probe in range(PROBES):
                    drawn = NOISE.apply(milliseconds * self.bias[node], self.chance)
                    self._measured(node, MeasurementSource.PROBE, drawn)
            self._observe([(node, MeasurementSource.PROBE) for node in self.far])
        self._decide("")

    def _ready(self, name: str) -> None:
        if name in self.pods:
            self.pods[name] = self.pods[name]._replace(ready=True)
            self._decide("")

    def _look(self, _: str) -> None:
        if self.due is not None and self.due <= self.now:
            self.due = None
            self._decide("")

    def _decide(self, _: str) -> None:
        view = View(tuple(self.pods.values()), 1, self.terms.scenario.nodes, self.order, self.seen)
        decision = decide(self.status, self.terms.spec, view, self.time)
        self.status = decision.status
        evicted = False
        for action in decision.actions:
            match action:
                case Probe():
                    self._later(self.chance.uniform(0, PROBING) + 1, "probed")
                case Steer(node):
                    self.steered = node
                case Create(node):
                    self.created += 1
                    name = f"p{self.created}"
                    self.pods[name] = Pod(name, node, ready=False)
                    self._later(self.chance.uniform(*self.terms.start), "ready", name)
                case Evict(pod):
                    evicted = self.pods.pop(pod, None) is not None
        self.extra = max(self.extra, len(self.pods) - 1)
        if decision.look_again is not None:
            due = (decision.look_again - EPOCH).total_seconds()
            if self.due is None or due < self.due:
                self.due = due
                self._later(max(due - self.now, 0.0), "look")
        if evicted:
            self._decide("")

"""Many users: 50 in five regions, 3 pods on 8 nodes; some cannot be probed, and a third of them goes elsewhere.

Nodes and regions are points of a square by chance; a round trip is 10 ms and the distance.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import dist, exp
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from bench.latency.policy import BIAS, NOISE, PROBES, PROBING, PUSH
from berth.api.latencypolicy import LatencyPolicySpec, LatencyPolicyStatus, MeasurementSource
from berth.scheduling.latency import per_user
from berth.scheduling.latency.coverage import best_nodes, worth
from berth.scheduling.latency.situation import Create, Evict, Pod, View
from berth.scheduling.latency.user_table import UserTable
from berth.scheduling.latency.window import Window

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""When runs begin."""
USERS: Final = 50
"""Users of a run."""
REGIONS: Final = 5
"""Regions with as many users each."""
NODES: Final = 8
"""Nodes of a run."""
PODS: Final = 3
"""Pods of a run."""
NEAREST: Final = 10.0
"""Milliseconds of the shortest round trip."""
SIDE: Final = 170.0
"""Milliseconds from one side of the square to the other."""
SPREAD: Final = 0.05
"""Standard deviation of users around the middle of their region, of the side."""
HARD: Final = 80
"""Hard limit in milliseconds."""
MOVING: Final = 120.0
"""When some users go to another region, in seconds."""
MOVERS: Final = 0.3
"""Share of the users who do."""
HORIZON: Final = 240.0
"""Seconds of a run."""
CLOSE: Final = 1.02
"""Mean round trip over that of the exact optimum at which users are served well."""
COALESCED: Final = 0.5
"""Seconds over which news are gathered before they are decided upon."""


class Crowd(NamedTuple):
    """Users and nodes of a run, and how far they are: milliseconds, by user and node."""

    at: list[list[float]]
    """before some have moved"""
    then: list[list[float]]
    """after"""
    region: list[int]
    """of each user before"""
    region_then: list[int]
    """of each user after"""


class Phase(NamedTuple):
    """What a run gave, before or after users have moved."""

    mean: float
    """mean round trip of the users' paths at the end, in milliseconds"""
    best: float
    """that of the exact optimum"""
    convergence: float
    """seconds until paths were as near to the optimum as they are at the end, or within 2 % of it"""
    moves: int
    """pods that were evicted because another had replaced them"""
    within: float
    """share of users within the hard limit at the end"""


class Outcome(NamedTuple):
    """What one run gave."""

    first: Phase
    """before users have moved"""
    then: Phase
    """after"""
    start: float
    """mean round trip with pods and users by chance, in milliseconds"""
    failed: int
    """requests without a pod"""
    extra: int
    """most pods at once beyond those that should be"""


def crowd(chance: random.Random) -> Crowd:
    """Return users and nodes by chance."""

    def point() -> tuple[float, float]:
        return chance.random(), chance.random()

    nodes, regions = [point() for _ in range(NODES)], [point() for _ in range(REGIONS)]

    def near(region: int) -> list[float]:
        x, y = regions[region]
        place = chance.gauss(x, SPREAD), chance.gauss(y, SPREAD)
        return [NEAREST + SIDE * dist(place, node) for node in nodes]

    region = [user % REGIONS for user in range(USERS)]
    movers = set(chance.sample(range(USERS), int(USERS * MOVERS)))
    region_then = [
        (own + chance.randrange(1, REGIONS)) % REGIONS if user in movers else own for user, own in enumerate(region)
    ]
    at = [near(own) for own in region]
    then = [near(region_then[user]) if user in movers else row for user, row in enumerate(at)]
    return Crowd(at, then, region, region_then)


class Simulation:
    """The users of a run, their pods and the decisions of a policy."""

    def __init__(self, spec: LatencyPolicySpec, unreachable: float, seed: int) -> None:
        """Begin with pods on nodes by chance."""
        self.spec, self.chance = spec, random.Random(seed)
        self.crowd = crowd(self.chance)
        self.far, self.region = self.crowd.at, self.crowd.region
        self.names = tuple(f"n{number}" for number in range(NODES))
        self.probed = [self.chance.random() >= unreachable for _ in range(USERS)]
        self.bias = [[exp(self.chance.gauss(0, BIAS)) for _ in range(NODES)] for _ in range(USERS)]
        self.windows: dict[tuple[int, int, MeasurementSource], Window] = {}
        self.table = UserTable()
        self.status = LatencyPolicyStatus()
        placed = self.chance.sample(range(NODES), PODS)
        self.pods = {f"p{at}": Pod(f"p{at}", self.names[node]) for at, node in enumerate(placed)}
        self.start = fmean(row[node] for row in self.far for node in placed)
        self.now = 0.0
        self.count, self.created, self.failed, self.extra = 0, PODS, 0, 0
        self.events: list[tuple[float, int, str, object]] = []
        self.pending: float | None = None
        self.paths: list[tuple[float, float, float]] = []
        for user in range(USERS):
            self._later(self.chance.uniform(0, 1), "request", user)
        self._later(MOVING, "leave", None)

    def run(self) -> Outcome:
        """Run to the end."""
        while self.events[0][0] < HORIZON:
            self.now, _, kind, what = heapq.heappop(self.events)
            getattr(self, f"_{kind}")(what)
        return Outcome(self._phase(0.0, MOVING), self._phase(MOVING, HORIZON), self.start, self.failed, self.extra)

    def _phase(self, begin: float, end: float) -> Phase:
        far = self.crowd.at if begin < MOVING else self.crowd.then
        costs = np.array(far)
        best = worth(costs, best_nodes(costs, range(NODES), PODS, HARD), HARD)
        during = [(when, mean, within) for when, mean, within in self.paths if begin <= when < end]
        _, last, within = during[-1]
        most = max(last, best.mean) * CLOSE
        late = [when for when, mean, _ in during if mean > most]
        after = min((when for when, *_ in during if not late or when > late[-1]), default=end)
        evicted = [move for move in self.status.moves if move.outcome not in ("Cancelled", "Creating")]
        times = [(move.start_time - EPOCH).total_seconds() for move in evicted]
        moves = sum(begin <= time < end for time in times)
        return Phase(last, best.mean, after - begin if late else 0.0, moves, within)

    @property
    def time(self) -> datetime:
        """The time as decisions know it."""
        return EPOCH + timedelta(seconds=self.now)

    def _later(self, delay: float, kind: str, what: object) -> None:
        self.count += 1
        heapq.heappush(self.events, (self.now + delay, self.count, kind, what))

    def _leave(self, _: None) -> None:
        self.far, self.region = self.crowd.then, self.crowd.region_then
        self._note()

    def _request(self, user: int) -> None:
        ready = [pod.node for pod in self.pods.values() if pod.ready]
        if not ready:
            self.failed += 1
            self._later(0.5, "request", user)
            return
        own = next((each.node for each in self.status.associations if each.user == f"u{user}"), None)
        node = self.names.index(own if own in ready else self.chance.choice(ready))
        if self.table.see(f"u{user}", f"r{self.region[user]}", self.time):
            for key in [key for key in self.windows if key[0] == user]:
                del self.windows[key]
            if self.probed[user]:
                self._later(self.chance.uniform(0, PROBING) + 1, "answer", user)
            self._news()
        self._measured(user, node, MeasurementSource.METER, self.far[user][node])
        self._later(PUSH, "told", (user, node))
        self._later(self.chance.uniform(4, 6), "request", user)

    def _measured(self, user: int, node: int, source: MeasurementSource, milliseconds: float) -> None:
        drawn = NOISE.apply(milliseconds, self.chance)
        self.windows.setdefault((user, node, source), Window()).add(drawn * 1000, self.time)

    def _told(self, what: tuple[int, int]) -> None:
        self._observe(what[0], [what[1]], MeasurementSource.METER)

    def _answer(self, user: int) -> None:
        for node, milliseconds in enumerate(self.far[user]):
            for _ in range(PROBES):
                self._measured(user, node, MeasurementSource.PROBE, milliseconds * self.bias[user][node])
        self._observe(user, range(NODES), MeasurementSource.PROBE)

    def _observe(self, user: int, nodes: Iterable[int], source: MeasurementSource) -> None:
        windows = ((node, self.windows.get((user, node, source))) for node in nodes)
        found = (window.measurement(self.names[node], source, self.time) for node, window in windows if window)
        self.table.observe(f"u{user}", [each for each in found if each])
        self._news()

    def _ready(self, name: str) -> None:
        if name in self.pods:
            self.pods[name] = self.pods[name]._replace(ready=True)
            self._decide(None)

    def _news(self, delay: float = COALESCED) -> None:
        if self.pending is None or self.now + delay < self.pending:
            self.pending = self.now + delay
            self._later(delay, "look", None)

    def _look(self, _: None) -> None:
        if self.pending is not None and self.pending <= self.now:
            self._decide(None)

    def _decide(self, _: None) -> None:
        self.pending, again = None, False
        view = View(tuple(self.pods.values()), PODS, self.names, self.names)
        decision = per_user.decide(self.status, self.spec, view, self.table, self.time)
        self.status = decision.status
        for action in decision.actions:
            if isinstance(action, Create):
                name = f"p{self.created}"
                self.created += 1
                self.pods[name] = Pod(name, action.node, ready=False)
                self._later(self.chance.uniform(3, 8), "ready", name)
            elif isinstance(action, Evict):
                again = self.pods.pop(action.pod, None) is not None or again
        self.extra = max(self.extra, len(self.pods) - PODS)
        self._note()
        if decision.look_again is not None:
            self._news(max((decision.look_again - self.time).total_seconds(), 0.0))
        if again:
            self._decide(None)

    def _note(self) -> None:
        """Note the mean round trip of the paths that users have now, and the share of them within the limit."""
        ready = [self.names.index(pod.node) for pod in self.pods.values() if pod.ready]
        own = {each.user: self.names.index(each.node) for each in self.status.associations}
        far = []
        for user, row in enumerate(self.far):
            node = own.get(f"u{user}")
            far.append(row[node] if node in ready else fmean(row[each] for each in ready))
        self.paths.append((self.now, fmean(far), sum(each <= HARD for each in far) / USERS))

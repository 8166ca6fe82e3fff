"""Policies, measurements and a small world of pods and nodes, for tests of what is decided near the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from berth.api.latencypolicy import (
    LatencyPolicySpec,
    LatencyPolicyStatus,
    MeasurementSource,
    NodeState,
    NodeStatus,
    Target,
)
from berth.scheduling.latency import knowledge
from berth.scheduling.latency.decision import Decision, decide
from berth.scheduling.latency.situation import Create, Evict, Pod, Probe, Steer, View
from berth.scheduling.latency.user_table import UserTable
from berth.scheduling.latency.window import Measurement

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
METER, PROBE, ROUTER = MeasurementSource
NODES = ("a", "b", "c", "d")


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def policy(**fields: object) -> LatencyPolicySpec:
    """A spec with limits in milliseconds under `hard` and `soft`, and of moves under their own names."""
    names = {"hard": "hard_max_latency", "soft": "soft_max_latency"}
    of_moves = {"max_concurrent", "max_per_hour", "cool_down_seconds", "min_improvement_percent", "dry_run"}
    top = {names.get(name, name): value for name, value in fields.items() if name not in of_moves}
    moves = {name: value for name, value in fields.items() if name in of_moves}
    return LatencyPolicySpec.model_validate({"target_ref": Target(name="web"), "moves": moves, **top})


def measured(
    node: str, milliseconds: float, at: float = 0, source: MeasurementSource = METER, samples: int = 15
) -> Measurement:
    value = round(milliseconds * 1000)
    return Measurement(node, source, value, value, samples, later(at))


def users_of(rows: Sequence[Sequence[float]], now: datetime = NOW) -> UserTable:
    """Users u0, u1, ..., each of a network of its own, with milliseconds to each of `NODES`, as measured then."""
    table = UserTable()
    for at, row in enumerate(rows):
        table.see(f"u{at}", f"r{at}", now)
        seconds = (now - NOW).total_seconds()
        table.observe(f"u{at}", [measured(node, far, seconds) for node, far in zip(NODES, row, strict=True)])
    return table


def known(node: str, milliseconds: float | None, state: NodeState = NodeState.UNKNOWN, samples: int = 15) -> NodeStatus:
    if milliseconds is None:
        return NodeStatus(node=node)
    value = round(milliseconds * 1000)
    return NodeStatus(
        node=node, state=state, source=PROBE, p50_microseconds=value, p90_microseconds=value, samples=samples, time=NOW
    )


def status_of(spec: LatencyPolicySpec, milliseconds: Mapping[str, float]) -> LatencyPolicyStatus:
    found = [measured(node, value, source=PROBE) for node, value in milliseconds.items()]
    return knowledge.observe(LatencyPolicyStatus(), spec, found)


def again(status: LatencyPolicyStatus) -> LatencyPolicyStatus:
    """The status as another controller reads it."""
    return LatencyPolicyStatus.model_validate(status.to_api())


@dataclass
class World:
    """Nodes that are as far as stated, and pods that come and go as decided."""

    spec: LatencyPolicySpec
    far: dict[str, float]
    """milliseconds by node, as users have them"""
    told: dict[str, float] = field(default_factory=dict)
    """milliseconds by node, as agents say; empty: they get no answer"""
    place: str = ""
    start: float = 5.0
    """seconds until a pod is ready"""
    restarts: bool = False
    """whether another controller decides each time"""
    status: LatencyPolicyStatus = field(default_factory=LatencyPolicyStatus)
    now: float = 0.0
    pods: dict[str, Pod] = field(default_factory=dict)
    ready_at: dict[str, float] = field(default_factory=dict)
    created: list[tuple[float, Create]] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    steered: list[str] = field(default_factory=list)
    probes: list[float] = field(default_factory=list)
    most: int = 0

    def __post_init__(self) -> None:
        self.pods = {"p0": Pod("p0", self.place or next(iter(self.far)))}

    @property
    def places(self) -> list[str]:
        return [pod.node for pod in self.pods.values()]

    def step(self, seconds: float = 1.0) -> Decision:
        """Let time pass; users have requests all the time, and agents answer in the same step."""
        self.now += seconds
        for name, time in self.ready_at.items():
            if time <= self.now and name in self.pods:
                self.pods[name] = self.pods[name]._replace(ready=True)
        served = [pod.node for pod in self.pods.values() if pod.ready]
        self.observe([measured(node, self.far[node], self.now) for node in served])
        decision = self.decide()
        for _ in range(3):
            if not self.carry_out(decision):
                break
            decision = self.decide()
        return decision

    def observe(self, measurements: list[Measurement]) -> None:
        self.status = knowledge.observe(self.status, self.spec, measurements, self.places)

    def decide(self) -> Decision:
        view = View(tuple(self.pods.values()), 1, tuple(self.far), tuple(self.far))
        status = again(self.status) if self.restarts else self.status
        decision = decide(status, self.spec, view, later(self.now))
        self.status = decision.status
        return decision

    def carry_out(self, decision: Decision) -> bool:
        for action in decision.actions:
            match action:
                case Probe() if self.told:
                    self.probes.append(self.now)
                    self.observe([measured(node, self.told[node], self.now, PROBE, 3) for node in action.nodes])
                case Probe():
                    self.probes.append(self.now)
                    value = later(self.now)
                    self.status = self.status.model_copy(update={"unreachable_time": knowledge.whole(value)})
                case Steer(node) if node not in self.places:
                    self.steered.append(node)
                    self.observe([measured(node, self.far[node], self.now, ROUTER, 2)])
                case Create(node):
                    name = f"p{len(self.created) + 1}"
                    self.created.append((self.now, action))
                    self.pods[name] = Pod(name, node, ready=False)
                    self.ready_at[name] = self.now + self.start
                case Evict(pod):
                    self.evicted.append(pod)
                    self.pods.pop(pod, None)
        self.most = max(self.most, len(self.pods))
        return bool(decision.actions)

    def run(self, seconds: float, step: float = 1.0) -> None:
        for _ in range(int(seconds / step)):
            self.step(step)

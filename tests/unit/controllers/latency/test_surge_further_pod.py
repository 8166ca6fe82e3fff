"""Moves one after the other, where the controller sees pods some time after their ReplicaSet has made them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pytest

from berth.api.latencypolicy import LatencyPolicySpec, LatencyPolicyStatus
from berth.scheduling.latency import knowledge
from berth.scheduling.latency.decision import decide
from berth.scheduling.latency.moves import open_moves
from berth.scheduling.latency.situation import Evict, Pod, View
from controllers.latency.surge import scaling
from tests.support.latency import later, measured, policy

FAR = {"a": 180.0, "b": 70.0, "c": 60.0, "d": 20.0}
START = 3
"""Seconds until a pod is ready."""
LONGEST = 30
"""Seconds that a move takes at the most: none waits for a pod that never comes."""


@dataclass
class Workload:
    """A Deployment of one replica on the farthest node, its ReplicaSet, and the controller, which sees both late."""

    spec: LatencyPolicySpec
    lag: int
    """steps after which the controller sees how things are"""
    pods: dict[str, Pod] = field(default_factory=lambda: {"p0": Pod("p0", "a")})
    born: dict[str, int] = field(default_factory=lambda: {"p0": -START})
    number: int = 1
    status: LatencyPolicyStatus = field(default_factory=LatencyPolicyStatus)
    past: deque[tuple[Pod, ...]] = field(default_factory=deque)
    now: int = 0
    made: int = 0

    def step(self) -> None:
        """A second: pods get ready, the controller decides, and the ReplicaSet does what is asked of it."""
        self.now += 1
        for name, pod in self.pods.items():
            self.pods[name] = pod._replace(ready=self.now - self.born[name] >= START)
        self.past.append(tuple(self.pods.values()))
        seen = self.past.popleft() if len(self.past) > self.lag else self.past[0]
        self.control(tuple(pod for pod in seen if pod.name in self.pods))
        self.replicate()

    def control(self, seen: tuple[Pod, ...]) -> None:
        """Of pods that go it knows at once, as it evicts them; of those that come late."""
        served = [measured(pod.node, FAR[pod.node], self.now) for pod in seen if pod.ready]
        self.status = knowledge.observe(self.status, self.spec, served, [pod.node for pod in seen])
        surge, nodes = self.status.surge, tuple(FAR)
        base = surge.replicas if surge is not None else self.number
        decision = decide(self.status, self.spec, View(seen, base, nodes, nodes, asked=self.number), later(self.now))
        going = [action.pod for action in decision.actions if isinstance(action, Evict)]
        moves = len(open_moves(decision.status))
        settled = len({pod.name for pod in seen} - {*going}) > base + moves
        found = scaling(surge, moves, self.number, settled=settled)
        self.status = decision.status.model_copy(update={"surge": found.surge})
        if found.write is not None and found.write[0] == self.number:
            self.number = found.write[1]
        for name in going if not found.fewer else []:
            self.pods.pop(name, None)

    def replicate(self) -> None:
        """One that is too many goes, the youngest; one that is missing comes: where a move awaits it, or anywhere."""
        if len(self.pods) > self.number:
            self.pods.pop(max(self.pods, key=self.born.__getitem__))
        elif len(self.pods) < self.number:
            self.made += 1
            there = {pod.node for pod in self.pods.values()}
            awaited = [move.target_node for move in open_moves(self.status) if move.target_node not in there]
            name = f"p{self.made}"
            self.pods[name] = Pod(name, (*awaited, "b")[0], ready=False)
            self.born[name] = self.now


@pytest.mark.parametrize("lag", range(6))
@pytest.mark.parametrize("limits", [{"hard": 100, "soft": 40}, {"hard": 65}], ids=["both limits", "the hard limit"])
def test_none_waits_for_a_pod_that_never_comes(limits: dict[str, float], lag: int) -> None:
    workload = Workload(policy(**limits, exploration=["Migrate"]), lag)
    going: dict[str, int] = {}
    for _ in range(200):
        workload.step()
        for move in open_moves(workload.status):
            going[f"{move.pod} to {move.target_node}"] = going.get(f"{move.pod} to {move.target_node}", 0) + 1
    assert max(going.values()) <= LONGEST
    [pod] = workload.pods.values()
    assert FAR[pod.node] <= min(limits.values())
    assert (workload.number, workload.status.surge) == (1, None)

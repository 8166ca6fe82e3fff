"""What a node's SocketStatus says of what was found and done. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations
from typing import Final

from agents.node.pinning.division import Division
from agents.node.pinning.reconciler import Finding
from agents.node.pinning.rounds import PodState, Round
from agents.node.pinning.sockets import reports, socket_of
from agents.node.pinning.wanted import Problem
from agents.node.topology.machine import Machine
from berth.api.conditions import ConditionUpdate, apply
from berth.api.socketstatus import (
    CONDITION_DRIFTED,
    CONDITION_OBSERVE_ONLY,
    CONDITION_PINNED,
    CONDITION_TOPOLOGY_UNKNOWN,
    MAX_PODS,
    MAX_SOCKETS,
    REASON_UNABLE,
    PodReport,
    SocketStatusStatus,
)
from berth.api.text import counted
from berth.scheduling.interference.pairing import PairQuality, pair_quality

REASON_KUBELET_PINS: Final = "KubeletPins"
"""Reason of `ObserveOnly` where the kubelet pins, and nothing at all is written."""
MAX_SHOWN: Final = 10
"""Problems that a condition's message lists; it says how many more there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is known of a node."""

    generation: int
    """generation of the SocketStatus' spec that was acted on"""
    machine: Machine | None = None
    """its sockets; None: they cannot be told"""
    topology_problem: str = ""
    """why they cannot"""
    division: Division = Division.CORES
    """how far sockets are divided among their pods"""
    round: Round = field(default_factory=Round)
    """what the last round found"""
    problems: tuple[Problem, ...] = ()
    """what people wrote and cannot be done"""
    observe_reason: str = ""
    """one word: why nothing is written; empty: it is"""
    observe: str = ""
    """the same in a sentence"""
    unable: str = ""
    """why nothing can be pinned, such as a journal that cannot be read; empty: it can"""


def status_of(found: Found, previous: SocketStatusStatus, now: datetime) -> SocketStatusStatus:
    """Return the status of a node.

    Args:
        found: what is known of the node.
        previous: the status that is there; times at which nothing has changed since stay.
        now: the time.
    """
    before = {pod.uid: pod for pod in previous.pods}
    pods = tuple(_pod(state, found, before.get(state.wish.uid), now) for state in found.round.pods)
    classed = [pod for pod in pods if pod.interference_class is not None]
    return SocketStatusStatus(
        observed_generation=found.generation,
        time=now,
        socket_count=len(found.machine.sockets) if found.machine else None,
        pinned=f"{sum(pod.since is not None for pod in classed)}/{len(classed)}",
        violations=_violations(classed),
        sockets=reports(found.machine, found.division)[:MAX_SOCKETS] if found.machine else (),
        pods=pods[:MAX_PODS],
        conditions=apply(previous.conditions, _conditions(found), observed_generation=found.generation, now=now),
    )


def by_the_clock(status: SocketStatusStatus, step: timedelta, now: datetime) -> SocketStatusStatus:
    """Return a status with its times as a clock tells them that was set by `step` since; none is after `now`.

    So ages are right by a clock that was wrong when something changed, or that is wrong for a while.
    """

    def told(time: datetime) -> datetime:
        with suppress(OverflowError):
            time += step
        return min(time, now)

    return status.model_copy(
        update={
            "time": status.time and told(status.time),
            "pods": tuple(pod.model_copy(update={"since": pod.since and told(pod.since)}) for pod in status.pods),
            "conditions": tuple(
                each.model_copy(update={"last_transition_time": told(each.last_transition_time)})
                for each in status.conditions
            ),
        }
    )


def kept_caches(status: SocketStatusStatus) -> dict[str, frozenset[int]]:
    """Return the CPUs, all of one cache, that each pod was kept to, by UID."""
    return {pod.uid: pod.cpus for pod in status.pods if pod.cache is not None and pod.cpus}


def _pod(state: PodState, found: Found, before: PodReport | None, now: datetime) -> PodReport:
    wish = state.wish
    # While another agent is there, what was pinned before stays so.
    asked = state.cpus if state.cpus and (not found.observe or state.pinned) else None
    unchanged = before is not None and before.cpus == asked and before.since is not None
    return PodReport(
        uid=wish.uid,
        namespace=wish.namespace,
        name=wish.name,
        interference_class=wish.interference_class,
        socket=socket_of(found.machine, state.effective_cpus) if found.machine else None,
        cache=wish.cache if asked is not None and asked <= wish.cpus else None,
        cpus=asked,
        effective_cpus=state.effective_cpus or None,
        since=((before.since if before and unchanged else now) if state.pinned else None),
    )


def _violations(pods: Iterable[PodReport]) -> int:
    placed = [(pod.socket, pod.interference_class) for pod in pods if pod.socket is not None]
    return sum(
        pair_quality(first, second) is PairQuality.WORST
        for (one, first), (other, second) in combinations(placed, 2)
        if one == other and first is not None and second is not None
    )


def _conditions(found: Found) -> tuple[ConditionUpdate, ...]:
    unknown = found.machine is None
    return (
        _pinned(found),
        _drifted(found),
        ConditionUpdate(
            CONDITION_OBSERVE_ONLY,
            bool(found.observe),
            found.observe_reason or "NobodyElsePins",
            found.observe or "nobody else pins on the node",
        ),
        ConditionUpdate(
            CONDITION_TOPOLOGY_UNKNOWN,
            unknown,
            "NoSockets" if unknown else "SocketsKnown",
            found.topology_problem or _known(found.machine),
        ),
    )


def _pinned(found: Found) -> ConditionUpdate:
    assigned = [
        state for state in found.round.pods if state.wish.socket is not None and (state.findings or state.wish.running)
    ]
    pinned = [state for state in assigned if state.pinned]
    texts = [
        f"Pod {state.wish.namespace}/{state.wish.name}: it runs, and no container of it is found; see whether "
        f"--pinning-runtime is the socket of its runtime"
        for state in assigned
        if not (state.findings or found.unable)
    ]
    texts += [
        f"Pod {state.wish.namespace}/{state.wish.name}: container {name}: {text or finding}"
        for state in assigned
        for name, (finding, text) in sorted(state.findings.items())
        if finding is not Finding.IN_EFFECT
    ]
    general = [text for text in (found.unable, found.topology_problem, found.observe, found.round.problem) if text]
    listed = shown([*general, *texts, *map(str, found.problems)])
    if found.unable:
        return ConditionUpdate(CONDITION_PINNED, False, REASON_UNABLE, listed)
    if found.machine is None:
        return ConditionUpdate(CONDITION_PINNED, False, "TopologyUnknown", listed)
    if len(pinned) < len(assigned):
        return ConditionUpdate(CONDITION_PINNED, False, "ObserveOnly" if found.observe else "NotInEffect", listed)
    parted = any(state.wish.cpus != state.wish.socket_cpus for state in assigned)
    told = f"{counted(len(assigned), 'pod')} assigned, each with the CPUs of its socket"
    told += ", or its part of them" if parted else ""
    reason = "BadInput" if found.problems else "InEffect" if assigned else "NothingAssigned"
    return ConditionUpdate(CONDITION_PINNED, True, reason, f"{told}; {listed}" if listed else told)


def _known(machine: Machine | None) -> str:
    count = len(machine.sockets) if machine else 0
    listed = f", of which the first {MAX_SOCKETS} of {count} are listed" if count > MAX_SOCKETS else ""
    return f"sysfs tells the sockets of the node{listed}"


def _drifted(found: Found) -> ConditionUpdate:
    texts = [
        f"Pod {state.wish.namespace}/{state.wish.name}: container {name}: {text}"
        for state in found.round.pods
        for name, (finding, text) in sorted(state.findings.items())
        if finding in (Finding.GIVEN_UP, Finding.DRIFTED)
    ]
    if found.observe_reason == REASON_KUBELET_PINS:
        text = "the agent sets no CPUs that others could change; see the condition ObserveOnly"
        return ConditionUpdate(CONDITION_DRIFTED, False, "ObserveOnly", text)
    if not texts:
        return ConditionUpdate(CONDITION_DRIFTED, False, "Stable", "nobody changes CPUs that were set")
    remedy = "find out who writes its cpuset, then assign it anew or start it again"
    return ConditionUpdate(CONDITION_DRIFTED, True, "ChangedByOthers", f"{shown(texts)}; {remedy}")


def shown(texts: list[str]) -> str:
    """Return the first texts, and how many more there are."""
    more = len(texts) - MAX_SHOWN
    return "; ".join([*texts[:MAX_SHOWN], *([f"and {more} more"] if more > 0 else [])])

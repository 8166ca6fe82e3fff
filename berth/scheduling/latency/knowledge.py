"""What a status knows of nodes, and what a new measurement changes of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from berth.api.latencypolicy import (
    MAX_NODES,
    LatencyPolicySpec,
    LatencyPolicyStatus,
    MeasurementSource,
    NodeState,
    NodeStatus,
)
from berth.scheduling.latency.classification import Limits, classify
from berth.scheduling.latency.window import Measurement

METER_PRECEDES: Final = timedelta(seconds=30)
"""How long what a meter measured stands against what others say: it is what users had."""
PROBE_AGE: Final = timedelta(minutes=2)
"""How long a probe counts: agents measure again all the time."""
MAX_AGE: Final = timedelta(hours=24)
"""How long anything else counts: to measure again, a pod or a request would have to go there."""
FIRST_REJECTION: Final = timedelta(minutes=10)
"""How long a node that disappointed is left alone; twice as long each time."""
LONGEST_REJECTION: Final = timedelta(hours=24)
"""How long at most."""


def whole(now: datetime) -> datetime:
    """Return the time as a status keeps it, in whole seconds."""
    return now.replace(microsecond=0)


def by_name(status: LatencyPolicyStatus) -> dict[str, NodeStatus]:
    """Return what is known, by node."""
    return {known.node: known for known in status.nodes}


def observe(
    status: LatencyPolicyStatus,
    spec: LatencyPolicySpec,
    measurements: Iterable[Measurement],
    serving: Collection[str] | None = None,
) -> LatencyPolicyStatus:
    """Return the status with measurements taken in.

    What a meter says counts in any case; what probes and the router say is not taken while the meter's is no more
    than half a minute older and users are served there still: of a node that pods have left it tells nothing new, and
    users may have gone back there. Older ones than what is known change nothing. A status keeps 256 nodes: those
    where users were served or that are remembered as bad, and of the others the nearest.

    Args:
        status: what is known.
        spec: what is wanted.
        measurements: what is said.
        serving: nodes that share what is measured with one that has a pod; None: all of which a meter tells.
    """
    limits, nodes, changed = Limits.of(spec), by_name(status), False
    for measurement in measurements:
        known = nodes.get(measurement.node, NodeStatus(node=measurement.node))
        time = whole(measurement.time)
        served = serving is None or measurement.node in serving
        if known.time is not None and (time < known.time or (served and _stands(known, measurement, time))):
            continue
        enough = measurement.samples >= spec.min_samples
        nodes[measurement.node] = known.model_copy(
            update={
                "state": classify(known.state, measurement.p50, measurement.samples, limits)
                if enough
                else NodeState.UNKNOWN,
                "source": measurement.source,
                "p50_microseconds": measurement.p50,
                "p90_microseconds": measurement.p90,
                "samples": measurement.samples,
                "time": time,
            }
        )
        changed = True
    return status.model_copy(update={"nodes": bounded(nodes)}) if changed else status


def by_limits(status: LatencyPolicyStatus, spec: LatencyPolicySpec) -> LatencyPolicyStatus:
    """Return the status with the states that nodes have by the limits as they are.

    What nobody measures again was classified by those of its time, which somebody may have changed since.
    """
    nodes = tuple(_classified(known, spec) for known in status.nodes)
    return status if nodes == status.nodes else status.model_copy(update={"nodes": nodes})


def forget(status: LatencyPolicyStatus, now: datetime, there: Collection[str]) -> LatencyPolicyStatus:
    """Return the status without measurements that are too old, and without nodes that are not there any more."""
    names = frozenset(there)
    kept = [known for known in status.nodes if known.node in names]
    nodes = tuple(_aged(known) if _is_old(known, now) else known for known in kept)
    nodes = tuple(known for known in nodes if known.time or known.rejections)
    return status if nodes == status.nodes else status.model_copy(update={"nodes": nodes})


def reject(status: LatencyPolicyStatus, node: str, now: datetime) -> LatencyPolicyStatus:
    """Return the status that remembers a node as bad: 10 minutes, and twice as long each further time."""
    nodes = by_name(status)
    known = nodes.get(node, NodeStatus(node=node))
    rejections = min(known.rejections + 1, 16)
    until = whole(now) + min(FIRST_REJECTION * 2 ** (rejections - 1), LONGEST_REJECTION)
    nodes[node] = known.model_copy(update={"rejections": rejections, "rejected_until": until})
    return status.model_copy(update={"nodes": bounded(nodes)})


def is_rejected(known: NodeStatus | None, now: datetime) -> bool:
    """Return whether a node is remembered as bad."""
    return known is not None and known.rejected_until is not None and now < known.rejected_until


def _classified(known: NodeStatus, spec: LatencyPolicySpec) -> NodeStatus:
    # Where each user counts samples are users, of whom any number is enough.
    enough = known.source is None or known.samples >= spec.min_samples
    if known.p50_microseconds is None or not enough:
        state = NodeState.UNKNOWN
    else:
        state = classify(known.state, known.p50_microseconds, known.samples, Limits.of(spec))
    return known if state is known.state else known.model_copy(update={"state": state})


def _stands(known: NodeStatus, measurement: Measurement, time: datetime) -> bool:
    return (
        known.source is MeasurementSource.METER
        and measurement.source is not MeasurementSource.METER
        and known.time is not None
        and time - known.time <= METER_PRECEDES
    )


def _is_old(known: NodeStatus, now: datetime) -> bool:
    most = PROBE_AGE if known.source is MeasurementSource.PROBE else MAX_AGE
    return known.time is not None and now - known.time > most


def _aged(known: NodeStatus) -> NodeStatus:
    return NodeStatus(node=known.node, rejections=known.rejections, rejected_until=known.rejected_until)


def bounded(nodes: Mapping[str, NodeStatus]) -> tuple[NodeStatus, ...]:
    """Return as many nodes as a status keeps: those that others cannot tell of again, and the nearest."""
    if len(nodes) <= MAX_NODES:
        return tuple(nodes.values())
    kept = {known.node for known in sorted(nodes.values(), key=_dispensable)[:MAX_NODES]}
    return tuple(known for known in nodes.values() if known.node in kept)


def _dispensable(known: NodeStatus) -> tuple[bool, int]:
    """The more, the later: agents tell the others again."""
    needed = known.rejections > 0 or known.source is MeasurementSource.METER
    return not needed, known.p50_microseconds or 0

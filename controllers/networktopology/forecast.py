"""What this controller would write into a NetworkTopology that is not in the cluster yet, for ``berth plan``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from berth.api.labels import WEIGHTS_DIJKSTRA, WEIGHTS_NETPERF
from berth.api.networktopology import NetworkTopology
from berth.scheduling.simulation.inputs import NOTHING_MEASURED, Measured
from controllers.networktopology.compute import compute
from controllers.networktopology.object_room import fitted
from controllers.networktopology.places import NodePlace, Places
from controllers.networktopology.scale import COST_UNIT
from controllers.networktopology.sources.base import ConfigMapData, Percentile, Published, Source
from controllers.networktopology.sources.registry import SOURCES, read_without_following

Labels = Mapping[str, str]
_COMPUTED = (WEIGHTS_DIJKSTRA, WEIGHTS_NETPERF)


def forecast(
    document: Mapping[str, Any],
    nodes: Mapping[str, Labels],
    configmaps: ConfigMapData,
    measured: Measured = NOTHING_MEASURED,
    *,
    kinds: Sequence[type[Source]] = SOURCES,
    percentile: Percentile = "p90",
    cost_unit: int = COST_UNIT,
) -> dict[str, Any]:
    """Return the NetworkTopology with the weight sets that follow from it, the nodes and its source.

    Args:
        document: the NetworkTopology.
        nodes: labels by node name.
        configmaps: those that exist.
        measured: what node agents have measured.
        kinds: kinds of sources.
        percentile: of the measured latencies.
        cost_unit: microseconds of a measured latency that cost 1.

    Raises:
        berth.api.errors.InvalidObjectError: the object does not fit its kind.
    """
    topology = NetworkTopology.parse(document)
    places = Places.of({name: NodePlace.of(labels) for name, labels in nodes.items()})
    spec = document.get("spec") or {}
    stated = [item for item in spec.get("weights") or () if item["name"] not in _COMPUTED]
    reading = read_without_following(topology, places, Published(configmaps, percentile, *measured), kinds=kinds)
    computation = compute(reading, places, cost_unit=cost_unit)
    # What else a manifest has is little, and need not be what an object can have.
    computed = fitted(computation, {"metadata": {}, "spec": {"weights": stated}}).weights
    return {**document, "spec": {**spec, "weights": [*stated, *computed]}}

"""NetworkTopologies, places and readings in a line, for tests of any tier."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from berth.api import probereport
from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE
from berth.api.networktopology import API_VERSION, KIND, NetworkTopology
from controllers.networktopology.places import NodePlace, Places
from controllers.networktopology.sources.base import Measurement, Reading, SourceState

Stated = Mapping[str, int | dict[str, Any]]
"""``{"a>b": 5}`` is the cost 5 from a to b; a dict instead of 5 gives all fields of the entry."""

NO_SOURCE = Reading(SourceState.EMPTY, "UserDefined")


def level(key: str, stated: Stated) -> dict[str, Any]:
    """Entry of topologyList."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for pair, cost in stated.items():
        origin, destination = pair.split(">")
        fields = cost if isinstance(cost, dict) else {"networkCost": cost}
        rows.setdefault(origin, []).append({"destination": destination, **fields})
    return {"topologyKey": key, "originList": [{"origin": origin, "costList": row} for origin, row in rows.items()]}


def weight_set(
    name: str, *, regions: Stated | None = None, zones: Stated | None = None, segments: Stated | None = None
) -> dict[str, Any]:
    """Entry of spec.weights."""
    levels = [(LABEL_REGION, regions), (LABEL_ZONE, zones), (LABEL_SEGMENT, segments)]
    return {"name": name, "topologyList": [level(key, stated) for key, stated in levels if stated]}


def raw_topology(*weights: dict[str, Any], configmap: str = "", **metadata: Any) -> dict[str, Any]:
    """NetworkTopology as the API server shows it."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "net", "namespace": "shop", "uid": "u-1", "generation": 3, **metadata},
        "spec": {"configmapName": configmap, "weights": list(weights)},
    }


def topology(*weights: dict[str, Any], configmap: str = "") -> NetworkTopology:
    """NetworkTopology as a model."""
    return NetworkTopology.parse(raw_topology(*weights, configmap=configmap))


def stated(
    *, regions: Stated | None = None, zones: Stated | None = None, segments: Stated | None = None
) -> NetworkTopology:
    """NetworkTopology whose UserDefined set states these costs."""
    return topology(weight_set("UserDefined", regions=regions, zones=zones, segments=segments))


def places(**nodes: str) -> Places:
    """Places of nodes given as ``name="region/zone"`` or ``name="region/zone/segment"``."""
    return Places.of({name: NodePlace(*place.split("/")) for name, place in nodes.items()})


def measured(**latencies: int) -> Reading:
    """Reading of a ConfigMap with tenths of a millisecond, the default unit of costs, given as ``n1_n2=5``."""
    pairs = [(pair.split("_"), value) for pair, value in latencies.items()]
    measurements = tuple(Measurement(origin, destination, 100 * value) for (origin, destination), value in pairs)
    return Reading(SourceState.READ, "ConfigMap shop/netperf", measurements=measurements)


def probed_peer(node: str, microseconds: int | None, *, time: datetime | None = None) -> dict[str, Any]:
    """Entry of a ProbeReport's peers, probed now unless told otherwise; None: it answered nothing."""
    moment = (time or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    figures = {} if microseconds is None else {"p90Microseconds": microseconds}
    loss = 1000 if microseconds is None else 0
    return {"node": node, **figures, "lossPerMille": loss, "samples": 54, "lastProbeTime": moment}


def probe_report(node: str, *peers: dict[str, Any]) -> dict[str, Any]:
    """ProbeReport as the API server shows it."""
    return {
        "apiVersion": probereport.API_VERSION,
        "kind": probereport.KIND,
        "metadata": {"name": node},
        "status": {"peers": list(peers)},
    }

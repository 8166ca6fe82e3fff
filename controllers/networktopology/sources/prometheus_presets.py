"""What Prometheus is asked: the metrics of well-known meters, as one instant vector of pairs.

Every query gives one figure by ``origin`` and ``destination``. Histograms of these meters begin at 5 ms, so that a
percentile of what lies below would be invented: of those the mean counts, which their sums give exactly. Where a meter
names pods or addresses instead of nodes, kube-state-metrics says which nodes these are. docs/concepts/prometheus.md has
the versions that the names are from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Unit: TypeAlias = Literal["seconds", "milliseconds", "microseconds"]
"""Units of latencies."""
Level: TypeAlias = Literal["node", "zone", "region"]
"""What ``origin`` and ``destination`` name."""
Preset: TypeAlias = Literal["netperf", "kubenurse", "goldpinger", "cilium", "liqo", "submariner"]
"""Meters whose metrics are known."""

MICROSECONDS: Final[dict[Unit, float]] = {"seconds": 1e6, "milliseconds": 1e3, "microseconds": 1.0}
"""Microseconds of each unit."""
WINDOW: Final = "5m"
"""Time over which a mean is taken: five rounds of a meter that is scraped every minute."""


@dataclass(frozen=True, slots=True)
class LatencyQuery:
    """A query for latencies, and what its answer means."""

    name: str
    """for people"""
    promql: str
    """expression of an instant vector with the labels origin and destination"""
    unit: Unit
    """of its figures"""
    level: Level
    """what its labels name"""


def preset_query(preset: Preset, percentile: str) -> LatencyQuery:
    """Return the query of a preset; ``percentile`` is p50, p90 or p99, for meters that have percentiles."""
    return _QUERIES[preset](percentile)


def own_query(promql: str, unit: Unit, level: Level) -> LatencyQuery:
    """Return a query that somebody wrote."""
    return LatencyQuery("query", promql, unit, level)


def _netperf(percentile: str) -> LatencyQuery:
    promql = f"max by (origin, destination) (netperf_{percentile}_latency_microseconds)"
    return LatencyQuery("netperf", promql, "microseconds", "node")


def _kubenurse(_: str) -> LatencyQuery:
    mean = _mean("kubenurse_httpclient_request_duration_seconds", 'type=~"path_.+"', "namespace, pod, type")
    pairs = _labelled(f"{mean} * {_NODE_OF_POD}", origin=("node", "(.+)"), destination=("type", "path_(.+)"))
    return LatencyQuery("kubenurse", pairs, "seconds", "node")


def _goldpinger(_: str) -> LatencyQuery:
    mean = _mean("goldpinger_peers_response_time_s", 'call_type="ping"', "goldpinger_instance, host_ip")
    nodes = (
        "on (host_ip) group_left (node) max by (host_ip, node) "
        '(label_replace(kube_node_info, "host_ip", "$1", "internal_ip", "(.+)"))'
    )
    pairs = _labelled(f"{mean} * {nodes}", origin=("goldpinger_instance", "(.+)"), destination=("node", "(.+)"))
    return LatencyQuery("goldpinger", pairs, "seconds", "node")


def _cilium(_: str) -> LatencyQuery:
    # Nodes of other clusters of a mesh may have the names of our own. Old versions have no address_type.
    last = (
        "cilium_node_connectivity_latency_seconds"
        '{type="node",protocol="icmp",address_type!="secondary",target_node_type!="remote_inter_cluster"}'
    )
    pairs = _labelled(last, origin=("source_node_name", "(.+)"), destination=("target_node_name", "(.+)"))
    return LatencyQuery("cilium", pairs, "seconds", "node")


def _liqo(_: str) -> LatencyQuery:
    last = f"max by (namespace, pod, cluster_id) (liqo_peer_latency_us) * {_NODE_OF_POD}"
    pairs = _labelled(last, origin=("node", "(.+)"), destination=("cluster_id", "(.+)"))
    return LatencyQuery("liqo", pairs, "microseconds", "node")


def _submariner(_: str) -> LatencyQuery:
    last = "submariner_connection_latency_seconds"
    pairs = _labelled(last, origin=("local_cluster", "(.+)"), destination=("remote_cluster", "(.+)"))
    return LatencyQuery("submariner", pairs, "seconds", "region")


_NODE_OF_POD: Final = "on (namespace, pod) group_left (node) max by (namespace, pod, node) (kube_pod_info)"
_QUERIES: Final[dict[Preset, Callable[[str], LatencyQuery]]] = {
    "netperf": _netperf,
    "kubenurse": _kubenurse,
    "goldpinger": _goldpinger,
    "cilium": _cilium,
    "liqo": _liqo,
    "submariner": _submariner,
}


def _mean(histogram: str, selector: str, labels: str) -> str:
    """Return the mean of a histogram; pairs without an observation in the window are not a number, and dropped."""
    total, count = (
        f"sum by ({labels}) (rate({histogram}_{part}{{{selector}}}[{WINDOW}]))" for part in ("sum", "count")
    )
    return f"({total} / {count} >= 0)"


def _labelled(promql: str, *, origin: tuple[str, str], destination: tuple[str, str]) -> str:
    """Return the vector with the labels ``origin`` and ``destination``, each from a label and what matches in it.

    Of several figures of one pair, as with two Prometheus servers behind one address, the greatest counts.
    """
    for name, (label, pattern) in (("origin", origin), ("destination", destination)):
        promql = f'label_replace({promql}, "{name}", "$1", "{label}", "{pattern}")'
    return f"max by (origin, destination) ({promql})"

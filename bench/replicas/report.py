"""Evaluations as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bench.replicas.cluster import Cluster
from bench.replicas.evaluator import Evaluation, evaluate, together
from bench.replicas.objective import DEFAULT_WEIGHTS, Weights, objective
from bench.replicas.rules import soft_rules, violations

COLUMNS = (
    "pods on nodes", "mean edge cost", "all endpoints", "cross-zone calls", "after a failover",
    "survive node", "survive zone", "load endpoint/zone",
)  # fmt: skip


def cells(found: Evaluation) -> list[str]:
    """The values of :data:`COLUMNS`."""
    failover = "-" if found.failover_cost is None else f"{found.failover_cost:.2f}"
    return [
        f"{found.pods} on {found.nodes}",
        f"{found.cost:.2f}",
        f"{found.cost_all:.2f}",
        f"{found.cross_zone:.0%}",
        failover,
        f"{found.survive_node} of {found.replicated}",
        f"{found.survive_zone} of {found.replicated}",
        f"{found.endpoint_load:.2f} / {found.zone_load:.2f}",
    ]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(cluster: Cluster, weights: Weights = DEFAULT_WEIGHTS) -> str:
    """Figures of every AppGroup that has pods, its soft rules and objective; then the hard rules that are broken."""
    rows: list[list[str]] = []
    evaluations: list[Evaluation] = []
    for key in sorted(cluster.groups):
        found = evaluate(cluster, key)
        if not found.pods:
            continue
        evaluations.append(found)
        soft = soft_rules(cluster, key, default_spread=weights.default_spread)
        said = [f"{soft.anti_affinity:g}", f"{soft.affinity:g}", f"{soft.skew:g}"]
        rows.append(["/".join(key), *cells(found), *said, f"{objective(cluster, key, weights):.2f}"])
    if len(evaluations) > 1:
        rows.append(["**all**", *cells(together(evaluations)), "", "", "", ""])
    header = ["AppGroup", *COLUMNS, "soft anti-affinity", "soft affinity", "soft skew", "objective"]
    broken = violations(cluster)
    counts = Counter(item.rule for item in broken)
    summary = ", ".join(f"{count} {rule}" for rule, count in sorted(counts.items())) or "none"
    details = [f"- {item.rule}: {item.subject}: {item.detail}" for item in broken[:20]]
    return "\n".join([table(header, rows), "", f"Hard rules broken: {summary}", *details])

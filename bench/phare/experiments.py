"""The experiments, each a function from a number of samples to rows of plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bench.phare.bound import accepted_at_most, lowest_cost
from bench.phare.boutique import scaled_boutique, zoned_nodes
from bench.phare.runs import place_all, summary
from bench.phare.scenarios import Workload, applications, chains, edge_clusters, equal_nodes, opportunistic_nodes
from berth.scheduling.gang import Weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.phare.runs import Sample
    from berth.scheduling.gang import Application, Infrastructure

Row = dict[str, Any]

SIZES = (50, 100, 200, 300, 500, 1000, 2000, 5000, 10000)
MULTIPLIERS = (1, 100)


def _row(infrastructure: Infrastructure, arrivals: list[Application], sample: Sample, **labels: object) -> Row:
    """Return the figures of one sample; the gap is to the lower bound over what this sample accepted."""
    accepted = [application for application, _ in sample.plans]
    return {
        **labels,
        "placed": sum(sample.placed),
        "at_most": accepted_at_most(infrastructure, arrivals),
        "first_failure": sample.placed.index(False) if False in sample.placed else len(sample.placed),
        "cost": round(sample.cost, 3),
        "gap": round(100 * (sample.cost / lowest_cost(infrastructure, accepted) - 1), 4),
        "wall": summary(sample.seconds),
        "processor": summary(sample.processor),
    }


def _samples_of(strategy: str, clusters: int) -> int:
    """Return the most samples worth running: saturation (100 clusters) needs many, large fleets vary little."""
    if strategy == "phare":
        return 2 if clusters <= 300 else 1
    return 20 if clusters == 100 else 5 if clusters <= 1000 else 2


def scale(samples: int) -> Iterator[Row]:
    """Time, success and cost against the number of clusters, bandwidth x1 and x100."""
    for clusters in SIZES:
        for multiplier in MULTIPLIERS:
            for strategy in ("berth", "phare"):
                count = min(samples, _samples_of(strategy, clusters))
                for seed in range(count):
                    infrastructure = edge_clusters(clusters, seed)
                    arrivals = applications(seed, Workload(multiplier=multiplier))
                    sample = place_all(infrastructure, arrivals, strategy=strategy)
                    yield _row(
                        infrastructure,
                        arrivals,
                        sample,
                        clusters=clusters,
                        multiplier=multiplier,
                        strategy=strategy,
                        seed=seed,
                    )


def saturation(samples: int) -> Iterator[Row]:
    """Which of 500 applications find a place on 100 clusters, by order of arrival."""
    for strategy, count in (("berth", samples), ("phare", min(samples, 5))):
        for seed in range(count):
            infrastructure, arrivals = edge_clusters(100, seed), applications(seed)
            sample = place_all(infrastructure, arrivals, strategy=strategy)
            yield {"strategy": strategy, "seed": seed, "placed": [int(value) for value in sample.placed]}


def graphs(samples: int) -> Iterator[Row]:
    """The cost gap under both readings of "30 % connectivity"."""
    for graph in ("tree", "independent"):
        for multiplier in MULTIPLIERS:
            for seed in range(min(samples, 5)):
                infrastructure = edge_clusters(300, seed)
                arrivals = applications(seed, Workload(multiplier=multiplier, graph=graph))
                sample = place_all(infrastructure, arrivals)
                yield _row(infrastructure, arrivals, sample, graph=graph, multiplier=multiplier, seed=seed)


def links(samples: int) -> Iterator[Row]:
    """60 clusters, bandwidth x100, threshold 75 %: use of every cluster's bandwidth and cores."""
    for strategy in ("berth", "phare"):
        for seed in range(min(samples, 5)):
            infrastructure = edge_clusters(60, seed, threshold=0.75)
            arrivals = applications(seed, Workload(multiplier=100))
            sample = place_all(infrastructure, arrivals, strategy=strategy)
            assert sample.state is not None
            use = 1 - sample.state.bandwidth_free / infrastructure.bandwidth_capacity
            cores = 1 - sample.state.free[:, 0] / infrastructure.capacity[:, 0]
            yield {
                "strategy": strategy,
                "seed": seed,
                "placed": sum(sample.placed),
                "links": [round(float(value), 4) for value in np.maximum(use, 0.0)],
                "cores": [round(float(value), 4) for value in cores],
            }


def fill(_samples: int) -> Iterator[Row]:
    """50 equal nodes: cores in use after 20, 40, 60 and 80 applications."""
    infrastructure = equal_nodes(50)
    for strategy in ("berth", "phare"):
        for count in (20, 40, 60, 80):
            sample = place_all(infrastructure, applications(0, Workload(count=80))[:count], strategy=strategy)
            assert sample.state is not None
            use = np.sort(1 - sample.state.free[:, 0] / infrastructure.capacity[:, 0])[::-1]
            wanted = sum(float(application.requests[:, 0].sum()) for application, _ in sample.plans)
            yield {
                "strategy": strategy,
                "applications": count,
                "nodes": int((use > 0).sum()),
                "least": int(np.ceil(wanted / 700.0)),
                "use": [round(float(value), 4) for value in use],
            }


def opportunistic(_samples: int) -> Iterator[Row]:
    """80 chains with one end bound by a selector: placed with and without a usage threshold on the small nodes."""
    for small in (35, 36, 38, 40, 45, 50, 60, 70, 80, 150):
        for strategy in ("berth", "phare"):
            for threshold in (1.0, 0.75, 0.5):
                infrastructure = opportunistic_nodes(small, threshold=threshold)
                sample = place_all(infrastructure, chains(infrastructure), strategy=strategy)
                yield {"small": small, "strategy": strategy, "threshold": threshold, "placed": sum(sample.placed)}


def tight(samples: int) -> Iterator[Row]:
    """Scarce memory, small nodes, and strong demand for bandwidth: where single ideas pay off."""
    plain = Weights(waste=0.0, opportunity_cost=0.0, balance=0.0, fit=0.0)
    cases: tuple[tuple[str, Callable[[int], Infrastructure], Workload], ...] = (
        ("memory", lambda seed: edge_clusters(100, seed, memory=(20.0, 64.0)), Workload()),
        (
            "small nodes x100",
            lambda seed: edge_clusters(1200, seed, cores=(40, 80), memory=(16.0, 64.0)),
            Workload(multiplier=100),
        ),
        (
            "small nodes, little bandwidth, x100",
            lambda seed: edge_clusters(1500, seed, cores=(40, 80), memory=(16.0, 64.0), bandwidth=(1.0, 8.0)),
            Workload(multiplier=100),
        ),
        ("x300", lambda seed: edge_clusters(300, seed), Workload(multiplier=300)),
    )
    variants: tuple[tuple[str, str, Weights | None], ...] = (
        ("berth", "berth", None),
        ("berth without heuristics", "berth", plain),
        ("phare", "phare", None),
    )
    for case, build, workload in cases:
        for label, strategy, weights in variants:
            for seed in range(min(samples, 1 if strategy == "phare" else 3)):
                infrastructure, arrivals = build(seed), applications(seed, workload)
                sample = place_all(infrastructure, arrivals, strategy=strategy, weights=weights)
                yield _row(infrastructure, arrivals, sample, case=case, variant=label, seed=seed)


def sizes(_samples: int) -> Iterator[Row]:
    """Online Boutique in zones, without prices: planning time and mean edge cost by nodes and replicas."""
    for nodes in (24, 100, 1000, 5000, 10000):
        for cores in (4000.0, 450.0):
            for replicas in (1, 5, 27):
                if nodes * cores < 3 * 1270 * replicas:
                    continue
                infrastructure = zoned_nodes(nodes, cores)
                groups = max(1, min(30 // replicas, int(nodes * cores * 0.6 / (1270 * replicas))))
                sample = place_all(infrastructure, [scaled_boutique(replicas)] * groups)
                edges = [result.cost / len(application.edges) for application, result in sample.plans]
                yield {
                    "nodes": nodes,
                    "cores": cores,
                    "components": 11 * replicas,
                    "groups": groups,
                    "placed": sum(sample.placed),
                    "edge_cost": round(float(np.mean(edges)), 3) if edges else None,
                    "wall": summary(sample.seconds),
                    "processor": summary(sample.processor),
                }


EXPERIMENTS: dict[str, Callable[[int], Iterator[Row]]] = {
    "scale": scale,
    "saturation": saturation,
    "graphs": graphs,
    "links": links,
    "fill": fill,
    "opportunistic": opportunistic,
    "tight": tight,
    "sizes": sizes,
}
"""Every experiment by name."""

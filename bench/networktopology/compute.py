"""Time of the pure part: reading the ConfigMap's keys, aggregating, shortest paths, the API's shape."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from statistics import median

from controllers.networktopology.algorithms import ALGORITHMS
from controllers.networktopology.compute import compute
from controllers.networktopology.places import NodePlace, Places
from controllers.networktopology.sources.configmap import KEY_SEPARATOR, key_prefix, parse
from controllers.networktopology.weights import weight_sets

MAX_KEYS = 10_000
"""Most measurements of one ConfigMap: at about 90 bytes each they fill the 1 MiB that it may hold."""
REGIONS = 4
"""Regions of the simulated cluster."""
ZONES = 4
"""Zones of each region."""


@dataclass(frozen=True, slots=True)
class ComputeResult:
    """Medians of one size, in milliseconds."""

    nodes: int
    """nodes of the cluster"""
    measurements: int
    """measurements in the ConfigMap"""
    places: float
    """labels to places"""
    parse: float
    """ConfigMap to measurements"""
    compute: dict[str, float]
    """measurements to weight sets, by path algorithm"""
    shape: float
    """weight sets to JSON values"""


def cluster(nodes: int) -> dict[str, NodePlace]:
    """Return nodes spread evenly over all zones."""
    places = [(f"region-{region}", f"zone-{region}-{zone}") for region in range(REGIONS) for zone in range(ZONES)]
    return {f"node-{number:05}": NodePlace(*places[number % len(places)]) for number in range(nodes)}


def measurements(names: list[str], *, seed: int) -> dict[str, str]:
    """Return a full ConfigMap: random pairs of different nodes, 1 to 100 ms."""
    draw = random.Random(seed)
    data: dict[str, str] = {}
    while len(data) < min(MAX_KEYS, 10 * len(names)):
        origin, destination = draw.sample(names, 2)
        data[f"{key_prefix('p90')}{origin}{KEY_SEPARATOR}{destination}"] = str(draw.randint(1, 100))
    return data


def measure(nodes: int, *, rounds: int, seed: int) -> ComputeResult:
    """Time ``rounds`` rounds over ``nodes`` nodes."""
    named = cluster(nodes)
    data = measurements(list(named), seed=seed)
    times: dict[str, list[float]] = {}
    places = Places()
    reading = parse({}, name="", nodes=())
    for _ in range(rounds):
        begun = time.perf_counter()
        places = Places.of(named)
        placed = time.perf_counter()
        reading = parse(data, name="ConfigMap bench/netperf", nodes=places.nodes)
        times.setdefault("places", []).append(placed - begun)
        times.setdefault("parse", []).append(time.perf_counter() - placed)
        for algorithm in ALGORITHMS:
            begun = time.perf_counter()
            found = compute(reading, places, algorithm=algorithm)
            times.setdefault(algorithm, []).append(time.perf_counter() - begun)
        begun = time.perf_counter()
        weight_sets(found.sets)
        times.setdefault("shape", []).append(time.perf_counter() - begun)
    middle = {name: 1000 * median(values) for name, values in times.items()}
    return ComputeResult(
        nodes=nodes,
        measurements=len(reading.measurements),
        places=middle["places"],
        parse=middle["parse"],
        compute={name: middle[name] for name in ALGORITHMS},
        shape=middle["shape"],
    )

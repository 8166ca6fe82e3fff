"""Series of single NetworkTopologies: set, dropped, and bounded by namespace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import REGISTRY

from controllers.networktopology import metrics
from controllers.networktopology.metrics import OWN_SERIES
from controllers.networktopology.sources.base import TopologyKey

MANY = [TopologyKey("many", f"net-{number}") for number in range(OWN_SERIES + 5)]


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    for namespace, names in list(metrics._measured.items()):
        for name in list(names):
            metrics.forget(TopologyKey(namespace, name))


def measure(key: TopologyKey, number: int = 1) -> None:
    missing = {"region": number + 2, "zone": number + 3, "segment": number + 4}
    metrics.measure(key, measurements=number, unusable=number + 1, stale=number + 4, missing=missing)


def series(namespace: str) -> int:
    """How many there are."""
    return sum(
        sample.labels.get("namespace") == namespace
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name.startswith("berth_networktopology_")
    )


def value(metric: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"berth_networktopology_{metric}", labels)


def test_one_has_its_figures_until_it_is_gone() -> None:
    key = TopologyKey("shop", "net")
    measure(key, 0)
    measure(key, 5)
    assert value("measurements", namespace="shop", name="net") == 5
    assert value("unusable_measurements", namespace="shop", name="net") == 6
    assert value("stale_measurements", namespace="shop", name="net") == 9
    assert value("missing_pairs", namespace="shop", name="net", level="region") == 7
    assert value("missing_pairs", namespace="shop", name="net", level="zone") == 8
    assert value("missing_pairs", namespace="shop", name="net", level="segment") == 9
    metrics.forget(key)
    metrics.forget(key)
    assert series("shop") == 0


def test_a_namespace_has_a_bounded_number_of_series() -> None:
    for key in MANY:
        measure(key)
    assert series("many") == OWN_SERIES * 6
    measure(TopologyKey("shop", "net"))
    assert series("shop") == 6


def test_one_that_goes_makes_room_for_another() -> None:
    for key in MANY:
        measure(key)
    metrics.forget(MANY[-1])
    metrics.forget(MANY[0])
    assert series("many") == (OWN_SERIES - 1) * 6
    measure(MANY[-2])
    assert value("measurements", namespace="many", name=MANY[-2].name) == 1
    assert series("many") == OWN_SERIES * 6

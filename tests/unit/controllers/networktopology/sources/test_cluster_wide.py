"""Whom a source of the whole cluster tells of changes."""

from __future__ import annotations

from typing import cast

from berth.api.conditions import ConditionUpdate
from berth.api.networktopology import NetworkTopology
from berth.kube.client import ApiClient
from berth.runtime.component import ComponentContext
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import (
    Published,
    Reading,
    SourceState,
    Surroundings,
    TopologyKey,
    available,
)
from controllers.networktopology.sources.cluster_wide import ClusterWideSource
from tests.support.topologies import topology


class Meter(ClusterWideSource):
    """Serves whoever is told to it."""

    @classmethod
    def reading(cls, topology: NetworkTopology, places: Places, published: Published) -> Reading:
        return Reading(SourceState.MISSING, "Meter")

    def availability(self, reading: Reading, instead: str) -> ConditionUpdate:
        return available(reading.usable, "Meter", instead)

    def serve(self, *keys: TopologyKey) -> None:
        self._served.update(keys)

    def change(self) -> None:
        self._tell_all()


def test_those_who_are_served_are_told_until_they_are_forgotten() -> None:
    told: list[TopologyKey] = []
    meter = Meter(Surroundings(cast(ComponentContext, None), cast(ApiClient, None), told.append))
    one, other = TopologyKey("shop", "one"), TopologyKey("shop", "other")
    meter.serve(one, other)
    meter.change()
    assert sorted(told) == [one, other]
    meter.forget(one)
    meter.forget(one)
    meter.change()
    assert sorted(told) == [one, other, other]


def test_everybody_may_be_served_where_it_exists() -> None:
    assert Meter.named_by(topology())
    assert Meter.automatic

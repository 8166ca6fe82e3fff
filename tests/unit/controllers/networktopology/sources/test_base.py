"""What every source has without saying so: its reading as it is followed, and what may be concluded from it."""

from __future__ import annotations

from typing import cast

import pytest

from berth.api.conditions import ConditionUpdate
from berth.api.networktopology import NetworkTopology
from berth.kube.client import ApiClient
from berth.runtime.component import ComponentContext
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import (
    Published,
    Reading,
    Source,
    SourceState,
    Surroundings,
    TopologyKey,
    available,
    left_out,
)
from tests.support.topologies import places, topology

KEY = TopologyKey("shop", "net")


class Fixed(Source):
    """Says the number of nodes and of ConfigMaps, and nothing else."""

    @classmethod
    def named_by(cls, topology: NetworkTopology) -> bool:
        return True

    @classmethod
    def reading(cls, topology: NetworkTopology, places: Places, published: Published) -> Reading:
        return Reading(SourceState.READ, f"{topology.metadata.name}: {len(places.nodes)}, {len(published.configmaps)}")

    def availability(self, reading: Reading, instead: str) -> ConditionUpdate:
        return available(reading.usable, "Fixed", instead)


async def test_a_source_that_follows_nothing_only_says_what_it_reads() -> None:
    source = Fixed(Surroundings(cast(ComponentContext, None), cast(ApiClient, None), print))
    net, where = topology(), places(n1="r/A", n2="r/B")
    assert (
        await source.read(KEY, net, where)
        == Fixed.reading(net, where, Published())
        == Reading(SourceState.READ, "net: 2, 0")
    )


@pytest.mark.parametrize(
    ("state", "settled", "usable"),
    [
        (SourceState.PENDING, False, False),
        (SourceState.FAILED, False, False),
        (SourceState.MISSING, True, False),
        (SourceState.EMPTY, True, False),
        (SourceState.READ, True, True),
    ],
)
def test_what_a_state_allows(state: SourceState, settled: bool, usable: bool) -> None:
    reading = Reading(state, "n")
    assert (reading.settled, reading.usable) == (settled, usable)


def test_a_key_is_named_as_people_write_it() -> None:
    assert str(KEY) == "shop/net"


def test_the_condition_of_every_source_has_one_type() -> None:
    assert available(True, "Fixed", "text") == ("SourceAvailable", True, "Fixed", "text")


@pytest.mark.parametrize(
    ("reading", "text"),
    [
        pytest.param(Reading(SourceState.READ, "R"), "", id="nothing"),
        pytest.param(Reading(SourceState.READ, "R", malformed=("a", "b")), ". Not used because odd: a, b", id="odd"),
        pytest.param(
            Reading(SourceState.EMPTY, "R", malformed=("a",), unknown_nodes=("n9",)),
            ". Not used because odd: a. Not used because gone: n9",
            id="both",
        ),
    ],
)
def test_what_does_not_count_is_said(reading: Reading, text: str) -> None:
    assert left_out(reading, malformed="odd", unknown="gone") == text

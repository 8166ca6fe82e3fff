"""What of a cluster is measured, and when that is enough to begin with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.networktopology.node_medians import pair_figures
from controllers.networktopology.sources.base import UNREACHABLE, Measurement
from controllers.networktopology.sources.coverage import Coverage, coverage
from tests.support.topologies import places

PLACES = places(n1="r/A", n2="r/A", n3="r/B", n4="r/B", n5="s/C")


def of(*pairs: str, microseconds: int = 500) -> Coverage:
    """Of measurements given as ``n1>n2``."""
    ends = [pair.split(">") for pair in pairs]
    measurements = [Measurement(origin, destination, microseconds) for origin, destination in ends]
    return coverage(measurements, pair_figures(measurements, PLACES.zone_of), PLACES)


@pytest.mark.parametrize(
    ("pairs", "reporting", "measured"),
    [
        pytest.param([], 0, 0, id="nothing"),
        pytest.param(["n1>n3", "n1>n4", "n1>n5"], 1, 0, id="one node alone proves no pair"),
        pytest.param(["n1>n3", "n2>n3"], 2, 1, id="two of one end"),
        pytest.param(["n1>n3", "n3>n1"], 2, 1, id="one of each end"),
        pytest.param(["n1>n2", "n2>n1"], 2, 0, id="inside a zone"),
        pytest.param(["n1>n3", "n3>n5", "n5>n1", "n3>n1", "n5>n3", "n1>n5"], 3, 3, id="all zones by a node of each"),
    ],
)
def test_what_is_measured(pairs: list[str], reporting: int, measured: int) -> None:
    assert of(*pairs) == Coverage(reporting, nodes=5, measured=measured, pairs=3)


def test_a_pair_without_an_answer_is_measured() -> None:
    assert of("n1>n3", "n3>n1", microseconds=UNREACHABLE).measured == 1


@pytest.mark.parametrize(
    ("found", "enough"),
    [
        pytest.param(Coverage(1, 5000, 9, 435), False, id="the first node"),
        pytest.param(Coverage(1, 2, 0, 1), False, id="the first of two nodes"),
        pytest.param(Coverage(2, 2, 1, 1), True, id="two nodes"),
        pytest.param(Coverage(30, 5000, 391, 435), False, id="not yet nine tenths of the pairs"),
        pytest.param(Coverage(30, 5000, 392, 435), True, id="agents on some nodes measure all zones"),
        pytest.param(Coverage(4499, 5000, 49_000, 499_500), False, id="more pairs than probes, and nodes are missing"),
        pytest.param(Coverage(4500, 5000, 49_000, 499_500), True, id="more pairs than probes"),
        pytest.param(Coverage(1, 3, 0, 0), False, id="one zone, one node"),
        pytest.param(Coverage(3, 3, 0, 0), True, id="one zone, all nodes"),
    ],
)
def test_what_is_enough(found: Coverage, enough: bool) -> None:
    assert found.enough == enough


def test_for_people() -> None:
    text = "1 of 8 nodes report, and 2 nodes or more measure 0 of 6 pairs of zones"
    assert str(Coverage(1, 8, 0, 6)) == text


@given(data=st.lists(st.sampled_from([f"n{a}>n{b}" for a in range(1, 6) for b in range(1, 6) if a != b])))
def test_more_measurements_never_cover_less(data: list[str]) -> None:
    fewer, more = of(*data[: len(data) // 2]), of(*data)
    assert 0 <= fewer.reporting <= more.reporting <= more.nodes
    assert 0 <= fewer.measured <= more.measured <= more.pairs

"""Links of a plan: physical ones of the profile beside budgets of a NetworkTopology."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE
from berth.network.costs import Place
from berth.network.link_budgets import PlacePair, pairs_between
from berth.scheduling.configuration import Link, Profile
from berth.scheduling.gang.link_budgets import links_of

PLACES = (Place("r1", "z1"), Place("r1", "z2"), Place("r2", "z3"), Place())
TRUNK = Profile(links=[Link(name="trunk", capacity="5G", zones=[("z1", "z3")], nodes=["n7"])])
BUDGETS = {
    PlacePair(LABEL_REGION, "r1", "r2"): 10**9,
    PlacePair(LABEL_ZONE, "z1", "z3"): 10**6,
    PlacePair(LABEL_ZONE, "z1", "z1"): 10**7,
    PlacePair(LABEL_ZONE, "z1", "elsewhere"): 1,
    PlacePair(LABEL_REGION, "", ""): 1,
}


@pytest.mark.parametrize(
    ("here", "there", "names"),
    [
        pytest.param(0, 2, ["trunk", "r1-r2 (region)", "z1-z3 (zone)"], id="all-three"),
        pytest.param(1, 2, ["r1-r2 (region)"], id="other-zone-of-the-region"),
        pytest.param(0, 0, ["z1-z1 (zone)"], id="inside-a-zone"),
        pytest.param(0, 1, [], id="not-stated"),
        pytest.param(3, 3, [], id="no-labels"),
    ],
)
def test_links_between_two_locations(here: int, there: int, names: list[str]) -> None:
    links = links_of(TRUNK, BUDGETS, PLACES, {"n7": 7})
    assert links is not None
    assert [links.names[link] for link in links.between(here, there)] == names
    assert links.between(there, here) == links.between(here, there)
    assert dict(links.by_node) == {7: (0,)}
    assert dict(zip(links.names, links.capacity.tolist(), strict=True)) == {
        "trunk": 5e9,
        "r1-r2 (region)": 1e9,
        "z1-z3 (zone)": 1e6,
        "z1-z1 (zone)": 1e7,
    }


def test_links_between_segments_are_those_inside_a_zone() -> None:
    """Names of segments that two zones share make no link between the zones."""
    places = (Place("r1", "z1", "s1"), Place("r1", "z1", "s2"), Place("r1", "z2", "s2"), Place("r1", "z1"))
    links = links_of(Profile(), {PlacePair(LABEL_SEGMENT, "s1", "s2"): 10**6}, places, {})
    assert links is not None
    assert links.names == ("s1-s2 (segment)",)
    assert {pair for pair in ((0, 1), (0, 2), (1, 2), (0, 3), (0, 0)) if links.between(*pair)} == {(0, 1)}


ANYWHERE = st.builds(Place, *(st.sampled_from([*names, ""]) for names in (("r1", "r2"), ("z1", "z2"), ("s1", "s2"))))
ANY_PAIR = st.one_of(
    [
        st.builds(PlacePair.of, st.just(key), st.sampled_from(names), st.sampled_from(names))
        for key, names in ((LABEL_REGION, ("r1", "r2")), (LABEL_ZONE, ("z1", "z2")), (LABEL_SEGMENT, ("s1", "s2")))
    ]
)


@given(places=st.lists(ANYWHERE, unique=True), pairs=st.lists(ANY_PAIR, unique=True))
def test_any_two_locations_use_the_budgets_of_their_pairs_of_places(
    places: list[Place], pairs: list[PlacePair]
) -> None:
    links = links_of(Profile(), dict.fromkeys(pairs, 10**6), places, {})
    for here, one in enumerate(places):
        for there, other in enumerate(places):
            used = {str(pair) for pair in pairs_between(one, other)} & {str(pair) for pair in pairs}
            found = [] if links is None else [links.names[link] for link in links.between(here, there)]
            assert len(found) == len(set(found))
            assert set(found) == used


@pytest.mark.parametrize("budgets", [{}, {PlacePair(LABEL_ZONE, "z1", "elsewhere"): 1}], ids=["none", "nobody's"])
def test_no_links(budgets: dict[PlacePair, int]) -> None:
    assert links_of(Profile(), budgets, PLACES, {}) is None

"""Pairs of places that are counted and named without a list of them, against a list."""

from __future__ import annotations

import random

import pytest

from controllers.networktopology.conditions import name_pairs
from controllers.networktopology.place_pairs import PlacePairs


@pytest.mark.parametrize("seed", range(20))
def test_pairs_are_those_of_a_list(seed: int) -> None:
    rng = random.Random(seed)
    groups = tuple(tuple(f"{name}{place}" for place in range(rng.randint(0, 5))) for name in "abc")
    names = [place for group in groups for place in group] + ["elsewhere"]
    known = {(rng.choice(names), rng.choice(names)) for _ in range(rng.randint(0, 60))}
    wanted = sorted((a, b) for group in groups for a in group for b in group if a != b and (a, b) not in known)
    first = {pair for pair in known if rng.random() < 0.5}
    found = PlacePairs(groups).without(first).without(known - first)
    assert list(found) == wanted
    assert (len(found), found.links) == (len(wanted), len({frozenset(pair) for pair in wanted}))
    assert all((pair in found) == (pair in wanted) for pair in ((a, b) for a in names for b in names))
    assert None not in found


class _Zone(str):
    """Counts how often it is looked up."""

    __slots__ = ()
    lookups = 0

    def __hash__(self) -> int:
        type(self).lookups += 1
        return super().__hash__()


def test_to_name_the_last_pair_of_many_not_all_are_looked_at() -> None:
    zones = tuple(_Zone(f"z{number:03}") for number in range(100))
    all_but_one = {(a, b) for a in zones for b in zones if a != b} - {(zones[99], zones[98])}
    found = PlacePairs((zones,)).without(all_but_one)
    _Zone.lookups = 0
    assert name_pairs(found) == "z099 to z098"
    assert _Zone.lookups < 10 * len(zones)

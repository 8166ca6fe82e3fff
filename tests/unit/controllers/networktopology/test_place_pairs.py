"""Pairs of places that are counted and named without a list of them, against a list."""

from __future__ import annotations

import random

import pytest

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

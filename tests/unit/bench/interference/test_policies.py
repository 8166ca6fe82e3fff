"""Every policy places every pod, two on a socket; and those that know slowdowns use them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from bench.interference.__main__ import Figure, all_policies, figure, outcome, shortfalls
from bench.interference.bound import least_of_pairs
from bench.interference.policies import NODES, ROOM, SOCKETS
from bench.interference.workloads import PUBLISHED, benchmarks, model, random_mixes

MODEL = model()
KINDS = benchmarks()
POLICIES = all_policies(MODEL, list(KINDS.values()))


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_places_every_pod_and_fills_every_socket(name: str) -> None:
    for mix in random_mixes(3, 7):
        pods = [KINDS[each] for each in mix]
        sockets = POLICIES[name][0](pods, random.Random(1))
        assert Counter(pod for socket in sockets for pod in socket) == Counter(pods)
        assert [len(socket) for socket in sockets] == [ROOM] * (NODES * SOCKETS)


@pytest.mark.parametrize(("name", "most"), [("low", 0), ("mid", 1), ("high", 1)])
def test_all_pods_together_reach_the_optimum_of_the_published_workloads(name: str, most: int) -> None:
    pods = [KINDS[each] for each in PUBLISHED[name]]
    sockets = POLICIES["least slowdown, all 16 together"][0](pods, random.Random(1))
    bound = least_of_pairs(pods, lambda *pair: float(sum(each > 1.1 for each in MODEL.slowdowns(pair))))
    assert outcome(MODEL, sockets)[:2] == [most, 0]
    assert bound == most


def test_a_figure_has_the_confidence_interval_of_its_mean() -> None:
    assert figure([1.0]) == Figure(1, 0)
    half: Any = pytest.approx(1.96 * (4 / 3) ** 0.5 / 2)
    assert figure([1, 3, 1, 3]) == Figure(2, half)


def test_what_is_missed_is_named() -> None:
    rows = {
        name: {each: [Figure(value, 0)] * 4 for each in (*PUBLISHED, "mixes")}
        for name, value in (
            ("random", 0.0),
            ("least slowdown, pinned", 0.07),
            ("least slowdown, not pinned", 0.05),
            ("least slowdown, all 16 together", 0.0),
        )
    }
    missed = shortfalls(rows)
    assert "low at 1.1: random has 0.000, least slowdown, pinned 0.070" in missed
    assert "least slowdown, pinned, high: 0.070 at 1.2, goal 0.05" in missed
    assert "mixes at 1.3: random has 0.000, least slowdown, not pinned 0.050" in missed
    assert len(missed) == 3 + 2 * 4 * 3
    rows["greedy, pinned"] = {each: [Figure(0.06, 0)] * 4 for each in rows["random"]}
    assert len(shortfalls(rows)) == len(missed) + 4 * 3, "not pinned, it is no worse than what nobody can have there"
    del rows["greedy, pinned"]
    rows["random"] = {each: [Figure(9, 0)] * 4 for each in rows["random"]}
    assert len(shortfalls(rows)) == 3

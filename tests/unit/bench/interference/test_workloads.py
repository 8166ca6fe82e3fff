"""The published workloads have the classes that the thesis states, and the model the means of the published pairs."""

from __future__ import annotations

from collections import Counter
from statistics import fmean

import pytest

from bench.interference.workloads import PODS, PUBLISHED, benchmarks, model, orders, random_mixes
from berth.scheduling.interference.slowdown import CLASS_EXCESS


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("low", {"A": 6, "B": 4, "C": 4, "D": 2}),
        ("mid", {"A": 4, "B": 4, "C": 4, "D": 4}),
        ("high", {"A": 2, "B": 3, "C": 5, "D": 6}),
    ],
)
def test_classes_of_the_published_workloads(name: str, classes: dict[str, int]) -> None:
    kinds = benchmarks(thesis=True)
    assert Counter(kinds[each].interference_class for each in PUBLISHED[name]) == classes


def test_the_run_times_give_classes_a_and_d_alone() -> None:
    assert Counter(each.interference_class for each in benchmarks().values()) == {"A": 6, "D": 4}


@pytest.mark.parametrize("sensitive", [False, True])
@pytest.mark.parametrize("contentious", [False, True])
def test_what_the_model_expects_of_classes_is_the_mean_of_the_published_pairs(
    sensitive: bool, contentious: bool
) -> None:
    kinds = benchmarks()
    pairs = [
        slowdown - 1
        for victim, row in model().table.items()
        for neighbour, slowdown in row.items()
        if kinds[victim].interference_class.sensitive == sensitive
        and kinds[neighbour].interference_class.contentious == contentious
    ]
    assert CLASS_EXCESS[sensitive, contentious] == pytest.approx(fmean(pairs), abs=0.005)


def test_other_orders_have_the_same_pods() -> None:
    found = orders("mid", 4, 1)
    assert found == orders("mid", 4, 1) != orders("mid", 4, 2)
    assert {tuple(sorted(each)) for each in found} == {tuple(sorted(PUBLISHED["mid"]))}
    assert len({tuple(each) for each in found}) == 4


def test_a_seed_gives_the_same_mixes_again_and_another_seed_others() -> None:
    assert random_mixes(5, 1) == random_mixes(5, 1) != random_mixes(5, 2)
    assert all(len(mix) == PODS and set(mix) <= set(benchmarks()) for mix in random_mixes(5, 3))

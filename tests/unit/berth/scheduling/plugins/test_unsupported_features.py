"""Pods that state more rules than are looked at wait and are told so, alone and in an application."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.plugins.unsupported_features import MOST_RULES
from tests.support import builders
from tests.support.filtering import filtered
from tests.support.placement import Lab, chain, group_object, member, zoned

HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def terms(number: int) -> list[dict[str, Any]]:
    return [builders.pod_term(HOST, {"app": f"x{each}"}) for each in range(number)]


def rules(affinity: int, spread: int) -> dict[str, Any]:
    return {
        "affinity": {"podAntiAffinity": {REQUIRED: terms(affinity)}},
        "topologySpreadConstraints": [builders.spread(f"key-{n}", {"app": "x"}) for n in range(spread)],
    }


@pytest.mark.parametrize(
    ("affinity", "spread", "placed"),
    [
        pytest.param(MOST_RULES, 0, True, id="as-many-as-are-looked-at"),
        pytest.param(MOST_RULES + 1, 0, False, id="one-more"),
        pytest.param(MOST_RULES, 1, False, id="constraints-count-as-well"),
        pytest.param(5000, 0, False, id="thousands"),
    ],
)
def test_rules_of_a_pod_are_bounded(affinity: int, spread: int, placed: bool) -> None:
    lab = Lab([zoned("n1")])
    result = filtered(builders.pod("p", spec=rules(affinity, spread)), lab.cache.state)
    assert bool(result.feasible) is placed
    if not placed:
        assert f"the pod has {affinity + spread} affinity terms and topology spread" in result.message()


def test_a_member_of_an_application_is_told_too() -> None:
    lab = Lab([zoned("n1")])
    group = lab.group(group_object("shop", *chain("a", "b")))
    outcome = lab.place(group, member("p", "a", spec=rules(1000, 0)), member("q", "b"), partial=True)
    assert [one.pod.metadata.name for one in outcome.decisions] == ["q"]
    assert ["the pod has 1000 affinity terms" in one.message for one in outcome.failures] == [True]


def test_what_runs_with_more_keeps_others_away_all_the_same() -> None:
    lab = Lab([zoned("n1"), zoned("n2")])
    lab.see(builders.pod("there", on="n1", spec=rules(1000, 0)))
    assert filtered(builders.pod("p", labels={"app": "x999"}), lab.cache.state).feasible == 1

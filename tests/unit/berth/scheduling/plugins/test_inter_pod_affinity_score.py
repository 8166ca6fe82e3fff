"""InterPodAffinity's score: preferences in both directions."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import Pod
from berth.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from tests.support.builders import namespace, pod, pod_term
from tests.support.filtering import cluster, scores, zoned

X = {"app": "x"}


def there(**counts: int) -> list[Pod]:
    return [pod(f"{name}-{n}", on=name, labels=X) for name, count in counts.items() for n in range(count)]


def weighted(kind: str, weight: int, term: dict[str, Any]) -> dict[str, Any]:
    items = [{"weight": weight, "podAffinityTerm": term}]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": items}}}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("podAffinity", {"a0": 100, "a1": 100, "b0": 50, "c0": 0}, id="drawn-to"),
        pytest.param("podAntiAffinity", {"a0": 0, "a1": 0, "b0": 50, "c0": 100}, id="kept-from"),
    ],
)
def test_preferences_of_the_new_pod(kind: str, expected: dict[str, float]) -> None:
    state = cluster(zoned("a0", "a1", "b0", "c0"), there(a0=1, a1=1, b0=1))
    new = pod("new", spec=weighted(kind, 10, pod_term("zone", X)))
    assert scores(InterPodAffinity(), new, state) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(weighted("podAffinity", 10, pod_term("zone", X)), {"a0": 100, "b0": 0}, id="welcome"),
        pytest.param(weighted("podAntiAffinity", 10, pod_term("zone", X)), {"a0": 0, "b0": 100}, id="unwelcome"),
        pytest.param(
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [pod_term("zone", X)]}}},
            {"a0": 100, "b0": 0},
            id="required-by-the-other",
        ),
        pytest.param(weighted("podAffinity", 10, pod_term("zone", {"app": "y"})), {"a0": 0, "b0": 0}, id="not-meant"),
    ],
)
def test_preferences_of_pods_already_there(spec: dict[str, Any], expected: dict[str, float]) -> None:
    state = cluster(zoned("a0", "b0"), [pod("owner", on="a0", spec=spec)])
    assert scores(InterPodAffinity(), pod("new", labels=X), state) == expected


def test_both_directions_add_up_with_their_signs() -> None:
    owner = pod("owner", on="a0", labels=X, spec=weighted("podAntiAffinity", 40, pod_term("zone", X)))
    state = cluster(zoned("a0", "b0", "c0"), [owner, pod("x", on="b0", labels=X)])
    new = pod("new", labels=X, spec=weighted("podAffinity", 30, pod_term("zone", X)))
    # a: 30 - 40 = -10, b: 30, c: 0, stretched from -10..30 to 0..100
    assert scores(InterPodAffinity(), new, state) == {"a0": 0, "b0": 100, "c0": 25}


def test_preferences_reach_other_namespaces_by_selector() -> None:
    state = cluster(zoned("a0", "b0"), [pod("x", namespace="red", on="a0", labels=X)], [namespace("red", team="r")])
    term = pod_term("zone", X, namespaceSelector={"matchLabels": {"team": "r"}})
    assert scores(InterPodAffinity(), pod("new", spec=weighted("podAffinity", 1, term)), state)["a0"] == 100

"""Compiled affinity terms and spread constraints: whom they select."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube.objects import PodAffinityTerm, TopologySpreadConstraint
from berth.scheduling.cache.terms import compile_affinity_term, compile_spread_constraint
from tests.support.builders import requirement


def term(**fields: Any) -> PodAffinityTerm:
    return msgspec.convert(
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}, **fields}, PodAffinityTerm
    )


RED = {"matchLabels": {"team": "red"}}


@pytest.mark.parametrize(
    ("fields", "namespace", "labels", "selected"),
    [
        pytest.param({}, "own", {}, True, id="own-namespace-by-default"),
        pytest.param({}, "other", {}, False, id="no-other-by-default"),
        pytest.param({"namespaces": ["other"]}, "other", {}, True, id="named"),
        pytest.param({"namespaces": ["other"]}, "own", {}, False, id="named-leaves-out-own"),
        pytest.param({"namespaceSelector": RED}, "other", {"team": "red"}, True, id="selected-by-label"),
        pytest.param({"namespaceSelector": RED}, "own", {}, False, id="selector-leaves-out-own"),
        pytest.param({"namespaceSelector": {}}, "any", None, True, id="empty-selector-means-all-even-unknown"),
        pytest.param({"namespaceSelector": RED}, "gone", None, False, id="unknown-namespace"),
        pytest.param({"namespaceSelector": RED, "namespaces": ["b"]}, "b", {}, True, id="either-name-or-label"),
    ],
)
def test_namespaces_of_a_term(
    fields: dict[str, Any], namespace: str, labels: dict[str, str] | None, selected: bool
) -> None:
    compiled = compile_affinity_term(term(**fields), namespace="own", labels={}, where=("t",))
    assert compiled.selects_namespace(namespace, labels) is selected
    assert compiled.matches(namespace, {"app": "x"}, labels) is selected
    assert not compiled.matches(namespace, {"app": "y"}, labels)


@pytest.mark.parametrize(
    ("fields", "labels", "matches"),
    [
        pytest.param({"matchLabelKeys": ["v"]}, {"app": "x", "v": "1"}, True, id="same-value"),
        pytest.param({"matchLabelKeys": ["v"]}, {"app": "x", "v": "2"}, False, id="other-value"),
        pytest.param({"matchLabelKeys": ["w"]}, {"app": "x"}, True, id="key-the-owner-lacks-is-ignored"),
        pytest.param({"mismatchLabelKeys": ["v"]}, {"app": "x", "v": "1"}, False, id="mismatch-same-value"),
        pytest.param({"mismatchLabelKeys": ["v"]}, {"app": "x"}, True, id="mismatch-without-key"),
        pytest.param(
            {"matchLabelKeys": ["v"], "labelSelector": {"matchExpressions": [requirement("v", "In", ["7"])]}},
            {"v": "7"},
            True,
            id="merged-by-the-api-server-already",
        ),
        pytest.param(
            {"matchLabelKeys": ["v"], "labelSelector": None}, {"v": "1"}, False, id="no-selector-stays-nothing"
        ),
    ],
)
def test_match_label_keys(fields: dict[str, Any], labels: dict[str, str], matches: bool) -> None:
    compiled = compile_affinity_term(term(**fields), namespace="own", labels={"app": "x", "v": "1"}, where=("t",))
    assert compiled.selector.matches(labels) is matches


def test_spread_constraint_defaults_and_match_label_keys() -> None:
    raw = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}, "matchLabelKeys": ["v", "w"]}
    compiled = compile_spread_constraint(
        msgspec.convert(raw, TopologySpreadConstraint), labels={"app": "x", "v": "1"}, where=("s",)
    )
    assert (compiled.max_skew, compiled.min_domains) == (1, 1)
    assert (compiled.honour_affinity, compiled.honour_taints) == (True, False)
    assert compiled.selector.matches({"app": "x", "v": "1"})
    assert not compiled.selector.matches({"app": "x", "v": "2"})

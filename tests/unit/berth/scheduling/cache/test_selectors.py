"""Label selectors, affinity terms and spread constraints in compiled form."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube.objects import LabelSelector
from berth.scheduling.cache.selectors import EVERYTHING, NOTHING, compile_selector
from tests.support.builders import requirement


def selector(*expressions: dict[str, Any], **labels: str) -> LabelSelector:
    return msgspec.convert({"matchLabels": labels, "matchExpressions": list(expressions)}, LabelSelector)


@pytest.mark.parametrize(
    ("chosen", "labels", "matches"),
    [
        pytest.param(None, {"a": "1"}, False, id="absent-matches-nothing"),
        pytest.param(selector(), {}, True, id="empty-matches-everything"),
        pytest.param(selector(a="1"), {"a": "1", "b": "2"}, True, id="label-equal"),
        pytest.param(selector(a="1"), {"a": "2"}, False, id="label-differs"),
        pytest.param(selector(a="1"), {}, False, id="label-missing"),
        pytest.param(selector(a="1", b="2"), {"a": "1"}, False, id="all-labels-needed"),
        pytest.param(selector(requirement("a", "In", ["1", "2"])), {"a": "2"}, True, id="in"),
        pytest.param(selector(requirement("a", "In", ["1", "2"])), {}, False, id="in-missing-key"),
        pytest.param(selector(requirement("a", "NotIn", ["1"])), {"a": "2"}, True, id="not-in"),
        pytest.param(selector(requirement("a", "NotIn", ["1"])), {"a": "1"}, False, id="not-in-hit"),
        pytest.param(selector(requirement("a", "NotIn", ["1"])), {}, True, id="not-in-holds-without-key"),
        pytest.param(selector(requirement("a", "Exists")), {"a": ""}, True, id="exists-with-empty-value"),
        pytest.param(selector(requirement("a", "Exists")), {}, False, id="exists-missing"),
        pytest.param(selector(requirement("a", "DoesNotExist")), {}, True, id="does-not-exist"),
        pytest.param(selector(requirement("a", "DoesNotExist")), {"a": "1"}, False, id="does-not-exist-hit"),
        pytest.param(selector(requirement("b", "Exists"), a="1"), {"a": "1"}, False, id="labels-and-expressions"),
    ],
)
def test_matching(chosen: LabelSelector | None, labels: dict[str, str], matches: bool) -> None:
    assert compile_selector(chosen).matches(labels) is matches


def test_equal_selectors_compile_to_equal_values_whatever_the_order() -> None:
    one = selector(requirement("b", "In", ["2", "1"]), a="1")
    other = selector(requirement("a", "In", ["1"]), requirement("b", "In", ["1", "2"]))
    assert compile_selector(one) == compile_selector(other)
    assert hash(compile_selector(one)) == hash(compile_selector(other))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param(requirement("a", "Near", ["1"]), r"s\.matchExpressions\[0\]\.operator: 'Near'", id="operator"),
        pytest.param(requirement("a", "In"), r"s\.matchExpressions\[0\]\.values: In needs", id="no-values"),
    ],
)
def test_errors_name_the_field(expression: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compile_selector(selector(expression), where=("s",))


def test_also_narrows_but_leaves_nothing_alone() -> None:
    assert EVERYTHING.also({"a": "1"}).matches({"a": "1"})
    assert not EVERYTHING.also({"a": "1"}).matches({"a": "2"})
    assert NOTHING.also({"a": "1"}) is NOTHING

"""Which sets of labels a selector is compared with: all that it selects, in their order, and few others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.cache.selectors import EVERYTHING, NOTHING, OPERATORS, Requirement, Selector
from berth.scheduling.replica_plan.label_index import LabelIndex

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from("xyz")
REQUIREMENTS = st.tuples(KEYS, st.sampled_from(OPERATORS), st.frozensets(VALUES, min_size=1))
SELECTORS = st.one_of(
    st.just(NOTHING), st.builds(lambda found: Selector(tuple(sorted(found))), st.sets(REQUIREMENTS, max_size=3))
)


@given(labels=st.lists(st.dictionaries(KEYS, VALUES)), selectors=st.lists(SELECTORS))
def test_nobody_who_is_selected_is_left_out(labels: list[Mapping[str, str]], selectors: list[Selector]) -> None:
    index = LabelIndex(labels)
    for selector in selectors:
        found = list(index.carriers(selector))
        assert found == sorted(set(found))
        assert {number for number, each in enumerate(labels) if selector.matches(each)} <= set(found)


def has(key: str, *values: str) -> Requirement:
    return key, "In", frozenset(values)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        pytest.param(NOTHING, [], id="nothing"),
        pytest.param(EVERYTHING, [0, 1, 2, 3], id="everything"),
        pytest.param(Selector((has("app", "b"),)), [1], id="a value"),
        pytest.param(Selector((has("app", "c", "a"),)), [0, 2], id="several values"),
        pytest.param(Selector((has("app", "b"), has("tier", "web"))), [1], id="the value of the fewest"),
        pytest.param(Selector((has("tier", "none"),)), [], id="a value of nobody"),
        pytest.param(Selector((("app", "Exists", frozenset()),)), [0, 1, 2, 3], id="no value is asked for"),
    ],
)
def test_few_others_are_compared(selector: Selector, found: list[int]) -> None:
    labels = [{"app": app, "tier": "web"} for app in "abc"] + [{}]
    assert list(LabelIndex(labels).carriers(selector)) == found

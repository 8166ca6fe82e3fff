"""Selectors over many volumes: what each matches alone, whatever the labels."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects import LabelSelector
from berth.scheduling.cache.selectors import NOTHING, compile_selector
from berth.scheduling.cache.volume_labels import VolumeLabels

KEYS, VALUES = ("disk", "rack", "zone"), ("a", "b", "c")
LABELS = st.lists(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)), max_size=6)
EXPRESSIONS = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "key": st.sampled_from(KEYS),
                "operator": st.sampled_from(["In", "NotIn"]),
                "values": st.lists(st.sampled_from([*VALUES, "unknown"]), min_size=1, max_size=3),
            }
        ),
        st.fixed_dictionaries({"key": st.sampled_from(KEYS), "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
    ),
    max_size=3,
)


@given(LABELS, EXPRESSIONS, st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1))
def test_each_volume_is_matched_as_if_it_were_alone(
    labels: list[dict[str, str]], expressions: list[dict[str, Any]], exact: dict[str, str]
) -> None:
    raw = {"matchExpressions": expressions, "matchLabels": exact}
    selector = compile_selector(msgspec.convert(raw, LabelSelector))
    asked = {key for key, _, _ in selector.requirements}
    found = VolumeLabels(labels, asked).matching(selector)
    assert found.tolist() == [selector.matches(each) for each in labels]


@pytest.mark.parametrize("labels", [[], [{"disk": "a"}, {}]], ids=["no-volumes", "volumes"])
def test_no_selector_matches_nothing(labels: list[dict[str, str]]) -> None:
    assert not VolumeLabels(labels, ()).matching(NOTHING).any()

"""YAML of any depth is told apart from what a parser can take, without taking it."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.yaml_depth import MAX_YAML_DEPTH, check_depth

DEEP = 100_000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: " + "[" * DEEP, id="lists that do not end"),
        pytest.param("a: " + "[" * DEEP + "]" * DEEP, id="lists"),
        pytest.param("a: " + "{a: " * DEEP + "}" * DEEP, id="maps"),
        pytest.param("a: " + "[{a: " * DEEP, id="lists and maps"),
        pytest.param("# ]]]]\na: " + "[\n# ]]\n" * DEEP, id="ends that are comments"),
        pytest.param("- " * DEEP, id="lists on a line"),
        pytest.param("? " * DEEP, id="keys on a line"),
        pytest.param(
            "".join(" " * (600 * line) + "- " * 299 + "-\n" for line in range(100)), id="some lists on each line"
        ),
    ],
)
def test_what_is_nested_without_end_is_refused(text: str) -> None:
    """Each of these ended the process without a word."""
    with pytest.raises(RecursionError, match="nested in more than"):
        check_depth(text)


@given(lists=st.recursive(st.none(), lambda inner: st.lists(inner, max_size=3), max_leaves=20))
def test_what_is_not_is_taken(lists: object) -> None:
    for style in (True, False):
        check_depth(yaml.safe_dump({"items": [lists] * 50}, default_flow_style=style) + "# [" * MAX_YAML_DEPTH)

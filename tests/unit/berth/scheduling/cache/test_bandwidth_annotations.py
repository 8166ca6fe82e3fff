"""Limits of the CNI bandwidth plugin, in pods' annotations."""

from __future__ import annotations

import pytest

from berth.scheduling.cache.bandwidth_annotations import EGRESS, INGRESS, annotated_bandwidth


@pytest.mark.parametrize(
    ("annotations", "bits"),
    [
        pytest.param({}, 0, id="none"),
        pytest.param({INGRESS: "10M"}, 10**7, id="one-direction"),
        pytest.param({INGRESS: "10M", EGRESS: "1Gi"}, 2**30, id="the-wider-one"),
        pytest.param({EGRESS: "1k"}, 1000, id="least"),
        pytest.param({EGRESS: "1P"}, 10**15, id="most"),
        pytest.param({"other": "10M"}, 0, id="another-annotation"),
    ],
)
def test_the_wider_direction_counts(annotations: dict[str, str], bits: int) -> None:
    assert annotated_bandwidth(annotations) == (bits, ())


@pytest.mark.parametrize("text", ["", "fast", "-10M", "999", "1001T", "10 M", "1e999999999", "0"])
def test_a_value_that_cannot_be_is_named_with_its_remedy(text: str) -> None:
    bits, (problem,) = annotated_bandwidth({INGRESS: text, EGRESS: "5M"})
    assert bits == 5 * 10**6
    assert INGRESS in str(problem)
    assert repr(text) in str(problem)
    assert "such as 10M" in str(problem)


def test_long_values_are_cut() -> None:
    _, (problem,) = annotated_bandwidth({INGRESS: "x" * 100_000})
    assert len(str(problem)) < 400

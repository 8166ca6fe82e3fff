"""The WorkloadProfile: what it can state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from berth.api.errors import InvalidObjectError
from berth.api.interference import InterferenceClass
from berth.api.workloadprofile import MAX_NEIGHBOURS, LearningMethod, NeighbourSlowdown, WorkloadProfile

EXAMPLE = Path(__file__).parents[4] / "examples" / "interference" / "workloadprofiles.yaml"
SPEC: dict[str, Any] = {
    "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "report"},
    "interferenceClass": "D",
}


def profile(**change: Any) -> WorkloadProfile:
    return WorkloadProfile.parse({"metadata": {"name": "report"}, "spec": SPEC | change})


def test_the_example() -> None:
    stated, measured = map(WorkloadProfile.parse, yaml.safe_load_all(EXAMPLE.read_text()))
    assert (stated.spec.interference_class, stated.spec.method) == (InterferenceClass.A, None)
    assert (measured.spec.method, measured.spec.qos_limit) == (LearningMethod.CO_RUN, 1.2)
    assert {item.beside: item.slowdown for item in measured.spec.slowdowns}["thumbnails"] == 1.379
    for raw, found in zip(yaml.safe_load_all(EXAMPLE.read_text()), (stated, measured), strict=True):
        written = found.to_api()["spec"]
        assert {name: written[name] for name in raw["spec"]} == raw["spec"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param({"interferenceClass": "E"}, "interferenceClass", id="no class"),
        pytest.param({"interferenceClass": "catA"}, "interferenceClass", id="a label's form"),
        pytest.param({"sensitivity": "fast"}, "'fast' is no slowdown", id="words"),
        pytest.param({"sensitivity": "1.2345"}, "three places", id="too fine"),
        pytest.param({"sensitivity": 1.25}, "in quotes", id="a number"),
        pytest.param({"sensitivity": "-1"}, "is no slowdown", id="negative"),
        pytest.param({"contentiousness": "0.0"}, "is no slowdown", id="nothing"),
        pytest.param({"contentiousness": "1e3"}, "is no slowdown", id="exponent"),
        pytest.param({"qosLimit": 1000}, "is no slowdown", id="too great"),
        pytest.param({"qosLimit": True}, "is no slowdown", id="no number"),
        pytest.param({"method": "Guess"}, "method", id="no method"),
        pytest.param({"samples": -1}, "samples", id="negative count"),
        pytest.param({"measuredTime": "2026-11-22"}, "time zone", id="no time"),
        pytest.param({"targetRef": {"kind": "Deployment", "name": "x"}}, "targetRef.apiVersion", id="half a target"),
        pytest.param({"slowdowns": [{"beside": "x"}]}, "slowdowns[0].slowdown", id="no figure"),
        pytest.param(
            {"slowdowns": [{"beside": str(n), "slowdown": "1.1"} for n in range(MAX_NEIGHBOURS + 1)]},
            "slowdowns",
            id="too many neighbours",
        ),
    ],
)
def test_what_is_no_profile_is_refused(change: dict[str, Any], text: str) -> None:
    profile()
    with pytest.raises(InvalidObjectError) as refused:
        profile(**change)
    assert text in str(refused.value)


def test_without_a_spec_it_is_none() -> None:
    with pytest.raises(InvalidObjectError, match="spec"):
        WorkloadProfile.parse({"metadata": {"name": "report"}})


@given(st.integers(100, 999_999).map(lambda thousandths: thousandths / 1000))
def test_slowdowns_are_written_as_they_are_read(value: float) -> None:
    found = NeighbourSlowdown(beside="x", slowdown=value)
    text = found.to_api()["slowdown"]
    assert len(text) <= 7
    assert NeighbourSlowdown.model_validate({"beside": "x", "slowdown": text}) == found

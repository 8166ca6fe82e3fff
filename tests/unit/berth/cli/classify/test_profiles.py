"""WorkloadProfiles of classified workloads: their names, and what they hold."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.workloadprofile import MAX_NEIGHBOURS
from berth.cli.classify.profiles import object_names, profiles
from berth.scheduling.interference.classification import classify

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""What the API server takes for the name of an object."""
PAIR = {"a": {"b": 1.5, "x": 1.1}, "b": {"a": 1.0}}


def made(table: dict[str, dict[str, float]], **change: Any) -> list[dict[str, Any]]:
    return profiles(classify(table), 1.2, **({"namespace": None, "measured": None} | change))


@pytest.mark.parametrize(
    ("workload", "name"),
    [
        pytest.param("report", "report", id="as it is"),
        pytest.param("GemsFDTD2", "gemsfdtd2", id="capitals"),
        pytest.param("470.lbm", "470.lbm", id="digits and a dot"),
        pytest.param("my_job (v2)", "my-job-v2", id="what names cannot hold"),
        pytest.param("..a..", "a", id="dots at the ends"),
        pytest.param("spec..lbm", "spec.lbm", id="nothing between dots"),
        pytest.param("lbm_.v2-._(ref)", "lbm.v2.ref", id="what names cannot hold beside a dot"),
    ],
)
def test_names(workload: str, name: str) -> None:
    assert object_names([workload]) == {workload: name}


@pytest.mark.parametrize(
    ("workloads", "text"),
    [
        pytest.param(["?"], "'\\?' gives no name of an object", id="nothing left"),
        pytest.param(["a" * 254], "gives no name of an object", id="too long"),
        pytest.param(["a b", "c", "A_b"], "'a b' and 'A_b' both give the name a-b", id="one for two"),
    ],
)
def test_what_gives_no_names(workloads: list[str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        object_names(workloads)


@given(st.lists(st.text(max_size=300) | st.text("aB.-_ 1", max_size=9), max_size=5, unique=True))
def test_names_are_those_of_objects_and_differ(workloads: list[str]) -> None:
    try:
        names = object_names(workloads)
    except ValueError:
        return
    assert len(set(names.values())) == len(workloads)
    for name in names.values():
        assert 0 < len(name) <= 253
        assert SUBDOMAIN.fullmatch(name)


def test_what_a_profile_holds() -> None:
    sensitive, contentious = made(PAIR, namespace="shop", measured=datetime(2026, 1, 31, 12, tzinfo=UTC))
    assert sensitive["metadata"] == {"name": "a", "namespace": "shop"}
    assert sensitive["spec"] == {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
        "interferenceClass": "B",
        "sensitivity": "1.500",
        "contentiousness": "1.000",
        "qosLimit": "1.200",
        "method": "CoRun",
        "samples": 3,
        "measuredTime": "2026-01-31T12:00:00Z",
        "slowdowns": [{"beside": "b", "slowdown": "1.500"}],
    }, "a neighbour without profile cannot be named"
    assert contentious["spec"]["interferenceClass"] == "C"


def test_without_namespace_time_and_class() -> None:
    found = made(PAIR | {"c": {}})
    assert [item["metadata"] for item in found] == [{"name": "a"}, {"name": "b"}]
    assert all("measuredTime" not in item["spec"] for item in found)


def test_a_table_that_no_profile_holds_is_refused() -> None:
    names = [f"w{number}" for number in range(MAX_NEIGHBOURS + 1)]
    table = {name: dict.fromkeys(names, 1.0) if name == "w0" else {"w0": 1.0} for name in names}
    with pytest.raises(ValueError, match="'w0' has more than 500 neighbours"):
        made(table)

"""What every kind's model does: raw objects, among them upstream's manifests, read, compared and written."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from berth.api.appgroup import AppGroup, AppGroupStatus
from berth.api.base import odd_time
from berth.api.errors import InvalidObjectError
from berth.api.networktopology import NetworkTopology, NetworkTopologyStatus
from tests.support.kinds import app_group, workload

UPSTREAM = sorted((Path(__file__).parents[3] / "data" / "upstream").glob("*.yaml"))
MODELS: dict[str, Any] = {"AppGroup": AppGroup, "NetworkTopology": NetworkTopology}


@pytest.mark.parametrize("path", UPSTREAM, ids=[path.stem for path in UPSTREAM])
def test_upstream_manifests_are_read(path: Path) -> None:
    raw = yaml.safe_load(path.read_text())
    model = MODELS[raw["kind"]].parse(raw)
    assert model.metadata.name == raw["metadata"]["name"]
    # Writing the spec again loses nothing that the manifest says, whatever way it wrote its quantities.
    written = MODELS[raw["kind"]].parse(model.to_api())
    assert written.spec == model.spec


def test_an_object_as_the_api_server_sends_it() -> None:
    raw = app_group(workload("a"))
    raw["metadata"] |= {
        "namespace": "shop",
        "uid": "u-1",
        "generation": 4,
        "resourceVersion": "17",
        "creationTimestamp": "2026-01-31T12:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
    }
    raw["status"] = {"runningWorkloads": 1, "addedByANewerVersion": {"x": 1}}
    group = AppGroup.parse(raw)
    assert (group.key, group.metadata.uid, group.metadata.generation) == ("shop/shop", "u-1", 4)
    assert group.metadata.creation_timestamp is not None
    assert group.metadata.creation_timestamp.isoformat() == "2026-01-31T12:00:00+00:00"
    assert group.status.running_workloads == 1


@pytest.mark.parametrize("model", [AppGroupStatus, NetworkTopologyStatus])
def test_an_empty_status_is_valid(model: type[AppGroupStatus] | type[NetworkTopologyStatus]) -> None:
    assert model.model_validate({}).conditions == ()


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"podsScheduled": [{"replicaID": "u-1", "hostname": "n1"}]}, id="upstreams-pods"),
        pytest.param({"topologyOrder": [workload("a")]}, id="no-index"),
        pytest.param({"topologyOrder": None, "scheduleStartTime": None}, id="null"),
        pytest.param({"runningWorkloads": -1}, id="out-of-range"),
        pytest.param({"scheduleStartTime": "0000-01-01T00:00:00Z"}, id="year-0"),
        pytest.param({"scheduleStartTime": "0001-01-01T00:00:00+01:00"}, id="before-year-1"),
        pytest.param({"scheduleStartTime": "9999-12-31T23:59:59-01:00"}, id="after-year-9999"),
        pytest.param(None, id="null-status"),
    ],
)
def test_a_status_that_cannot_be_read_counts_as_empty(status: Any) -> None:
    group = AppGroup.parse({**app_group(workload("a")), "status": status})
    assert (group.status, list(group.spec.by_selector())) == (AppGroupStatus(), ["a"])


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "0987-06-05T04:03:02Z", "2026-01-31T12:00:00Z"])
def test_a_time_is_written_as_it_was_read(text: str) -> None:
    """The API server refuses a year of fewer than four digits, and with it the whole status."""
    assert AppGroupStatus.model_validate({"scheduleStartTime": text}).to_api()["scheduleStartTime"] == text


def test_a_spec_that_cannot_be_read_is_told_without_its_status() -> None:
    with pytest.raises(InvalidObjectError) as raised:
        AppGroup.parse({**app_group(workload("a"), numMembers=0), "status": {"runningWorkloads": -1}})
    assert [problem.path for problem in raised.value.problems] == [("spec", "numMembers")]


def test_models_are_immutable_values() -> None:
    raw = app_group(workload("a", "b"), workload("b"))
    one, two = AppGroup.parse(raw), AppGroup.parse(raw)
    assert one.spec == two.spec
    assert hash(one.spec) == hash(two.spec)
    spec: Any = one.spec
    with pytest.raises(ValidationError, match="frozen"):
        spec.num_members = 3


@pytest.mark.parametrize(
    ("value", "odd"),
    [
        pytest.param("0000-01-01T00:00:00Z", True, id="the year 0"),
        pytest.param("9999-12-31t23:00:00-05:00", True, id="beyond the last year"),
        pytest.param("2026-01-31T12:00:00+99:00", True, id="a zone that is none"),
        pytest.param("2026-01-31T12:00:00Z", False, id="a time"),
        pytest.param("tomorrow", False, id="no time for anybody"),
        pytest.param(None, False, id="nothing"),
    ],
)
def test_times_of_the_api_server_alone(value: str | None, odd: bool) -> None:
    assert odd_time(value) is odd

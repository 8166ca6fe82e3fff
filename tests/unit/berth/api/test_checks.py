"""The rules of an AppGroup in Python; test_kinds_refused shows that the API server agrees."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.appgroup import AppGroup
from berth.api.checks import LONGEST_NAME, appgroup_problems, profile_problems, topology_problems
from berth.api.errors import FieldProblem, field_path
from berth.api.interference import InterferenceClass
from berth.api.networktopology import NetworkTopology
from berth.api.workloadprofile import WorkloadProfileSpec
from tests.support.kinds import app_group, network_topology, weight_set, workload


def problems(raw: dict[str, Any]) -> list[FieldProblem]:
    return appgroup_problems(AppGroup.parse(raw).spec)


EDGE = "spec.workloads[{}].dependencies[{}]"


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        pytest.param(app_group(), [], id="empty"),
        pytest.param(app_group(workload("a", "b"), workload("b", "a")), [], id="cycle"),
        pytest.param(app_group(workload("a"), workload("b"), numMembers=9), [], id="replicas"),
        pytest.param(app_group(workload("a", "b", "b", minBandwidth=0), workload("b")), [], id="same-dependency-twice"),
        pytest.param(
            app_group(workload("a"), workload("b"), workload("a"), workload("a")),
            [("spec.workloads", '3 workloads have the selector "a"; they are read as one; give each')],
            id="duplicates",
        ),
        pytest.param(
            app_group(workload("a"), workload("b"), numMembers=1),
            [("spec.numMembers", "numMembers is 1 but the group has 2 workloads")],
            id="too-few-members",
        ),
        pytest.param(
            app_group(workload("a"), workload("b", "a", "b")),
            [(EDGE.format(1, 1), 'workload "b" depends on itself; that dependency is ignored; remove')],
            id="self",
        ),
        pytest.param(
            app_group(workload("a", "x"), workload("b", "y")),
            [
                (
                    EDGE.format(0, 0),
                    'workload "a" depends on "x", which is not a workload of this group; that dependency is ignored',
                ),
                (
                    EDGE.format(1, 0),
                    'workload "b" depends on "y", which is not a workload of this group; that dependency is ignored',
                ),
            ],
            id="unknown",
        ),
        pytest.param(
            app_group(workload("a", "b", minBandwidth="-5M"), workload("b")),
            [(f"{EDGE.format(0, 0)}.minBandwidth", '"-5M" is not a bandwidth; it is read as no demand; write')],
            id="negative",
        ),
        pytest.param(
            app_group(workload("a", "b", minBandwidth="10 Mbit/s"), workload("b")),
            [(f"{EDGE.format(0, 0)}.minBandwidth", '"10 Mbit/s" is not a bandwidth; it is read as no demand')],
            id="no-quantity",
        ),
        pytest.param(
            app_group(workload("a"), topologySortingAlgorithm="Kahn"),
            [("spec.topologySortingAlgorithm", '"Kahn" is no algorithm; KahnSort is used; write one of KahnSort, ')],
            id="algorithm",
        ),
        pytest.param(
            app_group(workload("x" * 64)),
            [("spec.workloads[0].workload.selector", "more than 63 characters, which no pod label can hold; shorten")],
            id="long-selector",
        ),
    ],
)
def test_problems(raw: dict[str, Any], found: list[tuple[str, str]]) -> None:
    told = problems(raw)
    assert [field_path(problem.path) for problem in told] == [path for path, _ in found]
    assert [problem.text for problem, (_, words) in zip(told, found, strict=True) if words not in problem.text] == []


@pytest.mark.parametrize(
    ("capacity", "wrong"), [("10G", False), (5, False), ("10 Gbit", True), ("-1", True), ("", True)], ids=repr
)
def test_a_capacity_that_is_no_bandwidth_is_reported(capacity: str | int, wrong: bool) -> None:
    raw = network_topology(weight_set(a={"b": {"networkCost": 1, "bandwidthCapacity": capacity}, "c": 2}))
    found = topology_problems(NetworkTopology.parse(raw).spec)
    told = (
        f'spec.weights.UserDefined.topology.kubernetes.io/zone.a.b.bandwidthCapacity: "{capacity}" is not a bandwidth; '
        "it is read as not known; write a quantity of bit/s from 0 up, such as 10G or 1Gi"
    )
    assert [str(problem) for problem in found] == ([told] if wrong else [])


LONG = "x" * 300_000


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(app_group(workload(LONG, *["y"] * 2000)), id="dependencies-that-are-no-workloads"),
        pytest.param(app_group(workload("a", *[LONG] * 20)), id="a-long-one-of-these"),
        pytest.param(app_group(workload(LONG, *[LONG] * 3)), id="dependencies-on-itself"),
        pytest.param(app_group(workload(LONG), workload(LONG)), id="duplicates"),
        pytest.param(app_group(workload("a", "b", minBandwidth=LONG), workload("b")), id="bandwidth"),
        pytest.param(app_group(workload("a"), topologySortingAlgorithm=LONG), id="algorithm"),
    ],
)
def test_long_names_are_shown_in_part(raw: dict[str, Any]) -> None:
    found = problems(raw)
    assert found
    assert max(len(str(problem)) for problem in found) < 500
    assert any(f"{'x' * LONGEST_NAME}…" in str(problem) for problem in found)


@pytest.mark.parametrize("place", ["set", "key", "origin", "destination", "capacity"])
def test_long_names_of_places_are_shown_in_part(place: str) -> None:
    names = {name: LONG if name == place else "short" for name in ("set", "key", "origin", "destination", "capacity")}
    cost = {"destination": names["destination"], "networkCost": 1, "bandwidthCapacity": names["capacity"]}
    origins = [{"origin": names["origin"], "costList": [cost] * 1000}]
    raw = network_topology(
        {"name": names["set"], "topologyList": [{"topologyKey": names["key"], "originList": origins}]}
    )
    found = topology_problems(NetworkTopology.parse(raw).spec)
    assert len(found) == 1000
    assert max(len(str(problem)) for problem in found) < 500


names = st.lists(st.sampled_from([f"w{number}" for number in range(12)]), unique=True, min_size=2)


@settings(deadline=None)
@given(names, st.data())
def test_a_group_is_sound_exactly_while_its_edges_stay_inside(selectors: list[str], data: st.DataObject) -> None:
    edges = {
        own: data.draw(st.lists(st.sampled_from([name for name in selectors if name != own]), max_size=4))
        for own in selectors
    }
    entries = [workload(own, *targets) for own, targets in edges.items()]
    assert problems(app_group(*entries)) == []
    gone = data.draw(st.sampled_from(selectors))
    left = [entry for entry in entries if entry["workload"]["selector"] != gone]
    dangling = sum(targets.count(gone) for own, targets in edges.items() if own != gone)
    assert len(problems(app_group(*left))) == dangling


@pytest.mark.parametrize(("contentious", "sensitive"), [(1.0, 1.199), (1.2, 1.0), (1.199, 1.2), (3.0, 1.2)])
def test_one_class_follows_from_what_was_measured(sensitive: float, contentious: float) -> None:
    figures = {"sensitivity": sensitive, "contentiousness": contentious, "qosLimit": 1.2, "method": "CoRun"}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    specs = [
        WorkloadProfileSpec.model_validate({"targetRef": target, "interferenceClass": letter, **figures})
        for letter in InterferenceClass
    ]
    (accepted,) = [spec.interference_class for spec in specs if not profile_problems(spec)]
    assert accepted == InterferenceClass.of(sensitive=sensitive >= 1.2, contentious=contentious >= 1.2)

"""The rules of an AppGroup in Python; test_kinds_refused shows that the API server agrees."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.appgroup import AppGroup
from berth.api.checks import appgroup_problems
from berth.api.errors import FieldProblem, field_path
from tests.support.kinds import app_group, workload


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
            [("spec.workloads", '3 workloads have the selector "a"; give each')],
            id="duplicates",
        ),
        pytest.param(
            app_group(workload("a"), workload("b"), numMembers=1),
            [("spec.numMembers", "numMembers is 1 but the group has 2 workloads")],
            id="too-few-members",
        ),
        pytest.param(
            app_group(workload("a"), workload("b", "a", "b")),
            [(EDGE.format(1, 1), 'workload "b" depends on itself; remove')],
            id="self",
        ),
        pytest.param(
            app_group(workload("a", "x"), workload("b", "y")),
            [
                (EDGE.format(0, 0), 'workload "a" depends on "x", which is not a workload of this group; add'),
                (EDGE.format(1, 0), 'workload "b" depends on "y", which is not a workload of this group; add'),
            ],
            id="unknown",
        ),
        pytest.param(
            app_group(workload("a", "b", minBandwidth="-5M"), workload("b")),
            [(f"{EDGE.format(0, 0)}.minBandwidth", '"-5M" is negative; write')],
            id="negative",
        ),
    ],
)
def test_problems(raw: dict[str, Any], found: list[tuple[str, str]]) -> None:
    told = problems(raw)
    assert [field_path(problem.path) for problem in told] == [path for path, _ in found]
    assert [problem.text for problem, (_, words) in zip(told, found, strict=True) if words not in problem.text] == []


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

"""Why pods of a joint plan have no node: counts, order, and who waits for whom."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.framework.rejection import Rejection
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.failures import joint_failures
from berth.scheduling.gang.outcome import Cause, Unplaced
from berth.scheduling.gang.placement_state import FILTERS
from tests.support.placement import Lab, chain, group_object, member, zoned

MASK = np.zeros(4, dtype=np.bool_)
SELECTOR = "node(s) didn't match Pod's node affinity/selector"
CPU = "Insufficient cpu"


@pytest.fixture
def lab() -> Lab:
    return Lab([zoned("n1"), zoned("n2")])


def _result(*rejections: Rejection) -> FilterResult:
    return FilterResult(mask=MASK, nodes=4, rejections=list(rejections))


def _stuck(component: int, *counts: tuple[str, str, int]) -> Unplaced:
    return Unplaced(component, Cause.NO_NODE_FITS, tuple(Rejection(*count) for count in counts))


def _failures(lab: Lab, unplaced: list[Unplaced], *results: FilterResult) -> list[tuple[str, str]]:
    group = lab.group(group_object("shop", *chain("web", "cart", "db")))
    pods = [member(name, name) for name in ("web", "cart", "db")]
    padded = [*results, *[_result()] * (len(pods) - len(results))]
    candidates = [Candidate(lab.cache.state.info(pod), result, {}) for pod, result in zip(pods, padded, strict=True)]
    found = joint_failures(group, unplaced, candidates)
    assert {failure.group for failure in found} <= {group.key}
    return [(failure.pod.metadata.name, failure.message) for failure in found]


def test_lack_of_room_is_worded_as_kube_scheduler_does(lab: Lab) -> None:
    unplaced = [_stuck(0, ("NodeResourcesFit", CPU, 4))]
    assert _failures(lab, unplaced) == [("web", "0/4 nodes are available: 4 Insufficient cpu.")]


def test_the_filters_rejections_stand_for_their_mask(lab: Lab) -> None:
    unplaced = [_stuck(0, (FILTERS, "", 3), ("NodeResourcesFit", "Insufficient memory", 1))]
    result = _result(
        Rejection("NodeAffinity", SELECTOR, 2), Rejection("NodeUnschedulable", "node(s) were unschedulable", 1)
    )
    assert _failures(lab, unplaced, result) == [
        ("web", f"0/4 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable, 2 {SELECTOR}.")
    ]


def test_the_same_rejection_from_filter_and_engine_is_added_up(lab: Lab) -> None:
    result = _result(Rejection("NodeResourcesFit", CPU, 1))
    masked, short = (FILTERS, "", 1), ("NodeResourcesFit", CPU, 3)
    for counts in ((masked, short), (short, masked)):
        assert _failures(lab, [_stuck(0, *counts)], result) == [("web", "0/4 nodes are available: 4 Insufficient cpu.")]


def test_those_who_wait_name_the_one_that_fits_nowhere_and_why(lab: Lab) -> None:
    unplaced = [Unplaced(0, Cause.WAITS_FOR, other=1), _stuck(1, ("NodeResourcesFit", CPU, 4))]
    words = "0/4 nodes are available: 4 Insufficient cpu."
    assert _failures(lab, unplaced) == [
        ("cart", words),
        ("web", f"AppGroup shop is placed all or nothing and waits for pod cart: {words}"),
    ]


def test_without_a_culprit_no_placement_was_found(lab: Lab) -> None:
    assert _failures(lab, [Unplaced(0, Cause.NO_JOINT_PLACEMENT)]) == [("web", "no joint placement was found")]


def test_nothing_left_out_is_no_failure(lab: Lab) -> None:
    assert _failures(lab, []) == []

"""Why pods of a joint plan have no node, in words: counts, order, and who waits for whom."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.framework.reasons import NODE_RESOURCES_FIT
from berth.scheduling.framework.rejection import Rejection
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.failures import joint_failures
from berth.scheduling.gang.outcome import Cause, Unplaced
from berth.scheduling.gang.placement_state import FILTERS
from berth.scheduling.plugins.pipeline import FilterResult
from tests.support.placement import Lab, chain, group_object, member, zoned

MASK = np.zeros(4, dtype=np.bool_)
SELECTOR = "node(s) didn't match Pod's node affinity/selector"


@pytest.fixture
def lab() -> Lab:
    return Lab([zoned("n1"), zoned("n2")])


def _result(**rejected: int) -> FilterResult:
    return FilterResult(mask=MASK, nodes=4, rejected={name.replace("_", " "): n for name, n in rejected.items()})


def _failures(lab: Lab, unplaced: list[Unplaced], *results: FilterResult) -> list[tuple[str, str]]:
    group = lab.group(group_object("shop", *chain("web", "cart", "db")))
    pods = [member(name, name) for name in ("web", "cart", "db")]
    candidates = [Candidate(lab.cache.state.info(pod), MASK) for pod in pods]
    padded = [*results, *[_result()] * (len(candidates) - len(results))]
    found = joint_failures(group, unplaced, candidates, padded)
    assert {failure.group for failure in found} <= {group.key}
    return [(failure.pod.metadata.name, failure.message) for failure in found]


CPU = Rejection(NODE_RESOURCES_FIT, "Insufficient cpu", 4)


@pytest.mark.parametrize(
    ("rejections", "filtered", "text"),
    [
        pytest.param([CPU], {}, "4 Insufficient cpu", id="engine"),
        pytest.param(
            [Rejection(FILTERS, "", 3), Rejection(NODE_RESOURCES_FIT, "Insufficient memory", 1)],
            {SELECTOR: 2, "node(s) were unschedulable": 1},
            f"1 Insufficient memory, 1 node(s) were unschedulable, 2 {SELECTOR}",
            id="the-filters-own-reasons",
        ),
        pytest.param(
            [Rejection(FILTERS, "", 1), Rejection(NODE_RESOURCES_FIT, "Insufficient cpu", 3)],
            {"Insufficient cpu": 1},
            "4 Insufficient cpu",
            id="one-reason-of-filters-and-engine-is-added-up",
        ),
    ],
)
def test_rejections_are_worded_as_kube_scheduler_does(
    lab: Lab, rejections: list[Rejection], filtered: dict[str, int], text: str
) -> None:
    result = FilterResult(mask=MASK, nodes=4, rejected=filtered)
    unplaced = [Unplaced(0, Cause.NO_NODE_FITS, tuple(rejections))]
    assert _failures(lab, unplaced, result) == [("web", f"0/4 nodes are available: {text}.")]


def test_those_who_wait_name_the_one_that_fits_nowhere_and_why(lab: Lab) -> None:
    unplaced = [Unplaced(0, Cause.WAITS_FOR, other=1), Unplaced(1, Cause.NO_NODE_FITS, (CPU,))]
    words = "0/4 nodes are available: 4 Insufficient cpu."
    assert _failures(lab, unplaced) == [
        ("cart", words),
        ("web", f"AppGroup shop is placed all or nothing and waits for pod cart: {words}"),
    ]


def test_without_a_culprit_no_placement_was_found(lab: Lab) -> None:
    unplaced = [Unplaced(component, Cause.NO_JOINT_PLACEMENT) for component in (0, 2)]
    assert _failures(lab, unplaced) == [
        ("web", "no joint placement was found"),
        ("db", "no joint placement was found"),
    ]


def test_nothing_left_out_is_no_failure(lab: Lab) -> None:
    assert _failures(lab, []) == []

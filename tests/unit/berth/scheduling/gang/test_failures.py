"""Why pods of a joint plan have no node, in words: counts, order, and who waits for whom."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.failures import joint_failures
from berth.scheduling.gang.outcome import Unplaced
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


def test_lack_of_room_is_worded_as_kube_scheduler_does(lab: Lab) -> None:
    unplaced = [Unplaced(0, "0/4 nodes: 4 insufficient cpu", {"insufficient cpu": 4})]
    assert _failures(lab, unplaced) == [("web", "0/4 nodes are available: 4 Insufficient cpu.")]


def test_the_filters_reasons_stand_for_their_mask(lab: Lab) -> None:
    reason = "0/4 nodes: 3 not allowed by the pod's rules, 1 insufficient memory"
    unplaced = [Unplaced(0, reason, {"not allowed by the pod's rules": 3, "insufficient memory": 1})]
    result = FilterResult(mask=MASK, nodes=4, rejected={SELECTOR: 2, "node(s) were unschedulable": 1})
    assert _failures(lab, unplaced, result) == [
        ("web", f"0/4 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable, 2 {SELECTOR}.")
    ]


def test_the_same_reason_from_filter_and_engine_is_added_up(lab: Lab) -> None:
    result = FilterResult(mask=MASK, nodes=4, rejected={"Insufficient cpu": 1})
    masked, short = ("not allowed by the pod's rules", 1), ("insufficient cpu", 3)
    for counts in ((masked, short), (short, masked)):
        unplaced = [Unplaced(0, "0/4 nodes: ...", dict(counts))]
        assert _failures(lab, unplaced, result) == [("web", "0/4 nodes are available: 4 Insufficient cpu.")]


def test_other_rules_of_the_engine_are_named(lab: Lab) -> None:
    unplaced = [Unplaced(0, "0/4 nodes: ...", {"network cost above maxNetworkCost": 4})]
    assert _failures(lab, unplaced) == [
        ("web", "0/4 nodes are available: 4 node(s) with network cost above maxNetworkCost.")
    ]


def test_those_who_wait_name_the_one_that_fits_nowhere_and_why(lab: Lab) -> None:
    waiting = "the group is placed as a whole and cart fits nowhere"
    unplaced = [Unplaced(0, waiting), Unplaced(1, "0/4 nodes: 4 insufficient cpu", {"insufficient cpu": 4})]
    words = "0/4 nodes are available: 4 Insufficient cpu."
    assert _failures(lab, unplaced) == [
        ("cart", words),
        ("web", f"AppGroup shop is placed all or nothing and waits for pod cart: {words}"),
    ]


def test_without_a_culprit_the_engines_words_stand(lab: Lab) -> None:
    unplaced = [Unplaced(0, "no joint placement was found"), Unplaced(2, "no joint placement was found")]
    assert _failures(lab, unplaced) == [
        ("web", "no joint placement was found"),
        ("db", "no joint placement was found"),
    ]


def test_nothing_left_out_is_no_failure(lab: Lab) -> None:
    assert _failures(lab, []) == []

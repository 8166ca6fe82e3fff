"""Statistics: rates, percentiles, medians over rounds, and what is said of the goals."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bench.schedperf.results import (
    BOUND,
    BOUND_TOLD,
    OURS,
    PEER,
    Result,
    bound_table,
    compare,
    figures,
    rate,
    summary,
    table,
)

RESULT = Result(
    case="A", workload="500Nodes", params={}, scheduler=OURS, round=0, pods=100, bound=100, told=100,
    pods_per_second=500.0, pods_per_second_told=300.0, p50=0.2, p99=0.5, cpu_seconds=0.1, server_seconds=0.3,
)  # fmt: skip


def test_a_rate_counts_from_the_first_to_the_last() -> None:
    assert rate([10.0, 11.0], [12.0, 12.5]) == pytest.approx(0.8)


@pytest.mark.parametrize(("first", "last"), [([1.0], []), ([], []), ([2.0], [2.0])], ids=["none", "nothing", "no time"])
def test_a_rate_of_nothing_is_none(first: list[float], last: list[float]) -> None:
    assert math.isnan(rate(first, last))


def test_only_measured_pods_count() -> None:
    created = {"a": 1.0, "b": 1.5, "other": 0.0}
    found = figures(["a", "b"], created=created, bound={"a": 2.0, "other": 9.0}, told={"a": 3.0, "other": 9.0})
    assert (found["pods"], found["bound"], found["told"]) == (2, 1, 1)
    assert found["pods_per_second"] == pytest.approx(1.0)
    assert found["pods_per_second_told"] == pytest.approx(0.5)
    assert found["p50"] == found["p99"] == pytest.approx(1.0)


def test_nothing_measured_gives_no_figures() -> None:
    found = figures([], created={}, bound={}, told={})
    assert found["pods"] == 0
    assert all(math.isnan(found[name]) for name in ("pods_per_second", "pods_per_second_told", "p50", "p99"))


def test_rounds_become_medians_and_ratios() -> None:
    ours = [replace(RESULT, round=n, pods_per_second=speed) for n, speed in enumerate((400.0, 500.0, 900.0))]
    peer = [replace(RESULT, scheduler=PEER, round=n, pods_per_second=250.0, p99=0.25) for n in range(3)]
    (comparison,) = compare([*ours, *peer])
    assert comparison.ratio("pods_per_second") == pytest.approx(2.0)
    assert comparison.ratio("p99") == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("ours", "peer", "left"), [(90, 100, 10), (90, 90, 0), (100, 90, 0)], ids=["only ours", "both", "only the peer's"]
)
def test_pods_left_pending_count_where_the_peer_places_them(ours: int, peer: int, left: int) -> None:
    (comparison,) = compare([replace(RESULT, bound=ours), replace(RESULT, scheduler=PEER, bound=peer)])
    assert comparison.left == left


def test_a_case_that_one_of_them_did_not_run_is_not_compared() -> None:
    assert compare([RESULT, replace(RESULT, case="B", scheduler=PEER)]) == []
    assert summary([]) == []


def test_the_summary_names_the_worst_cases() -> None:
    results = [
        RESULT,
        replace(RESULT, scheduler=PEER, pods_per_second=250.0, p99=1.0),
        replace(RESULT, case="B", pods_per_second=90.0, p99=2.0),
        replace(RESULT, case="B", scheduler=PEER, pods_per_second=100.0, p99=1.0),
    ]
    text = "\n".join(summary(compare(results)))
    assert "median 1.45 x, least 0.90 x (B)" in text
    assert "at most 2.00 x (B), above kube-scheduler's in 1 of 2 cases" in text


def test_the_table_has_a_cell_for_every_column() -> None:
    head, rule, row = table(compare([RESULT, replace(RESULT, scheduler=PEER, pods_per_second=250.0)]))
    assert head.count("|") == rule.count("|") == row.count("|")
    assert "| 2.00 |" in row
    assert row.endswith("| 1.00 | 1.00 | 3.00 | 3.00 | 0 |")


def _with_bound() -> list[Result]:
    peer = replace(RESULT, scheduler=PEER, pods_per_second=250.0, pods_per_second_told=200.0)
    return [
        RESULT,
        peer,
        replace(RESULT, scheduler=BOUND, pods_per_second=1000.0, pods_per_second_told=math.nan, told=0, p99=0.3),
        replace(RESULT, scheduler=BOUND_TOLD, pods_per_second=700.0, pods_per_second_told=600.0),
    ]


def test_what_is_possible_is_without_events_to_the_last_binding_and_with_them_to_the_last_event() -> None:
    (comparison,) = compare(_with_bound())
    assert comparison.possible == {
        "pods_per_second": 1000.0, "pods_per_second_told": 600.0, "p99": 0.3, "p99_told": 0.5
    }  # fmt: skip
    assert comparison.share(comparison.ours) == pytest.approx(0.5)
    assert comparison.share(comparison.peer, "pods_per_second_told") == pytest.approx(1 / 3)
    head, rule, row = bound_table([comparison])
    assert head.count("|") == rule.count("|") == row.count("|")
    assert row == "| A | 1000 | 25 % | 50 % | 4.00 x | 600 | 33 % | 50 % | 0.30 | 0.50 |"


def test_the_summary_says_whether_the_goal_can_be_reached() -> None:
    text = "\n".join(summary(compare(_with_bound())))
    assert "in the median: kube-scheduler 25 %, Berth 50 %" in text
    assert "1.5 x kube-scheduler's pods/s are possible in 1 of 1 cases" in text


def test_a_bound_that_left_pods_pending_says_nothing() -> None:
    results = [replace(r, bound=99) if r.scheduler in (BOUND, BOUND_TOLD) else r for r in _with_bound()]
    (comparison,) = compare(results)
    assert comparison.possible == {}
    assert math.isnan(comparison.share(comparison.ours))
    assert bound_table([comparison]) == []
    assert not any("possible" in line for line in summary([comparison]))

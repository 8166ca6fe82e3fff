"""Rollouts of many replicas: what is compared differs by the pods to come alone, and all of them are rolled out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bench.replicas import large
from bench.replicas.boutique import Case
from bench.replicas.cluster import Manifest
from bench.replicas.growth import by_berth_plan
from berth.scheduling.replica_plan import question

SMALL = Case(5, nodes=24)


def test_a_quarter_of_the_replicas_surge_until_all_are_new() -> None:
    revisions: list[set[str]] = []
    most: set[int] = set()

    def noted(documents: Sequence[Manifest]) -> dict[str, str]:
        most.add(question.MOST_AHEAD)
        waiting = [item for item in documents if item["kind"] == "Pod" and not item["spec"].get("nodeName")]
        revisions.append({item["metadata"]["name"] for item in waiting})
        return by_berth_plan(documents)

    before = question.MOST_AHEAD
    scratch, waves = large.run(SMALL, most=7, planner=noted)
    assert [len(each) for each in revisions] == [55, 22, 22, 11]
    assert most == {before, 7}
    assert before == question.MOST_AHEAD
    assert waves.end.objective > 0
    assert scratch.objective > 0


@pytest.mark.parametrize("prefer", ["", "PreferSameZone"])
def test_a_case_has_a_row_for_each_bound(monkeypatch: pytest.MonkeyPatch, prefer: str) -> None:
    asked: list[int] = []

    def noted(case: Case, *, most: int) -> tuple[large.Judged, large.Waves]:
        asked.append(most)
        return large.Judged(1, 2), large.Waves(large.Judged(1.5, 2.5), 0.3)

    monkeypatch.setattr(large, "run", noted)
    lines = large.page([Case(3, prefer, nodes=12)]).splitlines()
    services = prefer or "all endpoints"
    assert lines[2:] == [
        f"| 3 | {services} | {name} | 1.50 / 1.00 | 2.50 / 2.00 | 0.3 |"
        for name in ("all", "none", f"up to {question.MOST_AHEAD} pods")
    ]
    assert asked[1:] == [0, question.MOST_AHEAD]

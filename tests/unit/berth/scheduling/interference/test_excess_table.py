"""Pairs of workloads as an array: what the model says, asked once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference import excess_table
from berth.scheduling.interference.excess_table import ExcessTable
from berth.scheduling.interference.slowdown import SlowdownModel, Workload

MEASURED = {"ns/a": {"ns/b": 1.4, "ns/c": 1.1}, "ns/b": {"ns/a": 1.2}}
WORKLOADS = st.builds(Workload, st.sampled_from(["ns/a", "ns/b", "ns/c", ""]), st.sampled_from(InterferenceClass))
PODS = st.lists(WORKLOADS, max_size=6)


class Counted(SlowdownModel):
    """A model that counts how often it is asked."""

    asked = 0

    def excess(self, victim: Workload, neighbour: Workload) -> float:
        self.asked += 1
        return super().excess(victim, neighbour)


@settings(max_examples=40)
@given(st.lists(PODS, max_size=4))
def test_it_is_what_the_model_says_and_each_pair_is_asked_once(nodes: list[list[Workload]]) -> None:
    model = Counted(MEASURED)
    table = ExcessTable(model)
    for pods in nodes:
        found = table.among(pods)
        assert found.shape == (len(pods), len(pods))
        for one, victim in enumerate(pods):
            for other, neighbour in enumerate(pods):
                assert found[one, other] == (0 if one == other else SlowdownModel(MEASURED).excess(victim, neighbour))
    assert model.asked <= len({pod for pods in nodes for pod in pods}) ** 2


def test_few_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excess_table, "REMEMBERED", 4)
    model = Counted()
    table = ExcessTable(model)
    letters = list(InterferenceClass)
    for number in range(20):
        table.among([Workload(f"w{number}", letters[0]), Workload("", letters[1])])
    assert len(table._numbers) <= 4
    many = [Workload(f"w{number}", letters[0]) for number in range(70)]
    assert table.among(many).shape == (70, 70)
    assert len(table._known) == 70


def steps(run: Callable[[], object]) -> int:
    """How many instructions of Python it takes."""
    count, before = 0, sys.gettrace()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def test_many_pods_of_few_workloads_are_not_looked_at_in_pairs() -> None:
    letters = list(InterferenceClass)
    pods = [Workload("", letters[number % 2]) for number in range(200)]
    assert steps(lambda: ExcessTable(SlowdownModel()).among(pods)) < 100 * len(pods) < len(pods) ** 2

"""Starts: which slot each slice goes to, and what is put on one node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from berth.scheduling.gang.budget import UNLIMITED
from berth.scheduling.planning import finish
from berth.scheduling.replicas.rule import Affinity
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.fill import fill_blocks, fill_node, fill_slices, slots_of, turns_of
from tests.support.counts import HOST, books_of, nodes, problem, state_of


@pytest.mark.parametrize(
    ("placed", "slots", "turns"),
    [
        pytest.param({}, (0, 1), [0, 1, 0], id="in turn"),
        pytest.param({0: 1}, (0, 1), [1, 0, 1], id="one is there: the other first"),
        pytest.param({0: 3}, (0, 1), [1, 1, 1], id="three are there: all to the other"),
        pytest.param({6: 3}, (0, 1), [0, 1, 0], id="elsewhere does not count"),
        pytest.param({}, (2,), [0, 0, 0], id="one slot"),
        pytest.param({4: 1}, (2, 2), [0, 1, 0], id="two slots of one location"),
    ],
)
def test_turns_even_out_what_is_placed(placed: dict[int, int], slots: tuple[int, ...], turns: list[int]) -> None:
    books = books_of(problem(3, 3, placed={0: placed, 1: placed}))
    assert turns_of(books.model, [0, 1], slots) == turns


def test_a_single_location_has_two_slots() -> None:
    assert (slots_of((3,)), slots_of((3, 1))) == ((3, 3), (3, 1))


def test_slices_and_blocks_share_nodes_by_location() -> None:
    asked = problem(4, 4, edges=[(0, 1)])
    for fill in (fill_slices, fill_blocks):
        draft = Draft(books_of(asked))
        finish(fill(draft, UNLIMITED, (0, 2), [(0, 1)]))
        first, second = state_of(draft.books)
        assert first == second
        assert sorted(node // 2 for node in first) == [0, 0, 2, 2]


def test_who_has_all_replicas_has_no_say_in_later_slices() -> None:
    """One would rather not be where the last replica of the other goes."""
    asked = problem(2, 1)
    costs = np.array([0.0, 0, 0, 0, 1, 0, 0, 0])
    draft = Draft(books_of(replace(asked, pod_sets=[asked.pod_sets[0], replace(asked.pod_sets[1], cost=costs)])))
    finish(fill_slices(draft, UNLIMITED, (0, 2), [(0, 1)]))
    assert state_of(draft.books) == [(0, 4), (0,)]


def test_what_has_no_room_in_its_location_goes_elsewhere() -> None:
    draft = Draft(books_of(problem(4, on=nodes([1, 0, 9, 9, 9, 9, 9, 9]))))
    finish(fill_slices(draft, UNLIMITED, (0,), [(0,)]))
    assert draft.missing == [0]
    assert draft.books.planned[0, 0] == 1


@pytest.mark.parametrize(
    ("selects", "expected"),
    [
        pytest.param([1], [(4,), (4,)], id="who must be near goes along"),
        pytest.param([0, 1], [(0,), (1,)], id="who is selected itself may be first"),
        pytest.param([], [(0,), (1,)], id="nobody must be near"),
    ],
)
def test_pods_that_must_be_near_go_elsewhere_together(selects: list[int], expected: list[tuple[int, ...]]) -> None:
    rules = [Affinity(domain=HOST, subjects=[0], selects=selects)] if selects else []
    draft = Draft(books_of(problem(1, 1, rules=rules, edges=[(0, 1)], on=nodes([1, 1, 0, 0, 2, 2, 2, 2]))))
    finish(fill_slices(draft, UNLIMITED, (0,), [(0, 1)]))
    assert state_of(draft.books) == expected


@pytest.mark.parametrize(
    ("cpu", "home"),
    [
        pytest.param([1, 1, 1, 3, 1, 1, 1, 1], (3,), id="the one with room"),
        pytest.param(2, (), id="none has room for all"),
    ],
)
def test_fill_node(cpu: int | list[int], home: tuple[int, ...]) -> None:
    draft = Draft(books_of(problem(1, 1, 1, on=nodes(cpu))))
    finish(fill_node(draft, UNLIMITED, [0, 1, 2]))
    assert state_of(draft.books) == [home] * 3

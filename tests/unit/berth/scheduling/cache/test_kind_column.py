"""Numbers of nodes' kinds, renewed for nodes that changed alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.cache import kind_column
from berth.scheduling.cache.kind_column import MOST_TOUCHED, SPARE, KindColumn


class World:
    def __init__(self) -> None:
        self.letters: dict[str, str] = {}
        self.index: dict[str, int] = {}
        self.asked: list[str] = []
        self.column: KindColumn[str] = KindColumn(self.kind_of, "rest")

    def kind_of(self, node: str) -> str:
        self.asked.append(node)
        return self.letters.get(node, "rest")

    def put(self, node: str, slot: int, letter: str) -> None:
        self.index[node], self.letters[node] = slot, letter
        self.column.touch(node)

    def read(self, size: int) -> list[str]:
        ids = self.column.ids(self.index, size)
        return [self.column.kinds[number] for number in ids.tolist()]


def test_only_nodes_that_were_touched_are_asked_again() -> None:
    world = World()
    world.put("n1", 0, "x")
    world.put("n2", 1, "y")
    assert world.read(3) == ["x", "y", "rest"]
    world.asked.clear()
    world.put("n2", 1, "x")
    assert world.read(3) == ["x", "x", "rest"]
    assert world.asked == ["n2"]


def test_a_slot_that_another_node_has_now_is_of_its_kind() -> None:
    world = World()
    world.put("n1", 0, "x")
    world.read(1)
    del world.index["n1"]
    world.column.touch("n1")
    world.put("n2", 0, "y")
    assert world.read(1) == ["y"]


def test_a_kind_is_used_while_a_slot_has_it() -> None:
    world = World()
    for number in range(200):
        world.put(f"n{number % 3}", number % 3, f"kind-{number // 2}")
        read = world.read(5)
        used = {kind for kind, there in zip(world.column.kinds, world.column.used.tolist(), strict=True) if there}
        assert used == {*read, "rest"}
    assert world.column.numbering >= 1


def test_kinds_without_nodes_are_forgotten_in_the_end() -> None:
    world = World()
    for number in range(3 * SPARE):
        world.put("n1", 0, f"kind-{number}")
        assert world.read(1) == [f"kind-{number}"]
    assert len(world.column.kinds) <= 2 + SPARE + 1
    assert world.column.numbering >= 1


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abc")), max_size=40))
def test_it_says_what_all_nodes_asked_anew_would(changes: list[tuple[int, str]]) -> None:
    world = World()
    for slot, letter in changes:
        world.put(f"n{slot}", slot, letter)
        known = [world.letters.get(f"n{number}", "rest") for number in range(6)]
        assert world.read(6) == known


def test_names_that_come_and_go_are_not_kept_and_no_change_is_lost() -> None:
    world = World()
    world.put("n1", 0, "a")
    world.put("n2", 1, "b")
    assert world.read(2) == ["a", "b"]
    world.put("n1", 0, "c")
    for number in range(2 * MOST_TOUCHED):
        world.column.touch(f"gone-{number}")
    world.put("n2", 1, "d")
    assert len(world.column._touched) <= MOST_TOUCHED
    assert world.read(2) == ["c", "d"]
    world.asked.clear()
    world.put("n1", 0, "e")
    assert world.read(2) == ["e", "d"]
    assert world.asked == ["n1"]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abc")), max_size=30),
    st.integers(0, 30),
    st.integers(0, 3),
)
def test_it_tells_which_slots_got_another_kind(changes: list[tuple[int, str]], first: int, most: int) -> None:
    world = World()
    before, since = world.read(6), world.column.changes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind_column, "MOST_CHANGED", most)
        for number, (slot, letter) in enumerate(changes):
            if number == first:
                before, since = world.read(6), world.column.changes
            world.put(f"n{slot}", slot, letter)
            now = world.read(6)
            told = world.column.changed(since)
            differing = {at for at, (one, other) in enumerate(zip(before, now, strict=True)) if one != other}
            assert told is None or differing <= set(told)
            assert told is not None or world.column.changes - since > most


def test_where_numbers_are_given_anew_or_slots_are_more_all_changed() -> None:
    world = World()
    world.read(2)
    since = world.column.changes
    for number in range(3 * SPARE):
        world.put("n1", 0, f"kind-{number}")
        world.read(2)
        if world.column.numbering:
            break
    assert world.column.changed(since) is None
    assert world.column.changed(world.column.changes) == []
    since = world.column.changes
    world.read(500)
    assert world.column.changed(since) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xyz"), st.booleans(), st.booleans()), max_size=40))
def test_what_became_of_a_kind_by_what_came_is_looked_up(changes: list[tuple[int, str, bool, bool]]) -> None:
    world = World()
    for slot, letter, alone, reads in changes:
        node = f"n{slot}"
        before = world.letters.get(node, "")
        world.index[node], world.letters[node] = slot, "".join(sorted(before + letter))
        world.column.touch(node, letter if alone and before else None)
        if reads:
            assert world.read(4) == [world.letters.get(f"n{number}", "rest") for number in range(4)]


def test_a_kind_that_became_another_is_not_asked_for_again() -> None:
    world = World()
    for number in range(3):
        world.put(f"n{number}", number, "x")
    world.read(3)
    world.asked.clear()
    for number in range(3):
        world.letters[f"n{number}"] = "xy"
        world.column.touch(f"n{number}", "y")
        assert world.read(3)[number] == "xy"
    assert world.asked == ["n0"]
    world.letters["n0"] = "xyyz"
    world.column.touch("n0", "y")
    world.column.touch("n0", "z")
    assert world.read(3)[0] == "xyyz"


def test_steps_that_are_remembered_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind_column, "STEPS", 3)
    world = World()
    world.put("n1", 0, "")
    for number in range(10):
        world.letters["n1"] += str(number)
        world.column.touch("n1", number)
        assert world.read(1) == [world.letters["n1"]]
        assert len(world.column._steps) <= 3

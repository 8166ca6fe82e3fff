"""Values of nodes by slot: those of their kinds, whatever changed, and worked out anew where that has to be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.cache import slot_values
from berth.scheduling.cache.kind_column import SPARE, KindColumn
from berth.scheduling.cache.slot_values import Floats, SlotValues

NODES = 5
EVERY = np.ones(NODES, dtype=np.bool_)


class World:
    """Nodes by slot, each of a kind that is a number; that is its value, where anybody knows it."""

    def __init__(self) -> None:
        self.kinds = dict.fromkeys(map(str, range(NODES)), 0)
        self.index = {name: slot for slot, name in enumerate(self.kinds)}
        self.column: KindColumn[int] = KindColumn(self.kinds.__getitem__, 0)
        self.values = SlotValues(self.column)
        self.unknown = set[int]()
        self.made = 0
        self.found: list[int] = []

    def put(self, slot: int, kind: int) -> None:
        self.kinds[str(slot)] = kind
        self.column.touch(str(slot))

    def find(self, number: int) -> float:
        self.found.append(self.column.kinds[number])
        return float(self.column.kinds[number])

    def read(self, who: str = "somebody", wanted: np.ndarray[tuple[int], np.dtype[np.bool_]] = EVERY) -> Floats:
        ids = self.column.ids(self.index, NODES)
        found = self.values.get(who, ids, wanted, self.find)
        if found is None:
            self.made += 1
            self.unknown -= {self.kinds[str(slot)] for slot in np.flatnonzero(wanted)}
            kinds = [np.nan if kind in self.unknown else float(kind) for kind in self.column.kinds]
            found = self.values.put(who, np.array(kinds), ids)
        return found


CHANGES = st.lists(
    st.tuples(
        st.integers(0, NODES - 1),
        st.integers(0, 9),
        st.booleans(),
        st.sampled_from("xy"),
        st.lists(st.booleans(), min_size=NODES, max_size=NODES),
    ),
    max_size=30,
)


@given(CHANGES, st.booleans())
def test_wanted_nodes_have_the_value_of_their_kind(
    changes: list[tuple[int, int, bool, str, list[bool]]], unknown: bool
) -> None:
    world = World()
    for slot, kind, asks, who, wanted in changes:
        world.put(slot, kind)
        if unknown:
            world.unknown.add(kind)
        if asks:
            found = world.read(who, np.array(wanted))
            for at in np.flatnonzero(wanted).tolist():
                assert found[at] == world.kinds[str(at)]


def test_values_of_known_kinds_are_looked_up_and_one_that_is_missing_is_found() -> None:
    world = World()
    world.read()
    for kind in (1, 2):
        world.put(0, kind)
        assert world.read()[0] == kind
    assert world.found == [1, 2]
    for slot, kind in ((1, 2), (2, 1), (0, 0), (1, 1)):
        world.put(slot, kind)
        assert world.read().tolist() == list(world.kinds.values())
    assert world.found == [1, 2]
    assert world.made == 1


def test_where_several_are_missing_all_are_worked_out_at_once() -> None:
    world = World()
    world.read()
    for slot in (1, 2):
        world.put(slot, 3)
    assert world.read().tolist() == [0.0, 3.0, 3.0, 0.0, 0.0]
    assert (world.found, world.made) == ([3], 1)
    for slot, kind in ((1, 4), (2, 5)):
        world.put(slot, kind)
    assert world.read().tolist() == [0.0, 4.0, 5.0, 0.0, 0.0]
    assert (world.found, world.made) == ([3], 2)


def test_what_could_not_be_found_is_looked_for_again() -> None:
    world = World()
    world.read()
    world.put(1, 3)
    ids = world.column.ids(world.index, NODES)
    with pytest.raises(IndexError):
        world.values.get("somebody", ids, EVERY, list[float]().__getitem__)
    assert world.read().tolist() == [0.0, 3.0, 0.0, 0.0, 0.0]


def test_a_node_whose_kind_nobody_knows_does_not_matter_until_it_is_wanted() -> None:
    world, others = World(), EVERY.copy()
    others[4] = False
    world.read()
    world.unknown.add(7)
    world.put(4, 7)
    for _ in range(2):
        assert world.read(wanted=others).tolist()[:4] == [0.0] * 4
    assert (world.found, world.made) == ([], 1)
    assert world.read().tolist() == [0.0] * 4 + [7.0]
    assert world.made == 2


def test_everybody_has_values_of_his_own_until_all_are_forgotten() -> None:
    world = World()
    one, other = world.read("x"), world.read("y")
    assert one is not other
    assert world.read("x") is one
    for found in (one, world.read("z")):
        with pytest.raises(ValueError, match="read-only"):
            found[0] = 1.0
    world.values.clear()
    assert world.read("x") is not one


def test_new_numbers_are_new_kinds_and_more_slots_more_values() -> None:
    world = World()
    for kind in range(1, 3 * SPARE):
        world.put(0, kind)
        assert world.read()[0] == kind
    assert world.column.numbering
    ids = world.column.ids(world.index, NODES + 100)
    assert world.values.get("somebody", ids, np.ones(NODES + 100, dtype=np.bool_), world.find) is None


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_values, "KEPT", 3 * NODES)
    world = World()
    for number in range(10):
        assert world.read(f"number {number}").tolist() == [0.0] * NODES
        assert len(world.values._kept) <= 3

"""Heaps whose items go out of date: their order is that of what is good, and what is not takes no room for ever."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling import heaps
from berth.scheduling.heaps import STALE, LazyHeap, NamespaceHeaps

Item = tuple[int, str]


class Values:
    """Numbers by name, which rise and go; a heap of them has the least first."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.heap: LazyHeap[Item] = LazyHeap(self.current, lambda: len(self.values))
        self.by_namespace: NamespaceHeaps[Item] = NamespaceHeaps(
            self.current, lambda namespace: len(self.of(namespace)), lambda _, item: item
        )

    def current(self, item: Item) -> Item | None:
        value = self.values.get(item[1])
        return None if value is None or value < item[0] else (value, item[1])

    def of(self, namespace: str) -> list[Item]:
        return [(value, name) for name, value in self.values.items() if name[0] == namespace]

    def set(self, name: str, value: int) -> None:
        """A value that rises needs no push."""
        rises = self.values.get(name, value + 1) <= value
        self.values[name] = value
        if not rises:
            self.heap.push((value, name))
            self.by_namespace.push(name[0], (value, name))

    def remove(self, name: str) -> None:
        self.values.pop(name, None)
        if not self.of(name[0]):
            self.by_namespace.drop(name[0])

    def least(self, held: Collection[str] = "") -> Item | None:
        return min(((value, name) for name, value in self.values.items() if name[0] not in held), default=None)


NAMES = st.sampled_from([f"{namespace}{number}" for namespace in "abcd" for number in range(3)])
STEPS = st.lists(st.tuples(NAMES, st.one_of(st.none(), st.integers(0, 9))), max_size=60)


@given(STEPS, st.sets(st.sampled_from("abcd")))
def test_the_least_is_first_whatever_rises_and_goes(steps: list[tuple[str, int | None]], held: set[str]) -> None:
    values = Values()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heaps, "STALE", 1)
        for name, value in steps:
            values.remove(name) if value is None else values.set(name, value)
            assert values.heap.first() == values.by_namespace.first() == values.least()
            assert values.by_namespace.first(held.__contains__) == values.least(held)


@given(st.lists(NAMES))
def test_items_are_popped_in_order(names: list[str]) -> None:
    values = Values()
    for number, name in enumerate(names):
        values.set(name, number * 7 % 5)
    popped = []
    while (item := values.heap.first()) is not None:
        values.heap.pop()
        popped.append(item)
        values.remove(item[1])
    assert popped == sorted(popped)
    assert {name for _, name in popped} == set(names)


def test_what_is_gone_takes_no_room_beneath_one_that_stays() -> None:
    values = Values()
    values.set("a0", 0)
    for number in range(1, 10 * STALE):
        values.set(f"b{number}", number)
        values.by_namespace.first("b".__contains__)
        values.remove(f"b{number}")
    assert len(values.heap._items) <= 2 * 1 + STALE
    assert len(values.by_namespace._namespaces._items) <= 2 * 1 + STALE
    assert set(values.by_namespace._items) == set(values.by_namespace._heads) == {"a"}


def test_a_namespace_whose_least_item_goes_again_and_again_takes_no_room() -> None:
    values = Values()
    values.set("a0", 0)
    values.set("b0", 9)
    for number in range(1, 10 * STALE):
        values.set(f"b{number}", 5)
        values.remove(f"b{number}")
        values.by_namespace.first("a".__contains__)
    assert len(values.by_namespace._items["b"]._items) <= 2 * 1 + STALE
    assert len(values.by_namespace._namespaces._items) <= 2 * 2 + STALE

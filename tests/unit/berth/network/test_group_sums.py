"""Sums over AppGroups, in whatever order these change."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from berth.network.group_sums import SumOverGroups
from berth.network.groups import GroupKey

GROUPS = [GroupKey("default", name) for name in "abc"]
AMOUNTS = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2**70), max_size=3)
CHANGES = st.lists(st.tuples(st.sampled_from(GROUPS), AMOUNTS, st.booleans()), max_size=20)


@given(CHANGES)
def test_the_total_is_that_of_what_groups_take_now(changes: list[tuple[GroupKey, dict[str, int], bool]]) -> None:
    now: dict[GroupKey, Counter[str]] = {}
    sums = SumOverGroups[str](lambda key: Counter(now.get(key, {})))
    for key, amounts, ask in changes:
        now[key] = Counter(amounts)
        sums.note(key, calls=bool(amounts))
        if ask:
            sums.total()
    expected: Counter[str] = Counter()
    for amounts_of in now.values():
        expected.update(amounts_of)
    assert sums.total() == {key: amount for key, amount in expected.items() if amount}


def test_groups_that_take_nothing_are_not_looked_at() -> None:
    asked: list[GroupKey] = []
    sums = SumOverGroups[str](lambda key: asked.append(key) or Counter({"x": 1}))
    sums.note(GROUPS[0], calls=False)
    sums.note(GROUPS[1], calls=True)
    sums.note(GROUPS[1], calls=False)
    assert sums.total() == {}
    assert asked == []

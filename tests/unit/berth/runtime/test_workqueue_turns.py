"""Whose key is next: namespaces have turns, and none has all workers."""

from __future__ import annotations

from berth.runtime.workqueue import DueKeys


def initial(key: str) -> str:
    """The namespace of a key."""
    return key[0]


def test_namespaces_have_turns() -> None:
    keys: DueKeys[str] = DueKeys(initial)
    for key in ["a1", "a2", "a3", "b1", "b2", "c1"]:
        keys.add(key, 1.0)
    assert [keys.pop(1.0, 9) for _ in range(7)] == ["a1", "b1", "c1", "a2", "b2", "a3", None]


def test_what_comes_later_waits_for_a_turn_of_each_namespace() -> None:
    keys: DueKeys[str] = DueKeys(initial)
    for number in range(1000):
        keys.add(f"a{number}", 1.0)
    assert keys.pop(1.0, 9) == "a0"
    keys.add("b0", 2.0)
    assert [keys.pop(2.0, 9) for _ in range(3)] == ["a1", "b0", "a2"]


def test_a_namespace_with_its_share_at_work_has_no_turn_until_one_is_done() -> None:
    keys: DueKeys[str] = DueKeys(initial)
    for key in ["a1", "a2", "a3", "b1"]:
        keys.add(key, 1.0)
    assert [keys.pop(1.0, 2) for _ in range(4)] == ["a1", "b1", "a2", None]
    assert (keys.next_due(), len(keys)) == (None, 1)
    keys.done("b1")
    assert keys.pop(1.0, 2) is None
    keys.done("a2")
    assert keys.pop(1.0, 2) == "a3"


def test_an_earlier_time_for_a_key_that_is_due_changes_nothing() -> None:
    keys: DueKeys[str] = DueKeys(initial)
    keys.add("a1", 1.0)
    keys.add("a2", 2.0)
    assert keys.pop(2.0, 1) == "a1"
    keys.add("a2", 0.0)
    keys.done("a1")
    assert [keys.pop(2.0, 9) for _ in range(2)] == ["a2", None]
    assert len(keys) == 0

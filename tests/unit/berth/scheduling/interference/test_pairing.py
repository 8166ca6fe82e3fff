"""Which classes fit on a socket: the tables and rules of the source, and the socket for one more pod."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.pairing import (
    NEIGHBOURS,
    PairQuality,
    SocketChoice,
    choose_socket,
    pair_quality,
    rule_rank,
    victims,
    violations,
)

A, B, C, D = InterferenceClass
CLASSES = st.sampled_from(InterferenceClass)
SOCKETS = st.dictionaries(st.integers(0, 9), st.lists(CLASSES, max_size=4), max_size=6)


def classes(letters: str) -> list[InterferenceClass]:
    return [InterferenceClass(letter) for letter in letters]


@pytest.mark.parametrize(
    ("quality", "pairs"),
    [("best", "AB AD BB CC"), ("wasteful", "AA AC"), ("worst", "BC BD CD DD")],
)
def test_the_table_of_pairs(quality: str, pairs: str) -> None:
    for pair in pairs.split():
        one, other = classes(pair)
        assert pair_quality(one, other) == pair_quality(other, one) == quality


@pytest.mark.parametrize(("one", "other"), list(combinations_with_replacement(InterferenceClass, 2)))
def test_table_rules_and_meaning_of_the_classes_agree(one: InterferenceClass, other: InterferenceClass) -> None:
    worst = pair_quality(one, other) is PairQuality.WORST
    assert worst == (victims(one, other) > 0)
    assert worst == (other not in NEIGHBOURS[one]) == (one not in NEIGHBOURS[other])
    assert victims(one, other) == victims(other, one)


@pytest.mark.parametrize(
    ("pod", "in_order", "never"),
    [
        pytest.param("A", [["", "A", "B", "C", "D", "BD"]], "", id="A anywhere"),
        pytest.param("B", [[""], ["A", "AA"], ["B", "AB"]], "C D AC BD", id="B alone, with A, with B"),
        pytest.param("C", [[""], ["A"], ["C", "CA"]], "B D AB", id="C alone, with A, with C"),
        pytest.param("D", [[""], ["A", "AA"]], "B C D AB", id="D alone, with A"),
    ],
)
def test_the_rules_in_order(pod: str, in_order: list[list[str]], never: str) -> None:
    newcomer = InterferenceClass(pod)
    ranks = [[rule_rank(newcomer, classes(residents)) for residents in together] for together in in_order]
    assert ranks == [[rank] * len(together) for rank, together in enumerate(in_order)]
    assert all(rule_rank(newcomer, classes(residents)) is None for residents in never.split())


@pytest.mark.parametrize(
    ("pod", "sockets", "choice"),
    [
        pytest.param("B", ["A", "", "B"], (1, True), id="B rather alone"),
        pytest.param("B", ["B", "A", "C"], (1, True), id="than with A"),
        pytest.param("B", ["C", "B", "D"], (1, True), id="than with B"),
        pytest.param("C", ["B", "C", "D"], (1, True), id="C with C"),
        pytest.param("D", ["B", "C", "A"], (2, True), id="D with A"),
        pytest.param("D", ["D", "B"], (1, False), id="D where one suffers, not two"),
        pytest.param("B", ["CC", "C"], (1, False), id="B beside one that hurts it, not two"),
        pytest.param("C", ["DB", "D", "BB"], (1, False), id="C where one suffers"),
        pytest.param("A", ["A", "C", "D"], (2, True), id="A where it is needed"),
        pytest.param("A", ["BD", "D"], (1, True), id="A where there is more room"),
        pytest.param("A", ["", ""], (0, True), id="the first of equals"),
    ],
)
def test_the_socket_of_one_more_pod(pod: str, sockets: list[str], choice: tuple[int, bool]) -> None:
    found = choose_socket(InterferenceClass(pod), {number: classes(each) for number, each in enumerate(sockets)})
    assert found == SocketChoice(*choice)


def test_without_sockets_there_is_no_choice() -> None:
    assert choose_socket(A, {}) is None


@pytest.mark.parametrize(
    ("residents", "count"),
    [("", 0), ("D", 0), ("AABB", 0), ("AD", 0), ("CC", 0), ("BC", 1), ("DD", 1), ("DDD", 3), ("ABCD", 3)],
)
def test_violations(residents: str, count: int) -> None:
    assert violations(classes(residents)) == count


@given(newcomer=CLASSES, sockets=SOCKETS)
def test_a_rule_is_broken_only_where_all_sockets_break_one_and_then_for_the_fewest(
    newcomer: InterferenceClass, sockets: dict[int, list[InterferenceClass]]
) -> None:
    choice = choose_socket(newcomer, sockets)
    if choice is None:
        assert not sockets
        return
    added = {number: violations([*each, newcomer]) - violations(each) for number, each in sockets.items()}
    assert choice.by_rule == (0 in added.values()) == (added[choice.socket] == 0)
    suffering = {number: sum(victims(newcomer, each) for each in own) for number, own in sockets.items()}
    assert suffering[choice.socket] == min(suffering.values())

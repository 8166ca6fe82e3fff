"""What newcomers cost on kinds of nodes: each pairing is worked out once, a few of them for one pod."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference import node_costs
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.node_costs import EFFORT, EXACT, NodeCosts, alike, effort
from berth.scheduling.interference.residents import EMPTY_KIND, Kind, Layout, Resident
from berth.scheduling.interference.slowdown import SlowdownModel, Workload

LETTERS = [Workload("", letter) for letter in InterferenceClass]
A, B, C, D = (Resident(each, 1000) for each in LETTERS)
OTHER_A, OTHER_B, OTHER_C, OTHER_D = (Resident(Workload(f"shop/{each}", each), 1000) for each in InterferenceClass)
"""Pods that are not known by their class alone."""
TWO = Layout((4000, 4000), True)
PODS = st.lists(st.sampled_from([A, B, C, D]), max_size=5)


def kind(*residents: Resident, layout: Layout = TWO) -> Kind:
    return Kind(layout, tuple(sorted(residents)))


def costs() -> NodeCosts:
    return NodeCosts(LeastSlowdown(SlowdownModel(), LETTERS))


def harm_of(of: Kind) -> object:
    judge, pods = LeastSlowdown(SlowdownModel(), LETTERS), [pod.workload for pod in of.residents]
    found = judge.pairing(pods, [pod.size for pod in of.residents], of.layout.capacities) if of.layout.pinned else None
    sizes = [pod.size for pod in of.residents]
    return pytest.approx(judge.unpinned(pods, sizes, of.layout.capacities) if found is None else found.cost)


def added(judge: NodeCosts, newcomer: Resident, *kinds: Kind) -> list[float]:
    ids = np.arange(len(kinds), dtype=np.int32)
    every = np.ones(len(kinds), dtype=np.bool_)
    found: list[float] = judge.added(newcomer, ids, kinds, every, every).tolist()
    return found


@given(PODS, st.sampled_from([A, B, C, D]))
def test_it_is_what_the_best_pairings_differ_by(residents: list[Resident], newcomer: Resident) -> None:
    judge, own = LeastSlowdown(SlowdownModel(), LETTERS), costs()
    expected = judge.added_harm(
        newcomer.workload, 1000, [pod.workload for pod in residents], [1000] * len(residents), TWO.capacities
    )
    assert expected is not None
    assert added(own, newcomer, kind(*residents)) == [pytest.approx(max(0.0, expected))]


@pytest.mark.parametrize("sockets", [1, 2, 4, 8])
@pytest.mark.parametrize("newcomer", [B, C, D], ids=["B", "C", "D"])
def test_where_nobody_pins_an_empty_node_is_no_dearer_than_one_where_somebody_suffers(
    newcomer: Resident, sockets: int
) -> None:
    nobody_pins = Layout((4000,) * sockets, False)
    empty, taken = added(costs(), newcomer, kind(layout=nobody_pins), kind(D, layout=nobody_pins))
    assert 0 < empty < taken


@given(st.lists(PODS, min_size=1, max_size=4), st.sampled_from([A, B, C, D]), st.integers(0, 3))
def test_of_one_kind_alone_it_is_the_same(residents: list[list[Resident]], newcomer: Resident, at: int) -> None:
    own, kinds = costs(), [kind(*each) for each in residents]
    number = at % len(kinds)
    alone = own.added_to(newcomer, number, kinds)
    looked_at = own.looked_at
    assert (
        alone.tolist() == own.added_to(newcomer, number, kinds).tolist() == [added(costs(), newcomer, *kinds)[number]]
    )
    assert own.looked_at == looked_at
    assert added(own, newcomer, *kinds)[number] == alone[0]


def test_it_says_whether_some_were_guessed() -> None:
    judge = costs()
    kinds = [
        kind(*[OTHER_A] * (number % 3), *[OTHER_D] * 2, layout=Layout((3000 + number,) * 8, True))
        for number in range(60)
    ]
    added(judge, OTHER_D, *kinds)
    assert judge.guessed
    for _ in kinds:
        added(judge, OTHER_D, *kinds)
    assert not judge.guessed


def test_equal_nodes_are_judged_once() -> None:
    judge = costs()
    ids = np.zeros(5000, dtype=np.int32)
    values = judge.added(D, ids, [kind(A)], np.ones(5000, dtype=np.bool_), np.ones(1, dtype=np.bool_))
    assert len(values) == 1
    looked_at = judge.looked_at
    judge.added(D, ids, [kind(A)], np.ones(5000, dtype=np.bool_), np.ones(1, dtype=np.bool_))
    assert judge.looked_at == looked_at == 2  # with and without the newcomer


def test_nodes_that_do_not_matter_are_not_judged() -> None:
    judge = costs()
    ids, both = np.array([0, 1], dtype=np.int32), np.ones(2, dtype=np.bool_)
    judge.added(D, ids, [kind(A), kind(B)], np.array([False, True]), both)
    judge.added(D, ids, [kind(A), kind(B)], both, np.array([False, True]))
    assert judge.looked_at == 2


def test_what_was_worked_out_for_one_is_the_others_pairing_later() -> None:
    judge = costs()
    added(judge, D, kind(A))
    before = judge.looked_at
    judge.cost(kind(A, D))
    assert judge.looked_at == before


def test_what_pods_take_does_not_matter_while_they_fit_anywhere() -> None:
    small, large = Resident(LETTERS[0], 100), Resident(LETTERS[0], 3000)
    assert alike(kind(small)) == alike(kind(Resident(LETTERS[0], 200)))
    assert alike(kind(large, large)) == kind(large, large)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param(Layout((8000,) * 2, True), Layout((16_000,) * 2, True), True, id="larger sockets"),
        pytest.param(Layout((8000,) * 2, True), Layout((8000,) * 8, True), True, id="more sockets than pods"),
        pytest.param(Layout((8000,), True), Layout((8000,) * 2, True), False, id="fewer sockets than pods"),
        pytest.param(Layout((8000,) * 2, False), Layout((8000,) * 8, False), False, id="nobody pins"),
        pytest.param(Layout((8000,) * 2, True), Layout((8000,) * 2, False), False, id="pinned or not"),
        pytest.param(Layout((8000,) * 2, True), Layout((8000, 1000), True), False, id="not on any socket"),
    ],
)
def test_nodes_where_pods_get_on_alike_are_judged_once(one: Layout, other: Layout, same: bool) -> None:
    first, second = kind(A, D, layout=one), kind(A, D, layout=other)
    assert (alike(first) == alike(second)) is same
    judge = costs()
    assert judge.cost(first) == harm_of(first)
    assert judge.cost(second) == harm_of(second)
    assert judge.looked_at == 2 - same


def test_many_kinds_are_looked_at_a_few_a_pod_and_the_others_count_as_the_dearest() -> None:
    judge = costs()
    layouts = [Layout((4_000 + more,) * 8, True) for more in range(8)]
    kinds = [Kind(each, tuple(sorted([OTHER_A] * a + [OTHER_D] * (5 - a)))) for each in layouts for a in range(6)] + [
        kind()
    ]
    assert sum(map(effort, kinds)) > EFFORT
    first = added(judge, OTHER_D, *kinds)
    assert first[-1] == pytest.approx(judge.cost(kind(OTHER_D)))  # the fewest pods come first
    unknown = first.count(max(first))
    for _ in kinds:
        last = added(judge, OTHER_D, *kinds)
    assert last.count(max(last)) < unknown
    assert added(costs(), OTHER_D, kinds[3]) == [pytest.approx(last[3])]


@given(
    st.lists(st.tuples(st.sampled_from(LETTERS), st.integers(0, 2500)), min_size=1, max_size=EXACT),
    st.lists(st.integers(1000, 6000), min_size=1, max_size=4),
    st.integers(1, 3),
)
def test_by_class_alone_it_is_the_best_pairing_too(
    pods: list[tuple[Workload, int]], capacities: list[int], caches: int
) -> None:
    several = (caches,) * len(capacities) if caches > 1 else ()
    of = kind(*(Resident(*each) for each in pods), layout=Layout(tuple(capacities), True, several))
    judge, sizes = LeastSlowdown(SlowdownModel(), LETTERS), [each.size for each in of.residents]
    best = judge.pairing([each.workload for each in of.residents], sizes, capacities, caches=several)
    own = costs()
    assert own.cost(of) == (pytest.approx(best.cost) if best else own.cost(of))
    assert own.at_most(of) >= own.cost(of) - 1e-9


@given(st.lists(st.sampled_from([A, B, C, D]), min_size=EXACT, max_size=20), st.sampled_from([2, 4, 8]))
def test_of_many_by_class_alone_no_more_is_worked_out_than_pods_that_are_there(
    residents: list[Resident], sockets: int
) -> None:
    judge, wide = costs(), Layout((40_000,) * sockets, True)
    judge.cost(kind(*residents, layout=wide))
    assert judge.looked_at == 1 + len(residents) - EXACT
    added(judge, residents[0], kind(*residents[1:], layout=wide))
    assert judge.looked_at <= 2 * (1 + len(residents) - EXACT)


def test_new_numbers_are_new_kinds() -> None:
    judge = costs()
    one = added(judge, D, kind(A))
    judge.renumbered()
    assert added(judge, D, kind(B)) != one


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        pytest.param(Layout((4000, 4000), False), [0.23 + 2.5], id="two sockets by chance"),
        pytest.param(EMPTY_KIND.layout, [2 * (0.23 + 2.5)], id="nobody knows the sockets"),
        pytest.param(Layout((1500,), True), [2 * (0.23 + 2.5)], id="they do not fit their socket"),
    ],
)
def test_where_nobody_pins_two_meet_by_chance(layout: Layout, expected: list[float]) -> None:
    judge = NodeCosts(LeastSlowdown(SlowdownModel()))
    assert added(judge, D, kind(D, layout=layout)) == [pytest.approx(value) for value in expected]
    assert judge._known(alike(kind(D, D, layout=layout))).pairing is None


@given(st.lists(st.sampled_from([OTHER_A, OTHER_B, OTHER_C, OTHER_D]), min_size=EXACT, max_size=EXACT + 6))
def test_pairings_of_many_hold_every_pod_once_and_fit(residents: list[Resident]) -> None:
    judge, there = costs(), kind(*residents[:-1])
    added(judge, residents[-1], there)
    found = judge._known(alike(there.with_one_more(residents[-1]))).pairing
    if len(residents) <= 8:
        assert found is not None
    if found is not None:
        assert sorted(number for group in found.sockets for number in group) == list(range(len(residents)))
        assert all(len(group) <= 4 for group in found.sockets)


def test_what_is_remembered_is_bounded_by_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_costs, "PAIRED_PODS", 500)
    judge, wide = costs(), Layout((400_000, 400_000), True)
    for pods in range(60):
        for letter in (A, B, C, D):
            judge.cost(kind(*[letter] * pods, layout=wide))
    assert sum(1 + len(each.residents) for each in judge._pairings) <= 500


@given(PODS)
def test_what_a_cost_takes_is_told_until_it_is_known(residents: list[Resident]) -> None:
    judge, of = costs(), kind(*residents)
    assert judge.takes(of) > 0
    cost = judge.cost(of)
    assert judge.takes(of) == 0
    assert cost >= 0


@given(PODS, st.sampled_from([TWO, Layout((2000,) * 3, True), Layout((9000,), True), Layout((4000, 4000), False)]))
def test_what_is_made_quickly_costs_no_less(residents: list[Resident], layout: Layout) -> None:
    judge, of = costs(), kind(*residents, layout=layout)
    at_most = judge.at_most(of)
    assert at_most >= judge.cost(of) - 1e-9
    assert judge.at_most(of) == judge.cost(of)

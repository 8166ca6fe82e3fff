"""Berth's own choice: the best pairing that a node would then have, a pod alone charged for its likely partner."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference import least_slowdown
from berth.scheduling.interference.assignment import EXACT_PODS
from berth.scheduling.interference.exchange import Seated, Terms, best_exchange
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.slowdown import PRICE, SlowdownModel, Workload
from tests.support.work import CALL, Work

A, B, C, D = (Workload("", letter) for letter in InterferenceClass)
MODEL = SlowdownModel()
PODS = st.lists(st.sampled_from([A, B, C, D]), max_size=4)


def choice(*likely: Workload) -> LeastSlowdown:
    return LeastSlowdown(MODEL, likely)


def added(judge: LeastSlowdown, pod: Workload, residents: list[Workload], room: int = 2) -> float | None:
    return judge.added_harm(pod, 1, residents, [1] * len(residents), [room, room])


def test_the_node_may_pair_its_pods_anew() -> None:
    # Whatever sockets they are on now, two D and two A end as D-A and D-A.
    found = choice(A, D).pairing([D, A, D, A], [1] * 4, [2, 2])
    assert found is not None
    assert [sum(pod % 2 for pod in group) for group in found.sockets] == [1, 1]
    assert found.cost == pytest.approx(2 * MODEL.harm([A, D]))


def test_a_d_goes_to_the_node_where_an_a_is_left_for_it() -> None:
    judge = choice(A, D)
    quiet, loud = added(judge, D, [A, A, D]), added(judge, D, [D, D, A])
    assert quiet is not None
    assert loud is not None
    assert quiet < loud


def test_a_pod_alone_is_charged_half_of_what_a_likely_partner_costs_both() -> None:
    assert added(choice(A, D), D, []) == pytest.approx((MODEL.harm([D, A]) + MODEL.harm([D, D])) / 4)


@pytest.mark.parametrize(
    ("judge", "more", "room"),
    [
        pytest.param(choice(), True, 2, id="nobody is likely to come"),
        pytest.param(choice(D), False, 2, id="nobody will come"),
        pytest.param(choice(D), True, 1, id="no room for a partner"),
    ],
)
def test_a_pod_alone_costs_nothing_where_no_partner_comes(judge: LeastSlowdown, more: bool, room: int) -> None:
    found = judge.pairing([D, D], [1, 1], [room, room], more=more)
    assert found is not None
    assert found.cost == 0


def test_a_full_node_takes_no_more() -> None:
    assert added(choice(), A, [A, A], room=1) is None


@given(PODS)
def test_the_order_of_the_pods_does_not_matter(pods: list[Workload]) -> None:
    judge = choice(A, B, C, D)
    one, other = (judge.pairing(order, [1] * len(pods), [2, 2]) for order in (pods, pods[::-1]))
    assert one is not None
    assert other is not None
    assert one.cost == pytest.approx(other.cost)


@given(PODS)
def test_damage_done_and_suffered_both_count(pods: list[Workload]) -> None:
    found = choice().pairing(pods, [1] * len(pods), [4])
    assert found is not None
    assert found.cost == pytest.approx(MODEL.harm(pods))


def test_two_that_are_as_dear_together_as_alone_are_kept_apart() -> None:
    found = choice(D).pairing([D, D], [1, 1], [2, 2])
    assert found is not None
    assert sorted(map(len, found.sockets)) == [1, 1]


@given(PODS.filter(len))
def test_of_many_all_are_placed_and_cost_no_less_than_the_best(pods: list[Workload]) -> None:
    judge, sizes = choice(A, B, C, D), [1] * len(pods)
    best, found = judge.pairing(pods, sizes, [4, 4]), judge.pairing_of_many(pods, sizes, [4, 4])
    assert best is not None
    assert found is not None
    assert sorted(number for group in found.sockets for number in group) == list(range(len(pods)))
    assert found.cost >= best.cost - 1e-9


SEATS = st.lists(
    st.tuples(st.sampled_from([A, B, C, D]), st.integers(1, 3), st.sampled_from([0, 1, 2, None])), max_size=5
)


@given(SEATS, st.tuples(*[st.integers(1, 9)] * 3))
def test_seats_are_those_that_cost_least_with_the_price_of_moves(
    there: list[tuple[Workload, int, int | None]], capacities: tuple[int, ...]
) -> None:
    pods, sizes, now = ([each[0] for each in there], [each[1] for each in there], [each[2] for each in there])

    def toll(places: Sequence[int]) -> float:
        groups = [[pod for pod, at in zip(pods, places, strict=True) if at == place] for place in range(3)]
        moved = sum(before not in (None, at) for before, at in zip(now, places, strict=True))
        return sum(map(MODEL.harm, groups)) + PRICE * moved

    def fits(places: Sequence[int]) -> bool:
        taken = [sum(size for size, at in zip(sizes, places, strict=True) if at == place) for place in range(3)]
        return all(each <= capacity for each, capacity in zip(taken, capacities, strict=True))

    found = choice(D).seats(pods, sizes, capacities, now)
    ways = [way for way in product(range(3), repeat=len(pods)) if fits(way)]
    if found is None:
        assert not ways
    else:
        assert fits(found)
        assert toll(found) == pytest.approx(min(map(toll, ways)))


@given(
    st.lists(st.tuples(st.sampled_from([A, B, C, D]), st.sampled_from([0, 1, 2])), min_size=9, max_size=14),
    st.sampled_from([A, B, C, D]),
)
def test_of_many_too_no_exchange_is_worth_its_price_where_one_more_has_come(
    there: list[tuple[Workload, int]], newcomer: Workload
) -> None:
    pods, now = [*(pod for pod, _ in there), newcomer], [*(at for _, at in there), None]
    found = choice(D).seats(pods, [1] * len(pods), [14] * 3, now)
    assert found is not None
    seated = [Seated(pod, 1, at) for pod, at in zip(pods, found, strict=True)]
    terms = Terms(cool_down=timedelta(0))
    assert best_exchange(seated, [14] * 3, MODEL, terms, datetime(2026, 1, 31, tzinfo=UTC)) is None


@given(st.lists(st.tuples(st.sampled_from([A, B, C, D]), st.sampled_from([0, 1, 2])), min_size=6, max_size=14))
def test_settled_are_those_whom_seats_leave_where_they_are(there: list[tuple[Workload, int]]) -> None:
    judge, pods, now = choice(D), [pod for pod, _ in there], [at for _, at in there]
    groups = [[pod for pod, at in there if at == place] for place in range(3)]
    found = judge.seats(pods, [1] * len(pods), [14] * 3, now)
    if len(pods) <= EXACT_PODS:
        assert not judge.settled(groups)
    else:
        assert judge.settled(groups) <= (found == now)
        assert judge.settled([group[::-1] for group in groups[::-1]]) == judge.settled(groups)


def test_many_that_suffer_too_little_for_the_price_are_settled() -> None:
    groups = [[A, A, A, A, A], [B, A], [D, A]]
    assert choice().settled(groups)
    assert not choice().settled([[A, A, A, A], [D, D, D], [A, A]])


def test_where_many_leave_no_room_as_they_are_they_are_seated_anew() -> None:
    # 5, 1, 1 and 1 on each of both sockets of 9, and a newcomer of 2.
    sizes, now = [5, 1, 1, 1] * 2, [0] * 4 + [1] * 4
    found = choice().seats([A] * 10, [*sizes, 0, 2], [9, 9], [*now, 0, None])
    assert found is not None
    assert max(sum(size for size, at in zip([*sizes, 0, 2], found, strict=True) if at == n) for n in (0, 1)) <= 9
    assert choice().seats([A] * 10, [*sizes, 0, 3], [9, 9], [*now, 0, None]) is None


@pytest.mark.parametrize(
    ("pods", "sizes", "capacities", "expected"),
    [
        pytest.param([D, D], [1, 1], [2, 2], (2 * 2.73 + 2 * 0.065) / 2, id="together half of the time, or alone"),
        pytest.param([D, D], [2, 2], [2, 2], 0.0, id="no room for two on one"),
        pytest.param([D, D], [1, 1], [2], 2 * 2.73, id="one socket"),
        pytest.param([D, D], [1, 1], [], 2 * 2.73, id="nobody knows the sockets"),
        pytest.param([D], [1], [2, 2], 0.065, id="alone it expects an A"),
        pytest.param([D], [2], [2, 2], 0.0, id="nobody can come"),
        pytest.param([D], [3], [2, 2], 0.0, id="larger than a socket"),
        pytest.param([D], [3], [4, 4], 0.065, id="a smaller one can come"),
        pytest.param([D, D], [3, 3], [4, 4], 2 * 0.065, id="smaller ones can come beside both"),
        pytest.param([D, D], [2, 3], [3, 3], 0.065, id="one fills its socket"),
        pytest.param([], [], [2, 2], 0.0, id="nobody"),
        pytest.param([A, A, D, D], [1] * 4, [2, 2], (4 * 0.13 + 5.46 + 0.02) / 3, id="one of three others is near"),
    ],
)
def test_where_nobody_pins_pods_meet_by_chance(
    pods: list[Workload], sizes: list[int], capacities: list[int], expected: float
) -> None:
    assert choice(A).unpinned(pods, sizes, capacities) == pytest.approx(expected)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(least_slowdown, "REMEMBERED", 8)
    judge = LeastSlowdown(SlowdownModel(), [Workload("", InterferenceClass.D)])
    pods = [Workload(f"shop/w{number}", InterferenceClass.D) for number in range(40)]
    first = [judge.on_socket([pod], room=True) for pod in pods], [judge.on_socket([pod] * 2, room=True) for pod in pods]
    again = [judge.on_socket([pod], room=True) for pod in pods], [judge.on_socket([pod] * 2, room=True) for pod in pods]
    assert again == first
    assert len(judge._harm) <= 8
    assert len(judge._alone) <= 8


def test_the_best_pairing_of_few_pods_takes_little_work() -> None:
    judge, work = choice(A, B, C, D), Work()
    judge.pairing([A] * 8, [1] * 8, [8] * 8)  # what is the same for all pods is made once
    with work.counting():
        judge.pairing([A, B, C, D] * 2, [1] * 8, [8] * 8)
    assert work.seconds / CALL < 1000

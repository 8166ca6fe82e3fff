"""Berth's own choice: the best pairing that a node would then have, a pod alone charged for its likely partner."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference import least_slowdown
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.slowdown import SlowdownModel, Workload
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


def test_where_nobody_pins_two_meet_as_often_on_each_socket() -> None:
    judge = choice(A)
    assert judge.unpinned([D, D], 2) == pytest.approx(2 * (0.115 + 0.5))
    assert judge.unpinned([D, D], 1) == pytest.approx(MODEL.harm([D, D]))
    assert judge.unpinned([D], 2) == pytest.approx(judge.on_socket([D], room=True))


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

"""Exchanges of pods between sockets: they pay, they end, nobody is moved who is to stay.

Left out: whose pods may move at all (controllers/socketstatus).
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.closeness import closeness_of
from berth.scheduling.interference.exchange import Exchange, Seated, Terms, best_exchange, node_toll
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.pairing import NEIGHBOURS, rule_rank
from berth.scheduling.interference.slowdown import SlowdownModel, Workload, harm

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
BY_CLASS = SlowdownModel()
EVER = Terms(cool_down=timedelta(0))
A, B, C, D = InterferenceClass


def seat(letter: str, place: int, size: int = 0, **fields: object) -> Seated:
    return Seated(Workload("", InterferenceClass(letter)), size, place, **fields)  # type: ignore[arg-type]


def sockets(*groups: str) -> list[Seated]:
    return [seat(letter, place) for place, group in enumerate(groups) for letter in group]


def carried_out(pods: list[Seated], found: Exchange, now: datetime = NOW) -> list[Seated]:
    changed = list(pods)
    for at, place in found.moves:
        changed[at] = pods[at]._replace(place=place, since=now)
    return changed


def letters(pods: list[Seated], count: int) -> list[str]:
    return [
        "".join(sorted(pod.workload.interference_class for pod in pods if pod.place == place)) for place in range(count)
    ]


def settled(pods: list[Seated], capacities: list[int], model: SlowdownModel, terms: Terms = EVER) -> list[Seated]:
    while found := best_exchange(pods, capacities, model, terms, NOW):
        pods = carried_out(pods, found)
    return pods


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(["DD", ""], ["D", "D"], id="two that disturb each other, and an empty socket"),
        pytest.param(["DD", "AA"], ["AD", "AD"], id="each D beside an A"),
        pytest.param(["BC", "BC"], ["BB", "CC"], id="like beside like"),
        pytest.param(["BBB", ""], ["BB", "B"], id="three that suffer a little each"),
        pytest.param(["AD", ""], ["AD", ""], id="an A and a D are not worth a move"),
        pytest.param(["CC", ""], ["CC", ""], id="nor are two C"),
        pytest.param(["DD", "DD"], ["DD", "DD"], id="three are not sacrificed for one"),
        pytest.param(["DD", "B", ""], ["D", "B", "D"], id="rather an empty socket than a B"),
        pytest.param([""], [""], id="nobody"),
    ],
)
def test_what_becomes_of_sockets(before: list[str], after: list[str]) -> None:
    pods = settled(sockets(*before), [0] * len(before), BY_CLASS)
    assert sorted(letters(pods, len(before))) == sorted(after)


@pytest.mark.parametrize("letter", ["B", "C", "D"])
def test_by_classes_a_pod_that_moves_finds_sockets_in_the_order_of_the_rules(letter: str) -> None:
    newcomer = InterferenceClass(letter)
    for one, other in product([(), (A,), *[(each,) for each in InterferenceClass]], repeat=2):
        ranks = [rule_rank(newcomer, group) for group in (one, other)]
        if ranks[0] is None or ranks[1] is None or ranks[0] >= ranks[1]:
            continue
        groups = [Workload("", newcomer)], *([Workload("", each) for each in group] for group in (one, other))
        own, better, worse = (list(group) for group in groups)
        assert BY_CLASS.harm(better + own) - BY_CLASS.harm(better) < BY_CLASS.harm(worse + own) - BY_CLASS.harm(worse)
    assert NEIGHBOURS[newcomer][0] is A


@pytest.mark.parametrize(
    ("pods", "capacities"),
    [
        pytest.param([seat("D", 0, held=True), seat("D", 0, held=True)], [9, 9], id="held"),
        pytest.param([seat("D", 0, since=NOW), seat("D", 0, since=NOW - timedelta(minutes=4))], [9, 9], id="too early"),
        pytest.param(
            [seat("D", 0, since=NOW + timedelta(minutes=4)), seat("D", 0, held=True)], [9, 9], id="a clock ahead"
        ),
        pytest.param([seat("D", 0, 5), seat("D", 0, 4)], [9, 3], id="no room"),
        pytest.param([seat("D", 0, 5), seat("D", 0, 4), seat("A", 1, 1)], [9, 3], id="no room for an exchange"),
        pytest.param([seat("D", 0), seat("D", 0)], [9], id="one socket"),
    ],
)
def test_nobody_moves(pods: list[Seated], capacities: list[int]) -> None:
    assert best_exchange(pods, capacities, BY_CLASS, Terms(), NOW) is None


def test_of_two_that_disturb_each_other_the_one_moves_that_may() -> None:
    pods = [seat("D", 0, held=True), seat("D", 0, since=NOW - timedelta(minutes=5))]
    found = best_exchange(pods, [9, 9], BY_CLASS, Terms(), NOW)
    assert found is not None
    assert (found.moves, found.after) == (((1, 1),), (0.0, 0.0))


def test_a_socket_that_holds_more_than_it_has_may_become_smaller() -> None:
    pods = [seat("D", 0, 5), seat("D", 0, 4), seat("D", 0, 3)]
    found = best_exchange(pods, [4, 5], BY_CLASS, EVER, NOW)
    assert found is not None
    assert {place for _, place in found.moves} == {1}


@pytest.mark.parametrize(("price", "moves"), [(2.7, 1), (5.5, 0)])
def test_what_does_not_earn_its_price_stays(price: float, moves: int) -> None:
    found = best_exchange(sockets("DD", ""), [9, 9], BY_CLASS, Terms(price, timedelta(0)), NOW)
    assert len(found.moves if found else ()) == moves


def test_a_measured_pair_counts_as_it_was_measured() -> None:
    table = {"shop/a": {"shop/b": 1.0}, "shop/b": {"shop/a": 1.0}}
    pods = [Seated(Workload(name, D), 0, 0) for name in ("shop/a", "shop/b")]
    assert best_exchange(pods, [9, 9], SlowdownModel(table), EVER, NOW) is None


@pytest.mark.parametrize(
    ("caches", "sizes", "moves"),
    [
        pytest.param([1, 1], [1, 1, 1], 1, id="two that disturb each other in one cache"),
        pytest.param([2, 1], [1, 1, 1], 1, id="to an empty socket even from different caches"),
        pytest.param([8, 8], [1, 1, 1], 1, id="a limit of 1.1 is broken across caches too"),
    ],
)
def test_across_caches_a_move_has_to_be_worth_its_price(caches: list[int], sizes: list[int], moves: int) -> None:
    pods = [seat(letter, 0, size) for letter, size in zip("DDA", sizes, strict=True)]
    found = best_exchange(pods, [9, 9], BY_CLASS, EVER, NOW, caches=caches)
    assert len(found.moves if found else ()) == moves


@pytest.mark.parametrize(("caches", "moves"), [([1, 1], 1), ([4, 1], 0)], ids=["near", "in caches of their own"])
def test_no_pod_leaves_others_in_other_caches_for_one_that_is_near(caches: list[int], moves: int) -> None:
    names = [f"shop/{letter}" for letter in "abcd"]
    model = SlowdownModel({one: {other: 1.09 for other in names if other != one} for one in names})
    pods = [Seated(Workload(name, D), 1, place) for name, place in zip(names, (0, 0, 0, 1), strict=True)]
    found = best_exchange(pods, [9, 9], model, EVER, NOW, caches=caches)
    assert len(found.moves if found else ()) == moves


CROWDS = st.lists(st.tuples(st.sampled_from("ABCD"), st.integers(0, 2), st.integers(0, 6)), min_size=1, max_size=6)


@given(CROWDS, *[st.lists(st.integers(least, 4), min_size=3, max_size=3) for least in (1, 0)])
def test_an_exchange_is_weighed_by_the_caches_and_cores_of_both_sockets(
    crowd: list[tuple[str, int, int]], caches: list[int], cores: list[int]
) -> None:
    pods, capacities = [seat(*each) for each in crowd], [12, 12, 12]
    found = best_exchange(pods, capacities, BY_CLASS, EVER, NOW, caches=caches, cores=cores)

    def harmed(pods: list[Seated]) -> float:
        total = 0.0
        for place, socket in enumerate(zip(capacities, caches, cores, strict=True)):
            there = [pod for pod in pods if pod.place == place]
            together = closeness_of([pod.size for pod in there], *socket)
            total += BY_CLASS.harm([pod.workload for pod in there], together=together)
        return total

    assert node_toll(pods, BY_CLASS, capacities, caches, cores).harm == pytest.approx(harmed(pods))
    if found is not None:
        won = found.before.harm - found.after.harm
        assert harmed(pods) - harmed(carried_out(pods, found)) == pytest.approx(won)
        assert won > EVER.price * len(found.moves)


def test_one_by_one_they_take_most_of_what_the_best_pairing_would() -> None:
    stays, exchanged, best = 0.0, 0.0, 0.0
    judge = LeastSlowdown(BY_CLASS)
    for seed in range(100):
        chance = random.Random(seed)
        pods = [seat(letter, 0, 1) for letter in chance.choices("ABCD", k=8)]
        found = judge.pairing([pod.workload for pod in pods], [1] * 8, [2] * 4, more=False)
        assert found is not None
        left = [pods[at]._replace(place=place) for place, group in enumerate(found.sockets) for at in group]
        del left[6], left[1]  # from the first socket and the last
        then = judge.pairing([pod.workload for pod in left], [1] * 6, [2] * 4, more=False)
        assert then is not None
        stays += node_toll(left, BY_CLASS).harm
        exchanged += node_toll(settled(left, [2] * 4, BY_CLASS), BY_CLASS).harm
        best += then.cost
    assert best < stays / 2
    assert exchanged < best + 0.25 * (stays - best)


# Invariants

names = [f"shop/{letter}" for letter in "abcdef"]
slowdown = st.floats(1.0, 2.0).map(lambda value: round(value, 3))
models = st.dictionaries(
    st.sampled_from(names), st.dictionaries(st.sampled_from(names), slowdown, min_size=1), max_size=6
).map(SlowdownModel)
seats = st.builds(
    Seated,
    st.builds(Workload, st.sampled_from(["", *names]), st.sampled_from(list(InterferenceClass))),
    st.integers(0, 4),
    st.integers(0, 2),
    st.none() | st.integers(0, 600).map(lambda seconds: NOW - timedelta(seconds=seconds)),
    st.booleans(),
)
nodes = st.tuples(st.lists(seats, max_size=9), st.lists(st.integers(0, 16), min_size=3, max_size=3), models)


def harm_of(pods: list[Seated], model: SlowdownModel) -> float:
    """Harm of a node, worked out pod by pod."""
    groups = [[pod.workload for pod in pods if pod.place == place] for place in range(3)]
    return sum(harm(round(value, 9)) for group in groups for value in model.slowdowns(group))


def excess_of(pods: list[Seated], model: SlowdownModel) -> float:
    """By how much the pods of a node are slower, worked out pod by pod."""
    groups = [[pod.workload for pod in pods if pod.place == place] for place in range(3)]
    return sum(value - 1 for group in groups for value in model.slowdowns(group))


def single_exchanges(pods: list[Seated], capacities: list[int], terms: Terms) -> list[list[Seated]]:
    """All nodes that one exchange may make of one."""
    free = [at for at, pod in enumerate(pods) if not pod.held and not terms.cooling(pod, NOW)]
    moved = [{at: place} for at in free for place in range(3) if place != pods[at].place]
    moved += [{at: pods[to].place, to: pods[at].place} for at in free for to in free if pods[at].place < pods[to].place]
    found = []
    for moves in moved:
        then = [pod._replace(place=moves.get(at, pod.place)) for at, pod in enumerate(pods)]
        taken = [[sum(pod.size for pod in each if pod.place == place) for place in range(3)] for each in (pods, then)]
        if all(now <= max(room, was) for was, now, room in zip(*taken, capacities, strict=True)):
            found.append(then)
    return found


@settings(deadline=None)
@given(nodes)
def test_it_is_the_best_of_all_single_exchanges(node: tuple[list[Seated], list[int], SlowdownModel]) -> None:
    pods, capacities, model = node
    terms = Terms()
    before = harm_of(pods, model)
    assert node_toll(pods, model) == pytest.approx((before, excess_of(pods, model)))
    gains = [
        before
        - harm_of(then, model)
        - terms.price * sum(one.place != other.place for one, other in zip(pods, then, strict=True))
        for then in single_exchanges(pods, capacities, terms)
        if excess_of(then, model) <= excess_of(pods, model) + 1e-9
    ]
    best = max(gains, default=0.0)
    found = best_exchange(pods, capacities, model, terms, NOW)
    if found is None:
        assert best <= 1e-6
    else:
        after = harm_of(carried_out(pods, found), model)
        assert before - after - terms.price * len(found.moves) == pytest.approx(best)
        assert found.before.harm - found.after.harm == pytest.approx(before - after)


@settings(deadline=None)
@given(nodes)
def test_each_exchange_takes_harm_away_and_they_end(node: tuple[list[Seated], list[int], SlowdownModel]) -> None:
    pods, capacities, model = node
    held = [(at, pod.place) for at, pod in enumerate(pods) if pod.held]
    before, slower = harm_of(pods, model), excess_of(pods, model)
    bound = int(before / EVER.price)
    count = 0
    while found := best_exchange(pods, capacities, model, EVER, NOW):
        pods = carried_out(pods, found)
        after = harm_of(pods, model)
        assert after <= before - EVER.price * len(found.moves) + 1e-6, "it earns its price"
        assert excess_of(pods, model) <= slower + 1e-6, "pods are no slower, taken together"
        slower = excess_of(pods, model)
        before, count = after, count + len(found.moves)
        assert count <= bound, "no more pods move than there was harm to take away"
    assert all(pods[at].place == place for at, place in held)


@settings(deadline=None)
@given(
    nodes,
    st.lists(st.tuples(st.integers(1, 200), st.none() | seats, st.none() | st.integers(0, 20)), max_size=12),
)
def test_nobody_moves_again_before_the_cool_down_whoever_comes_and_goes(
    node: tuple[list[Seated], list[int], SlowdownModel],
    steps: list[tuple[int, Seated | None, int | None]],
) -> None:
    pods, capacities, model = node
    terms, now = Terms(), NOW
    for seconds, newcomer, gone in steps:
        now += timedelta(seconds=seconds)
        if gone is not None and pods:
            del pods[gone % len(pods)]
        if newcomer is not None:
            pods.append(newcomer._replace(since=now))
        found = best_exchange(pods, capacities, model, terms, now)
        for at, place in found.moves if found else ():
            since = pods[at].since
            assert since is None or now - since >= terms.cool_down
            assert place != pods[at].place
            pods[at] = pods[at]._replace(place=place, since=now)

"""The socket of a pod that is assumed on a node, and what pods may expect there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.kube.objects import CustomObject
from berth.scheduling.cache.socket_choice import LIKELY, likely
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.interference.slowdown import PRICE, SlowdownModel, Workload
from tests.support import builders
from tests.support.seating import cache_of, place
from tests.support.sockets import classed, owned, status, workload_profile

LETTERS = st.lists(st.sampled_from("ABCD"), max_size=6)


def test_two_that_would_suffer_are_kept_apart() -> None:
    one, other = place(cache_of(status("n1")), "D", "D")
    assert {one, other} == {0, 1}


def test_those_that_are_there_move_where_the_best_pairing_asks_for_it() -> None:
    # A and A came first, each to a socket of its own or not: in the end each D has an A.
    sockets = place(cache_of(status("n1")), "A", "A", "D", "D")
    assert {sockets[2], sockets[3]} == {0, 1}
    assert {sockets[0], sockets[1]} == {0, 1}


def test_nobody_moves_for_a_pod_that_fits_as_they_are() -> None:
    cache = cache_of(status("n1"))
    before = place(cache, "D", "A")
    cache.assume(classed("late", "A"), "n1")
    seats = [cache.state.sockets.seat(f"pod-default-p{number}") for number in range(2)]
    assert [seat.socket for seat in seats if seat is not None] == before


@pytest.mark.parametrize(
    "sockets",
    [
        pytest.param(status("n1", true=["ObserveOnly"]), id="nobody pins there"),
        pytest.param(status("n1", true=["TopologyUnknown"]), id="sockets not known"),
        pytest.param(status("n2"), id="another node's"),
        pytest.param(status("n1", cpus=(2, 2)), id="too large for any socket"),
    ],
)
def test_no_socket_is_chosen_where_it_could_not_be_kept(sockets: CustomObject) -> None:
    assert place(cache_of(sockets), "D", cpu="3") == [None]


def test_a_socket_that_is_full_takes_no_more() -> None:
    sockets = place(cache_of(status("n1", cpus=(2, 8))), "A", "A", "A", "A", cpu="2")
    assert sorted(socket for socket in sockets if socket is not None) in ([0, 1, 1, 1], [1, 1, 1, 1])


@pytest.mark.parametrize(
    ("policy", "letters", "sockets"),
    [
        pytest.param(InterferencePolicy.OFF, "DD", [None, None], id="off"),
        pytest.param(InterferencePolicy.GREEDY, "ADDA", [0, 1, 0, 1], id="rules: D empty, then with A; A anywhere"),
        pytest.param(InterferencePolicy.SOCKET_BASED, "BCC", [0, 1, 1], id="rules: C with its like before a B"),
        pytest.param(InterferencePolicy.SPARING, "DDD", [0, 1, 0], id="rules: where the fewest suffer"),
    ],
)
def test_the_published_choices_go_by_the_pairing_rules(
    policy: InterferencePolicy, letters: str, sockets: list[int | None]
) -> None:
    assert place(cache_of(status("n1"), policy=policy), *letters) == sockets


def test_by_rules_too_a_full_socket_takes_no_more() -> None:
    cache = cache_of(status("n1", cpus=(1, 1)), policy=InterferencePolicy.GREEDY)
    assert place(cache, "A", "A", "A") == [0, 1, None]


@pytest.mark.parametrize(
    ("cpus", "bound", "expected"),
    [
        pytest.param([2, 2, 4], 0, [1, 1, 0], id="the largest first"),
        pytest.param([2, 2, 4], 1, [0, 0, 1], id="who is bound stays"),
        pytest.param([2, 2, 4], 2, [0, 1, None], id="two that are bound stay, and all as they are"),
        pytest.param([2, 2, 5], 0, [0, 1, None], id="one that fits nowhere changes nothing"),
        pytest.param([3, 1, 2], 0, [0, 1, 1], id="all have one"),
    ],
)
def test_pods_of_one_plan_choose_anew_where_one_has_no_socket(
    cpus: list[int], bound: int, expected: list[int | None]
) -> None:
    cache = cache_of(status("n1", cpus=(4, 4)), policy=InterferencePolicy.SOCKET_BASED)
    pods = [classed(f"p{number}", "B", cpu=str(size)) for number, size in enumerate(cpus)]
    for pod in pods:
        cache.assume(pod, "n1")
    uids = [pod.metadata.uid for pod in pods]
    cache.state.socket_choice.seat_together(uids[bound:], InterferencePolicy.SOCKET_BASED)
    seats = [cache.state.sockets.seat(uid) for uid in uids]
    assert [seat.socket for seat in seats if seat is not None] == expected


def test_pods_without_class_are_none_of_its_business() -> None:
    cache = cache_of(status("n1"))
    cache.assume(builders.pod("plain", spec={"schedulerName": "berth-scheduler"}, cpu="1"), "n1")
    assert cache.state.sockets.seats("n1") == {}
    assert cache.state.sockets.kinds.kinds == [cache.state.sockets.kinds.kinds[0]]


def test_what_is_forgotten_gives_its_place_back() -> None:
    cache = cache_of(status("n1"))
    pod = classed("p", "D")
    cache.assume(pod, "n1")
    cache.forget(pod)
    assert cache.state.sockets.seat(pod.metadata.uid) is None
    assert place(cache, "D") == [0]


@pytest.mark.parametrize("large", [False, True], ids=["all fit", "beside one that fits on no socket"])
@given(letters=LETTERS)
def test_sockets_are_those_where_all_that_are_there_suffer_least_after_the_price_of_moves(
    letters: list[str], large: bool
) -> None:
    cache = cache_of(status("n1", cpus=(4, 4)))
    sockets, model = cache.state.sockets, SlowdownModel()
    if large:
        cache.assume(classed("large", "C", cpu="5"), "n1")
    place(cache, *letters)
    before = {uid: seat.socket for uid, seat in sockets.seats("n1").items()}
    cache.assume(classed("late", "D"), "n1")
    there = [(uid, seat) for uid, seat in sockets.seats("n1").items() if seat.resident.size <= 4000]

    def toll(chosen: Sequence[int | None]) -> float:
        pairs = list(zip(there, chosen, strict=True))
        groups = [[seat.resident.workload for (_, seat), at in pairs if at == number] for number in (0, 1)]
        return sum(map(model.harm, groups)) + PRICE * sum(before.get(uid, at) != at for (uid, _), at in pairs)

    ways = [way for way in product((0, 1), repeat=len(there)) if max(way.count(0), way.count(1)) <= 4]
    assert toll([seat.socket for _, seat in there]) == pytest.approx(min(map(toll, ways)))


@given(letters=st.lists(st.sampled_from("ABCD"), min_size=1, max_size=3))
def test_one_that_no_socket_has_room_for_keeps_nobody_from_moving(letters: list[str]) -> None:
    """Of two sockets with 12 CPUs each has 5 left, and it asks for 6."""
    cache, model = cache_of(status("n1", cpus=(12, 12))), SlowdownModel()
    for name, letter, cpu in (("one", "B", "7"), ("other", "C", "7"), ("wide", "D", "6")):
        cache.assume(classed(name, letter, cpu=cpu), "n1")
    place(cache, *letters)
    before = {uid: seat.socket for uid, seat in cache.state.sockets.seats("n1").items()}
    cache.assume(classed("late", "D"), "n1")
    there = list(cache.state.sockets.seats("n1").items())

    def toll(chosen: Sequence[int | None]) -> float:
        pairs = list(zip(there, chosen, strict=True))
        groups = [[seat.resident for (_, seat), at in pairs if at == number] for number in (0, 1)]
        if any(sum(each.size for each in group) > 12_000 for group in groups):
            return inf
        harm = sum(model.harm([each.workload for each in group]) for group in groups)
        return harm + PRICE * sum(before.get(uid, at) != at for (uid, _), at in pairs)

    chosen = [seat.socket for _, seat in there]
    seated = [(0, 1) if at is not None else (None,) for at in chosen]
    assert chosen.count(None) == 1
    assert toll(chosen) == pytest.approx(min(map(toll, product(*seated))))


def test_no_socket_is_kept_empty_for_who_may_come() -> None:
    assert sorted(place(cache_of(status("n1", cpus=(8,) * 4)), "A", "D", "A", "B"), key=str) == [0, 1, 2, 3]


def test_what_a_pod_suffers_and_does() -> None:
    cache = cache_of(status("n1", cpus=(8,)))
    cache.update_profile(workload_profile("web", "B", slowdowns={"db": "1.4"}))
    cache.update_profile(workload_profile("db", "C", slowdowns={"web": "1.05"}))
    web, db = owned("web-1", "web"), owned("db-1", "db")
    for pod in (web, db):
        cache.assume(pod, "n1")
    found = cache.state.socket_choice.outlook(web.metadata.uid)
    assert found is not None
    assert (found.socket, found.suffered, found.caused) == (0, pytest.approx(1.4), pytest.approx(0.05))


@pytest.mark.parametrize(
    ("caches", "cpu", "suffered"),
    [
        pytest.param((), "1", 1.46, id="one cache"),
        pytest.param((4,), "1", 1.23, id="each has a cache of its own"),
        pytest.param((2,), "1", 1 + 0.46 * (0.5 + 0.5 / 3), id="of three two share one"),
        pytest.param((4,), "2.1", 1.46, id="pods that are too large for a cache"),
    ],
)
def test_across_caches_a_pod_suffers_half(caches: tuple[int, ...], cpu: str, suffered: float) -> None:
    cache = cache_of(status("n1", cpus=(8,), caches=caches))
    place(cache, "D", "D", "D", cpu=cpu)
    found = cache.state.socket_choice.outlook("pod-default-p0")
    assert found is not None
    assert found.suffered == pytest.approx(suffered)


@pytest.mark.parametrize(("caches", "expected"), [((), {0: 3, 1: 3}), ((1, 8), {0: 2, 1: 4})], ids=["one", "several"])
def test_a_socket_of_several_caches_takes_more_pods(caches: tuple[int, ...], expected: dict[int, int]) -> None:
    assert Counter(place(cache_of(status("n1", cpus=(16, 16), caches=caches)), *"AAAAAA")) == expected


@pytest.mark.parametrize(
    ("sockets", "suffered"),
    [
        pytest.param(status("n1"), 1.0, id="pinned apart"),
        pytest.param(status("n1", true=["ObserveOnly"]), 1.115, id="on one of two sockets by chance"),
        pytest.param(status("n1", cpus=(1, 1), true=["ObserveOnly"]), 1.0, id="each fills a socket"),
        pytest.param(status("n2"), 1.23, id="nobody knows the node's sockets"),
    ],
)
def test_without_pinning_two_meet_by_chance(sockets: CustomObject, suffered: float) -> None:
    cache = cache_of(sockets)
    place(cache, "D", "D")
    found = cache.state.socket_choice.outlook("pod-default-p0")
    assert found is not None
    assert found.suffered == pytest.approx(suffered)


def test_nothing_is_said_of_a_pod_without_class_or_without_sockets() -> None:
    cache = cache_of()
    place(cache, "D")
    assert cache.state.socket_choice.outlook("pod-default-p0") is None
    assert cache.state.socket_choice.outlook("nobody") is None


def test_likely_are_those_that_have_a_profile_or_each_class_once_and_those_that_are_there() -> None:
    web = Workload("default/web", InterferenceClass.B)
    nobody = likely(Counter(), [])
    assert [each.interference_class for each in nobody] == list("ABCD")
    assert likely(Counter({web: 2}), [web]) == [web, web, web]


def test_likely_are_not_many() -> None:
    many = {Workload(f"w{number}", InterferenceClass.A): 100 for number in range(8)}
    assert len(likely(Counter(many), [])) <= LIKELY + len(many) + 4


def test_nor_of_many_workloads_and_those_that_are_there_most_often_count() -> None:
    profiled = [Workload(f"ns/w{number:04}", InterferenceClass.A) for number in range(5000)]
    often = Workload("ns/w2500", InterferenceClass.A)
    present = Counter({**dict.fromkeys(profiled, 1), often: 5000})
    found = likely(present, profiled)
    assert len(found) <= 3 * LIKELY
    assert found.count(often) >= LIKELY / 2
    assert found == likely(Counter(dict(reversed(present.items()))), profiled)


def test_prices_of_lone_pods_follow_who_is_there() -> None:
    cache = cache_of(status("n1", cpus=(64,)))
    first = cache.state.socket_choice._current()
    place(cache, *"A" * 30)
    assert cache.state.socket_choice._current() is not first


@pytest.mark.parametrize(("letters", "anew"), [("ABCD" * 16, False), ("A" * 64, True)], ids=["as before", "others"])
def test_what_is_known_is_kept_while_about_the_same_pods_are_likely_to_come(letters: str, anew: bool) -> None:
    cache = cache_of(status("n1", cpus=(64,)))
    place(cache, *"ABCD" * 6)
    first = cache.state.socket_choice._current()
    for number, letter in enumerate(letters):
        cache.assume(classed(f"late-{number}", letter), "n1")
    assert (cache.state.socket_choice._current() is not first) is anew


def test_a_profile_that_changes_has_what_is_known_of_other_workloads_kept() -> None:
    cache = cache_of(status("n1", cpus=(64, 64)))
    for number in range(4):
        cache.update_profile(workload_profile(f"p{number}", "D"))
    place(cache, *"ABCD")
    costs = cache.state.socket_choice._current()
    kind = cache.state.sockets.kind_of("n1")
    costs.cost(kind)
    looked_at = costs.looked_at
    for times in range(1, 4):
        cache.update_profile(workload_profile("p0", "D", slowdowns={"p1": f"1.{times}"}))
        cache.state.socket_choice._current().cost(kind)
    assert cache.state.socket_choice._current() is costs
    assert costs.looked_at == looked_at


def test_prices_of_lone_pods_are_looked_at_again_when_as_many_profiles_have_changed_as_there_are() -> None:
    cache = cache_of(status("n1", cpus=(64,)))
    for number in range(4):
        cache.update_profile(workload_profile(f"p{number}", "D"))
    first = cache.state.socket_choice._current()
    for number in range(4):
        assert cache.state.socket_choice._current() is first
        cache.update_profile(workload_profile(f"p{number}", "A"))
    assert cache.state.socket_choice._current() is not first


NAMES = st.sampled_from(["a", "b", "c"])
CHANGES = st.lists(
    st.tuples(NAMES, NAMES, st.sampled_from("ABCD"), st.dictionaries(NAMES, st.sampled_from(["1.15", "1.3", "1.9"])))
    | st.tuples(NAMES, st.none(), st.none(), st.none()),
    max_size=12,
)


@given(CHANGES)
def test_what_is_remembered_is_what_profiles_say_now(
    changes: list[tuple[str, str | None, str | None, dict[str, str] | None]],
) -> None:
    cache = cache_of(status("n1", cpus=(64,)))
    for name in "abc":
        pod = owned(f"{name}-1", name, labels={"berth.dev/interference-class": "D"})
        cache.assume(pod, "n1")
    choice, sockets = cache.state.socket_choice, cache.state.sockets
    profiles: dict[str, tuple[str, dict[str, str]]] = {}
    for name, target, letter, slowdowns in changes:
        if target is None or letter is None or slowdowns is None:
            cache.delete_profile(workload_profile(name, "A"))
            profiles.pop(name, None)
        else:
            cache.update_profile(workload_profile(name, letter, target=target, slowdowns=slowdowns))
            profiles[name] = target, slowdowns
        counted = [min((each for each in profiles if profiles[each][0] == owner), default="") for owner in "abc"]
        table = {
            f"default/{each}": {f"default/{beside}": float(text) for beside, text in profiles[each][1].items()}
            for each in counted
            if each
        }
        fresh, group = SlowdownModel(table), [seat.resident.workload for seat in sockets.seats("n1").values()]
        assert [each.name for each in group] == [each and f"default/{each}" for each in counted]
        for pair in combinations(group, 2):
            assert choice._judge.on_socket(list(pair), room=False) == pytest.approx(fresh.harm(pair))

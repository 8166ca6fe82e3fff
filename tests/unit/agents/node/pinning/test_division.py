"""How pods on a socket are kept apart: each with a cache, and cores of their own for those that disturb each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.node.pinning import division
from agents.node.pinning.division import MOST_PARTED, Division, Part, Tenant, divide, divided_caches
from agents.node.topology.machine import CoreType, LastLevelCache, Machine
from berth.api.interference import InterferenceClass
from berth.scheduling.interference.pairing import victims
from tests.support.sysfs import uniform

SERVER = uniform(sockets=2, caches=4, cores=4, threads=2)
"""Sockets of four caches of four cores of two threads: 32 CPUs each."""
PLAIN = uniform(sockets=2, cores=8, threads=2)
"""Sockets of one cache."""


def tenant(uid: str, letter: str, requested: int = 1000, least: int | None = None) -> Tenant:
    return Tenant(uid, InterferenceClass(letter), requested, requested if least is None else least)


def tenants(letters: str, requested: int = 1000) -> list[Tenant]:
    return [tenant(f"p{number}", letter, requested) for number, letter in enumerate(letters)]


def divided(
    pods: Sequence[Tenant],
    machine: Machine = SERVER,
    division: Division = Division.CORES,
    before: dict[str, int] | None = None,
) -> dict[str, Part]:
    caches = divided_caches(machine, machine.sockets[0])
    had = {uid: caches[place] for uid, place in (before or {}).items()}
    return divide(machine, machine.sockets[0], pods, division, had)


def caches_of(parts: dict[str, Part]) -> list[int | None]:
    return [part.cache for part in parts.values()]


def suffering(pods: Sequence[Tenant], caches: Sequence[int | None]) -> int:
    pairs = combinations(zip(pods, caches, strict=True), 2)
    return sum(
        victims(one.interference_class, other.interference_class)
        for (one, here), (other, there) in pairs
        if here == there and here is not None
    )


@pytest.mark.parametrize(
    ("letters", "caches"),
    [
        pytest.param("DDDD", [0, 1, 2, 3], id="each has its own"),
        pytest.param("AAAA", [0, 1, 2, 3], id="those that disturb nobody too"),
        pytest.param("DDDDA", [0, 1, 2, 3, 0], id="a fifth goes where nobody suffers"),
        pytest.param("BCBCCB", [0, 1, 2, 3, 1, 0], id="like beside like"),
        pytest.param("BCAADD", [0, 1, 2, 3, 2, 3], id="a D beside an A"),
    ],
)
def test_pods_are_dealt_to_caches_by_the_pairing_rules(letters: str, caches: list[int]) -> None:
    parts = divided(tenants(letters))
    assert caches_of(parts) == caches
    machine_caches = divided_caches(SERVER, SERVER.sockets[0])
    assert all(part.cpus == machine_caches[part.cache or 0] for part in parts.values())


@pytest.mark.parametrize(
    ("machine", "count"),
    [
        pytest.param(SERVER, 4, id="several L3"),
        pytest.param(PLAIN, 0, id="one L3"),
        pytest.param(uniform(caches=4, cores=1, threads=2), 0, id="a core each"),
        pytest.param(uniform(dies=2, cores=2), 2, id="dies without SMT"),
        pytest.param(
            replace(
                SERVER,
                last_level_caches=tuple(
                    LastLevelCache(level=2, size_bytes=None, cpus=each.cpus) for each in SERVER.last_level_caches
                ),
            ),
            0,
            id="L2 are too small",
        ),
        pytest.param(
            replace(SERVER, core_types=(CoreType(name="atom", cpus=SERVER.online),)), 0, id="cores are not alike"
        ),
        pytest.param(
            replace(uniform(caches=2, cores=2, threads=2), cores=(frozenset({0, 2}), frozenset({1, 3, 4, 5, 6, 7}))),
            0,
            id="a core in two caches",
        ),
    ],
)
def test_where_a_socket_is_divided(machine: Machine, count: int) -> None:
    socket = machine.sockets[0]
    found = divided_caches(machine, socket)
    assert len(found) == count
    assert not count or frozenset[int]().union(*found) == socket.cpus


@pytest.mark.parametrize(
    ("division", "machine", "sizes"),
    [
        pytest.param(Division.SOCKET, SERVER, [32, 32], id="not at all"),
        pytest.param(Division.CACHES, SERVER, [8, 8], id="by caches"),
        pytest.param(Division.CACHES, PLAIN, [16, 16], id="by caches, of which there is one"),
        pytest.param(Division.CORES, PLAIN, [8, 8], id="by cores"),
        pytest.param(Division.CORES, uniform(cores=8), [8, 8], id="by cores that have no siblings"),
        pytest.param(
            Division.CORES,
            replace(PLAIN, core_types=(CoreType(name="atom", cpus=PLAIN.online),)),
            [16, 16],
            id="by cores that are not alike",
        ),
    ],
)
def test_how_far_a_socket_is_divided(division: Division, machine: Machine, sizes: list[int]) -> None:
    assert [len(part.cpus) for part in divided(tenants("DD"), machine, division).values()] == sizes


def test_those_that_disturb_each_other_in_a_cache_have_whole_cores_of_their_own() -> None:
    pods = [tenant("large", "D", 6000), tenant("small", "B", 2000), tenant("quiet", "A", 1000)]
    large, small, quiet = divided(pods, PLAIN).values()
    assert (len(large.cpus), len(small.cpus)) == (12, 4)
    assert not large.cpus & small.cpus
    assert quiet.cpus == PLAIN.sockets[0].cpus, "it disturbs nobody, and nobody disturbs it"
    for core in PLAIN.cores:
        assert core <= large.cpus or not core & large.cpus


@pytest.mark.parametrize(
    ("pods", "parted"),
    [
        pytest.param([tenant("a", "D", 0), tenant("b", "D", 0)], True, id="they request nothing"),
        pytest.param([tenant("a", "D", 1000, 8000), tenant("b", "D", 1000, 8000)], True, id="limits that fit"),
        pytest.param([tenant("a", "D", 1000, 9000), tenant("b", "D", 1000, 8000)], False, id="limits that do not"),
        pytest.param([tenant("a", "D"), tenant("b", "A")], False, id="nobody suffers"),
        pytest.param([tenant("a", "B"), tenant("b", "B")], False, id="two that suffer from nobody there"),
        pytest.param(tenants("D" * MOST_PARTED, 500), True, id="as many as are parted"),
        pytest.param(tenants("D" * (MOST_PARTED + 1), 500), False, id="too many"),
    ],
)
def test_when_cores_are_parted(pods: list[Tenant], parted: bool) -> None:
    found = divided(pods, PLAIN)
    assert (len({part.cpus for part in found.values()}) == len(pods)) == parted
    assert parted or {part.cpus for part in found.values()} == {PLAIN.sockets[0].cpus}


@pytest.mark.parametrize(
    "large",
    [
        pytest.param(tenant("large", "D", 9000), id="it requests more than a cache has"),
        pytest.param(tenant("large", "D", 1000, 9000), id="its limit is more"),
    ],
)
def test_a_pod_too_large_for_a_cache_has_all_of_the_socket(large: Tenant) -> None:
    found = divided([large, tenant("small", "D")])
    assert found["large"] == Part(None, SERVER.sockets[0].cpus)
    assert found["small"].cache == 0


def test_a_limit_that_no_part_can_have_keeps_no_others_from_being_parted() -> None:
    found = divided([tenant("a", "D"), tenant("large", "D", 1000, 17000), tenant("b", "D")], PLAIN)
    assert found["large"].cpus == PLAIN.sockets[0].cpus
    assert len(found["a"].cpus) == len(found["b"].cpus) == 8
    assert not found["a"].cpus & found["b"].cpus


def test_a_pod_for_which_no_cache_has_room_has_all_of_the_socket() -> None:
    found = divided([*tenants("AAAA", 6000), tenant("late", "A", 3000)])
    assert caches_of(found) == [0, 1, 2, 3, None]


def test_two_change_places_where_neither_has_room_to_move() -> None:
    machine = uniform(caches=2, cores=4)
    pods = [tenant(f"p{at}", letter, 2000) for at, letter in enumerate("DDAA")]
    parts = divided(pods, machine, before={"p0": 0, "p1": 0, "p2": 1, "p3": 1})
    assert suffering(pods, caches_of(parts)) == 0


def test_two_that_disturb_each_other_change_places_as_they_do_not_meet() -> None:
    pods = tenants("BCBC")
    parts = divided(pods, uniform(caches=2, cores=4), before={"p0": 0, "p1": 0, "p2": 1, "p3": 1})
    assert suffering(pods, caches_of(parts)) == 0


def test_pods_stay_in_their_caches_when_others_come_and_go() -> None:
    pods = tenants("DADABC")
    parts = divided(pods)
    kept = {uid: part.cache for uid, part in parts.items() if part.cache is not None}
    for gone in pods:
        left = [each for each in pods if each is not gone]
        again = divided(left, before=kept)
        assert {each.uid: again[each.uid].cache for each in left} == {each.uid: kept[each.uid] for each in left}
    more = divided([*pods, tenant("late", "A")], before=kept)
    assert kept.items() <= {uid: part.cache for uid, part in more.items()}.items()


def test_pods_change_caches_where_fewer_suffer_then() -> None:
    pods = tenants("DDAA")
    parts = divided(pods, uniform(caches=2, cores=4), before={"p0": 0, "p1": 0, "p2": 1, "p3": 1})
    assert suffering(pods, caches_of(parts)) == 0
    assert sorted(caches_of(parts), key=str) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("pods", "kept", "crowds"),
    [
        pytest.param(tenants("CCCCCC", 0), [0] * 6, [4, 2], id="others have left a cache"),
        pytest.param(tenants("CC", 0), [0] * 2, [2, 0], id="two are no crowd"),
        pytest.param(tenants("BBBBBBC", 0), [0] * 6 + [1], [6, 1], id="one that moves would suffer"),
        pytest.param([*tenants("CCCCCC", 100), tenant("a", "A", 7000)], [0] * 6 + [1], [6, 1], id="less room there"),
        pytest.param(tenants("C" * 100, 0), [0] * 100, [84, 16], id="no more at a time than change places"),
    ],
)
def test_a_crowd_spreads_to_caches_with_room_where_no_more_suffer(
    pods: list[Tenant], kept: list[int], crowds: list[int]
) -> None:
    before = {each.uid: place for each, place in zip(pods, kept, strict=True)}
    caches = caches_of(divided(pods, uniform(caches=2, cores=4, threads=2), before=before))
    assert [caches.count(place) for place in range(2)] == crowds


@pytest.mark.parametrize(
    ("had", "cache"),
    [
        pytest.param(set(), 0, id="none"),
        pytest.param({16, 17, 48}, 0, id="CPUs of another socket"),
        pytest.param({10**9}, 0, id="CPUs that no machine has"),
        pytest.param({9, 41}, 2, id="a core of a cache"),
        pytest.param({3, 8, 9}, 2, id="of two caches"),
        pytest.param({4, 5, 6, 7, 36, 37, 10**9}, 1, id="one that is offline by now"),
    ],
)
def test_a_pod_stays_in_the_cache_of_the_cpus_that_it_had(had: set[int], cache: int) -> None:
    assert caches_of(divide(SERVER, SERVER.sockets[0], tenants("D"), Division.CORES, {"p0": frozenset(had)})) == [cache]


def test_pods_stay_on_their_cpus_when_another_cache_goes_offline() -> None:
    pods = tenants("DADABC")
    before = divided(pods, division=Division.CACHES)
    first, *others = SERVER.last_level_caches
    fewer = replace(
        SERVER,
        sockets=(replace(SERVER.sockets[0], cpus=SERVER.sockets[0].cpus - first.cpus), SERVER.sockets[1]),
        last_level_caches=tuple(others),
        cores=tuple(core for core in SERVER.cores if not core & first.cpus),
    )
    had = {uid: part.cpus for uid, part in before.items()}
    after = divide(fewer, fewer.sockets[0], pods, Division.CACHES, had)
    staying = {uid: cpus for uid, cpus in had.items() if cpus != first.cpus}
    assert staying
    assert {uid: after[uid].cpus for uid in staying} == staying


def without(machine: Machine, *cpus: int) -> Machine:
    """The same with some CPUs offline."""
    gone = frozenset(cpus)
    return replace(
        machine,
        sockets=tuple(replace(each, cpus=each.cpus - gone) for each in machine.sockets),
        last_level_caches=tuple(replace(each, cpus=each.cpus - gone) for each in machine.last_level_caches),
        cores=tuple(core - gone for core in machine.cores if core - gone),
    )


@pytest.mark.parametrize(
    ("offline", "least", "parted"),
    [
        pytest.param([15], 1000, True, id="one sibling"),
        pytest.param([7, 15], 1000, True, id="a core"),
        pytest.param([15], 5000, False, id="too few for their limits where siblings are offline"),
        pytest.param(range(8, 16), 1000, False, id="all siblings"),
    ],
)
def test_cores_are_parted_where_some_siblings_are_offline(offline: list[int], least: int, parted: bool) -> None:
    pods = [tenant("a", "D", least), tenant("b", "D", least)]
    machine = without(uniform(cores=8, threads=2), *offline)
    one, other = (part.cpus for part in divided(pods, machine).values())
    assert (not one & other) == parted
    assert parted or one == other == machine.sockets[0].cpus
    assert min(len(one), len(other)) * 1000 >= least
    assert all(core <= one or not core & one for core in machine.cores)


def test_a_division_that_stays_weighs_few_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = uniform(caches=16, cores=8, threads=2)
    weighed: list[object] = []
    monkeypatch.setattr(division, "_gain", lambda *each: weighed.append(each) or 0)
    pods = tenants("DDDDDDDDDDDDDDDD" + "A" * 40, 100)
    caches = divided_caches(machine, machine.sockets[0])
    had = {each.uid: caches[at % 16] for at, each in enumerate(pods)}
    parts = divide(machine, machine.sockets[0], pods, Division.CORES, had)
    assert {uid: part.cpus for uid, part in parts.items()} == had
    assert not weighed, "nobody suffers"


CROWDS = st.lists(st.tuples(st.sampled_from("ABCD"), st.integers(0, 9), st.integers(0, 12)), max_size=14)
MACHINES = st.sampled_from([SERVER, PLAIN, uniform(caches=2, cores=2, threads=2), uniform(caches=3, cores=4)])


@given(CROWDS, MACHINES, st.sampled_from(Division), st.dictionaries(st.integers(0, 13), st.integers(0, 4)))
def test_what_holds_of_every_division(
    crowd: list[tuple[str, int, int]], machine: Machine, division: Division, before: dict[int, int]
) -> None:
    pods = [
        tenant(f"p{at}", letter, 1000 * asks, 1000 * max(asks, least)) for at, (letter, asks, least) in enumerate(crowd)
    ]
    socket, caches = machine.sockets[0], divided_caches(machine, machine.sockets[0])
    kept = {f"p{at}": (*caches, socket.cpus)[min(place, len(caches))] for at, place in before.items()}
    parts = divide(machine, socket, pods, division, kept)
    assert list(parts) == [each.uid for each in pods]
    for each in pods:
        part = parts[each.uid]
        area = socket.cpus if part.cache is None else caches[part.cache]
        assert part.cpus
        assert part.cpus <= area
        assert all(core <= part.cpus or not core & part.cpus for core in machine.cores), "siblings stay together"
        if part.cpus != socket.cpus:
            assert 1000 * len(part.cpus) >= each.least
    for place, cpus in enumerate(caches):
        there = [each for each in pods if parts[each.uid].cache == place]
        assert sum(each.requested for each in there) <= 1000 * len(cpus)
    for one, other in combinations(pods, 2):
        mine, theirs = parts[one.uid].cpus, parts[other.uid].cpus
        fight = victims(one.interference_class, other.interference_class) > 0
        assert mine == theirs or mine <= theirs or theirs <= mine or not mine & theirs
        if fight and len(mine) == len(theirs) < len(socket.cpus) and mine not in caches:
            assert not mine & theirs
    assert divide(machine, socket, pods, division, kept) == parts


@given(st.lists(st.sampled_from("ABCD"), max_size=7))
def test_no_move_and_no_exchange_would_have_fewer_suffer(letters: list[str]) -> None:
    machine = uniform(caches=3, cores=8)
    pods = tenants("".join(letters), 0)
    caches = caches_of(divided(pods, machine))
    now = suffering(pods, caches)
    for at, place in product(range(len(pods)), range(3)):
        assert suffering(pods, [place if other == at else cache for other, cache in enumerate(caches)]) >= now
    for one, other in combinations(range(len(pods)), 2):
        changed = list(caches)
        changed[one], changed[other] = caches[other], caches[one]
        assert suffering(pods, changed) >= now


def test_isolated_cpus_are_part_of_nobodys_own_cores() -> None:
    """The kernel spreads no load over these: threads of a pod with no others would all stay on one of them."""
    socket = PLAIN.sockets[0]
    cores = [core for core in PLAIN.cores if core <= socket.cpus]
    isolated = frozenset[int]().union(*cores[:4])
    parts = divided(tenants("DD"), replace(PLAIN, isolated=isolated))
    assert [part.cpus for part in parts.values()] == [cores[4] | cores[5], cores[6] | cores[7]]


def test_a_cache_of_isolated_cpus_is_dealt_to_nobody() -> None:
    machine = replace(SERVER, isolated=SERVER.last_level_caches[1].cpus)
    parts = divided(tenants("DDD"), machine)
    assert caches_of(parts) == [0, 2, 3], "as the status lists them"
    assert [part.cpus for part in parts.values()] == [SERVER.last_level_caches[place].cpus for place in (0, 2, 3)]


@pytest.mark.parametrize("left", [pytest.param(0, id="all"), pytest.param(1, id="all but a core")])
def test_a_socket_whose_cpus_are_isolated_is_not_divided(left: int) -> None:
    socket = SERVER.sockets[0]
    cores = [core for core in SERVER.cores if core <= socket.cpus]
    parts = divided(tenants("DD"), replace(SERVER, isolated=socket.cpus.difference(*cores[:left])))
    assert set(parts.values()) == {Part(None, socket.cpus)}

"""What is done about a container, from what is wanted, seen and was done before; seconds are told, not waited for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.node.pinning.cpuset import Cpuset
from agents.node.pinning.reconciler import MAX_PAUSE_SECONDS, QUIET_SECONDS, Action, Finding, Reconciler
from berth.api.cpulist import parse_cpulist

NONE = frozenset[int]()


def seen(
    effective: str, *, mems: str = "0", allowed: str = "0-7", allowed_mems: str = "0-1", partition: bool = False
) -> Cpuset:
    return Cpuset(
        cpus=effective,
        mems=mems,
        effective_cpus=parse_cpulist(effective),
        effective_mems=parse_cpulist(mems),
        allowed_cpus=parse_cpulist(allowed),
        allowed_mems=parse_cpulist(allowed_mems),
        partition=partition,
    )


@pytest.mark.parametrize(
    ("found", "cpus", "mems", "ours", "action", "finding", "target"),
    [
        pytest.param(seen("0-7"), "", "", False, Action.LEAVE, Finding.NONE, "", id="not wanted"),
        pytest.param(seen("0-3"), "", "", False, Action.LEAVE, Finding.NONE, "", id="not wanted, pinned by another"),
        pytest.param(seen("0-3"), "", "", True, Action.RESTORE, Finding.NONE, "", id="wanted no more"),
        pytest.param(seen("0-7"), "0-3", "", False, Action.PIN, Finding.PENDING, "0-3", id="wanted"),
        pytest.param(seen("0-3"), "0-3", "", False, Action.LEAVE, Finding.IN_EFFECT, "0-3", id="it is so already"),
        pytest.param(seen("0-3"), "0-3", "", True, Action.LEAVE, Finding.IN_EFFECT, "0-3", id="by an agent before"),
        pytest.param(seen("0-5"), "0-3", "", True, Action.PIN, Finding.PENDING, "0-3", id="written half by one before"),
        pytest.param(seen("4-7"), "0-3", "", True, Action.PIN, Finding.PENDING, "0-3", id="another socket"),
        pytest.param(seen("4-7"), "0-3", "", False, Action.LEAVE, Finding.FOREIGN, "0-3", id="pinned by another"),
        pytest.param(
            seen("0-7", partition=True), "0-3", "", False, Action.LEAVE, Finding.FOREIGN, "0-3", id="a partition"
        ),
        pytest.param(
            seen("2-5", allowed="2-5"), "0-3", "", False, Action.PIN, Finding.PENDING, "2-3", id="its pod has fewer"
        ),
        pytest.param(
            seen("4-7", allowed="4-7"), "0-3", "", False, Action.LEAVE, Finding.IMPOSSIBLE, "", id="its pod has others"
        ),
        pytest.param(seen("0-3"), "0-3", "1", True, Action.PIN, Finding.PENDING, "0-3", id="memory elsewhere"),
        pytest.param(seen("0-3", mems="1"), "0-3", "1", True, Action.LEAVE, Finding.IN_EFFECT, "0-3", id="with memory"),
        pytest.param(
            seen("0-3", allowed_mems="0"),
            "0-3",
            "1",
            True,
            Action.LEAVE,
            Finding.IN_EFFECT,
            "0-3",
            id="memory that its pod has not",
        ),
    ],
)
def test_a_container_that_is_seen_first(
    found: Cpuset, cpus: str, mems: str, ours: bool, action: Action, finding: Finding, target: str
) -> None:
    decision = Reconciler().decide("c", found, parse_cpulist(cpus), parse_cpulist(mems), ours=ours, now=0.0)
    assert (decision.action, decision.finding, decision.cpus) == (action, finding, parse_cpulist(target))
    assert bool(decision.text) is (finding not in (Finding.NONE, Finding.IN_EFFECT))


@pytest.mark.parametrize(
    ("given", "has", "allowed", "finding"),
    [
        pytest.param("0-3", "0-3", "0-7", Finding.PENDING, id="more CPUs came online"),
        pytest.param("0-3", "0-1", "0-1,4-7", Finding.PENDING, id="others came and some went"),
        pytest.param("0-3", "4-7", "0-7", Finding.FOREIGN, id="somebody else has pinned it since"),
        pytest.param("", "0-3", "0-7", Finding.FOREIGN, id="it was never pinned here"),
    ],
)
def test_one_that_was_given_back_its_cpus_is_nobody_elses(given: str, has: str, allowed: str, finding: Finding) -> None:
    found, wanted = seen(has, allowed=allowed), parse_cpulist("1")
    decision = Reconciler().decide("c", found, wanted, NONE, ours=False, now=0.0, given=parse_cpulist(given))
    assert decision.finding is finding


class Container:
    """A container under a reconciler, at a time of the test's own."""

    def __init__(self, limit: int = 3) -> None:
        self.reconciler = Reconciler(limit=limit)
        self.now = 100.0
        self.wanted = "0-3"
        self.has = "0-7"

    def look(self, after: float = 0.0) -> tuple[Action, Finding]:
        self.now += after
        cpus = parse_cpulist(self.wanted)
        decision = self.reconciler.decide("c", seen(self.has), cpus, NONE, ours=True, now=self.now)
        return decision.action, decision.finding

    def write(self, problem: str = "") -> None:
        self.reconciler.written("c", self.now, problem)
        if not problem:
            self.has = self.wanted


def test_drift_is_brought_back_with_longer_and_longer_pauses_and_given_up() -> None:
    container = Container(limit=4)
    assert container.look() == (Action.PIN, Finding.PENDING)
    container.write()
    assert container.look() == (Action.LEAVE, Finding.IN_EFFECT)
    for pause in (1.0, 2.0, 4.0):
        container.has = "0-7"
        assert container.look(pause - 0.1) == (Action.LEAVE, Finding.DRIFTED)
        assert container.look(0.1) == (Action.PIN, Finding.DRIFTED)
        container.write()
        assert container.look() == (Action.LEAVE, Finding.IN_EFFECT)
    container.has = "4-7"
    assert container.look(3600.0) == (Action.LEAVE, Finding.GIVEN_UP)
    container.wanted = "4-6"
    assert container.look() == (Action.PIN, Finding.PENDING)


def test_one_that_holds_for_a_minute_starts_anew() -> None:
    container = Container(limit=2)
    for _ in range(5):
        assert container.look()[0] is Action.PIN
        container.write()
        assert container.look(QUIET_SECONDS) == (Action.LEAVE, Finding.IN_EFFECT)
        container.has = "0-7"


def test_one_that_cannot_be_written_is_given_up_with_the_reason() -> None:
    container = Container(limit=2)
    for _ in range(2):
        assert container.look(MAX_PAUSE_SECONDS) == (Action.PIN, Finding.PENDING)
        container.write("no such CPUs")
    decision = container.reconciler.decide(
        "c", seen("0-7"), frozenset({0}) | parse_cpulist("0-3"), NONE, ours=True, now=999.0
    )
    assert (decision.finding, decision.text) == (Finding.GIVEN_UP, "given up after 2 writes: no such CPUs")


def test_one_that_came_right_by_itself_is_in_effect_although_given_up() -> None:
    container = Container(limit=1)
    container.look()
    container.write("?")
    assert container.look()[1] is Finding.GIVEN_UP
    container.has = "0-3"
    assert container.look() == (Action.LEAVE, Finding.IN_EFFECT)


def test_what_is_forgotten_is_counted_from_none() -> None:
    container = Container(limit=1)
    container.look()
    container.write()
    container.has = "0-7"
    assert container.look(60.0)[1] is Finding.GIVEN_UP
    container.reconciler.keep(frozenset({"another"}))
    assert container.look() == (Action.PIN, Finding.PENDING)


CPUS = st.frozensets(st.integers(0, 7))


@given(CPUS, CPUS.filter(bool), CPUS.filter(bool), st.booleans())
def test_nothing_is_written_beyond_what_the_pod_has(
    wanted: frozenset[int], effective: frozenset[int], more: frozenset[int], ours: bool
) -> None:
    found = Cpuset(
        cpus="",
        mems="",
        effective_cpus=effective,
        effective_mems=frozenset({0}),
        allowed_cpus=effective | more,
        allowed_mems=frozenset({0}),
    )
    decision = Reconciler().decide("c", found, wanted, NONE, ours=ours, now=0.0)
    if decision.action is Action.PIN:
        assert decision.cpus
        assert decision.cpus <= wanted & found.allowed_cpus
        assert decision.cpus != effective
        assert decision.mems == {0}
    if decision.action is Action.RESTORE:
        assert ours
        assert not wanted
    if not ours and effective < found.allowed_cpus and effective != decision.cpus:
        assert decision.action is Action.LEAVE


@given(st.lists(st.tuples(st.floats(0.0, 30.0), st.booleans()), max_size=60))
def test_no_container_is_written_more_often_than_allowed(steps: list[tuple[float, bool]]) -> None:
    container = Container(limit=3)
    writes: list[float] = []
    for after, disturbed in steps:
        container.has = "0-7" if disturbed else container.has
        if container.look(after)[0] is Action.PIN:
            container.write()
            writes.append(container.now)
    for first, *_, last in zip(writes, writes[1:], writes[2:], writes[3:], strict=False):
        assert last - first >= QUIET_SECONDS

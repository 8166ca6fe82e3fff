"""Round trips to users: as many probes as wanted, fewer where nobody answers, few at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from queue import Queue

import pytest

from agents.node.probing.exhaustion import ExhaustedError
from agents.node.probing.icmp import Icmp
from agents.node.probing.user_probes import LONGEST_WAIT, MOST_LOST, THREADS, FoundUser, UserProbes, UserTarget


class Echoes(Icmp):
    """Answers as it is told, in place of a network."""

    def __init__(self, *answers: int | Exception | None, permitted: bool = True) -> None:
        self.permitted = permitted
        self._answers = list(answers)
        self.sent = 0

    def probe(self, address: str) -> int | None:
        self.sent += 1
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def measured(echoes: Icmp, target: UserTarget = UserTarget("1", "192.0.2.1", 3)) -> FoundUser:  # noqa: B008 - immutable
    found: Queue[FoundUser] = Queue()
    UserProbes(found.put, rate=1e6, icmp=echoes).ask(target)
    return found.get(timeout=30)


@pytest.mark.parametrize(
    ("answers", "found", "sent"),
    [
        pytest.param((20, 21, 22), (20, 21, 22), 3, id="all answered"),
        pytest.param((None, 21, None), (21,), 3, id="some lost"),
        pytest.param((20, None, None), (20,), 3, id="one that answered is not left"),
        pytest.param((None,) * 3, (), MOST_LOST, id="nobody there"),
    ],
)
def test_what_was_found(answers: Iterable[int | None], found: tuple[int, ...], sent: int) -> None:
    echoes = Echoes(*answers)
    assert measured(echoes) == FoundUser("1", found)
    assert echoes.sent == sent


@pytest.mark.parametrize(
    ("echoes", "why"),
    [
        pytest.param(Echoes(permitted=False), "the kernel does not let the agent send ICMP", id="not permitted"),
        pytest.param(Echoes(ExhaustedError()), "no descriptor or memory is left for a probe", id="no descriptors"),
    ],
)
def test_why_nothing_was_measured(echoes: Echoes, why: str) -> None:
    assert measured(echoes) == FoundUser("1", (), why)


def test_users_that_do_not_answer_hold_up_few() -> None:
    held = threading.Event()
    found: Queue[FoundUser] = Queue()

    class Slow(Icmp):
        def __init__(self) -> None:
            self.permitted = True

        def probe(self, address: str) -> int | None:
            if address != "192.0.2.1":
                return 20
            held.wait(30)
            return None

    probes = UserProbes(found.put, rate=1e6, icmp=Slow())
    for number in range(THREADS - 1):
        probes.ask(UserTarget(f"slow {number}", "192.0.2.1", 1))
    probes.ask(UserTarget("quick", "192.0.2.2", 1))
    assert found.get(timeout=30) == FoundUser("quick", (20,))
    held.set()
    assert {found.get(timeout=30).id for _ in range(THREADS - 1)} == {f"slow {n}" for n in range(THREADS - 1)}


def test_users_whose_turn_comes_too_late_are_left() -> None:
    times, begun, going_on = [0.0], threading.Event(), threading.Event()
    found: Queue[FoundUser] = Queue()

    class Slow(Icmp):
        def __init__(self) -> None:
            self.permitted = True

        def probe(self, address: str) -> int | None:
            begun.set()
            going_on.wait(30)
            return 20

    probes = UserProbes(found.put, rate=1e6, icmp=Slow(), clock=lambda: times[0])
    for number in range(THREADS):
        probes.ask(UserTarget(f"first {number}", "192.0.2.1", 1))
    assert begun.wait(30)
    probes.ask(UserTarget("too late", "192.0.2.2", 1))
    times[0] = LONGEST_WAIT + 0.1
    probes.ask(UserTarget("in time", "192.0.2.3", 1))
    going_on.set()
    by_id = {each.id: each for each in (found.get(timeout=30) for _ in range(THREADS + 2))}
    assert by_id["too late"] == FoundUser("too late", (), "its turn did not come within 5 s", no_turn=True)
    assert by_id["in time"] == FoundUser("in time", (20,))


def test_the_kernel_is_asked_for_real() -> None:
    icmp = Icmp()
    if not icmp.permitted:
        pytest.skip("ICMP is not permitted here")
    found = measured(icmp, UserTarget("1", "127.0.0.1", 3))
    assert len(found.microseconds) == 3
    assert all(0 < value < 1_000_000 for value in found.microseconds)

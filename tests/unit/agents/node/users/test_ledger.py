"""Orders are checked, bounded and answered once; answers wait until they have arrived, or are too old."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from agents.node.probing.user_probes import FoundUser, UserTarget
from agents.node.users import ledger
from agents.node.users.ledger import MOST_MEASURED, MOST_PROBES, MOST_TOLD, PATIENCE, Ledger
from berth.api.latency_exchange import ProbeAnswer, ProbeOrder

USER = "192.0.2.7"


class Times:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def times() -> Times:
    return Times()


@pytest.fixture
def kept(times: Times) -> Ledger:
    return Ledger(times)


def ids() -> Iterator[str]:
    return (str(number) for number in count())


def test_an_order_is_measured_and_told(kept: Ledger) -> None:
    assert kept.take(ProbeOrder("1", USER)) == UserTarget("1", USER, 3)
    assert not kept.waiting
    kept.found(FoundUser("1", (20, 21)))
    assert kept.answers() == (ProbeAnswer("1", (20, 21)),)
    assert kept.waiting
    kept.told(kept.answers())
    assert not kept.waiting


@pytest.mark.parametrize(
    ("wanted", "probes"),
    [
        pytest.param(1, 1, id="one"),
        pytest.param(0, 1, id="none"),
        pytest.param(-5, 1, id="negative"),
        pytest.param(10**9, MOST_PROBES, id="more than one user is worth"),
    ],
)
def test_probes_are_bounded(kept: Ledger, wanted: int, probes: int) -> None:
    found = kept.take(ProbeOrder("1", USER, wanted))
    assert found is not None
    assert found.probes == probes


@pytest.mark.parametrize(
    ("address", "why"),
    [
        pytest.param("169.254.169.254", "a special address", id="metadata"),
        pytest.param("127.0.0.1", "a special address", id="loopback"),
        pytest.param("::ffff:127.0.0.1", "a special address", id="loopback as IPv6"),
        pytest.param("fe80::1", "a special address", id="link-local"),
        pytest.param("224.0.0.1", "a special address", id="multicast"),
        pytest.param("user.example", "no IP address", id="a name, which is not looked up"),
        pytest.param("", "no IP address", id="empty"),
    ],
)
def test_addresses_that_are_never_probed(kept: Ledger, address: str, why: str) -> None:
    assert kept.take(ProbeOrder("1", address)) is None
    assert kept.answers() == (ProbeAnswer("1", refused=why),)


def test_an_order_that_comes_twice_is_measured_once(kept: Ledger) -> None:
    assert kept.take(ProbeOrder("1", USER)) is not None
    assert kept.take(ProbeOrder("1", USER)) is None
    assert not kept.waiting


def test_a_flood_is_refused(kept: Ledger) -> None:
    for name, _ in zip(ids(), range(MOST_MEASURED), strict=False):
        assert kept.take(ProbeOrder(name, USER)) is not None
    assert kept.take(ProbeOrder("more", USER)) is None
    assert kept.take(ProbeOrder("never", "127.0.0.1")) is None
    more, never = kept.answers()
    assert (more.refused, more.no_turn) == (f"{MOST_MEASURED} users are being measured", True)
    assert not never.no_turn, "it is not to be asked again"
    kept.found(FoundUser(next(ids()), (), "late", no_turn=True))
    assert kept.answers()[-1].no_turn


def test_what_a_process_that_ended_owes_makes_room_again(kept: Ledger, times: Times) -> None:
    for name, _ in zip(ids(), range(MOST_MEASURED), strict=False):
        kept.take(ProbeOrder(name, USER))
    times.now += PATIENCE
    assert kept.take(ProbeOrder("more", USER)) is not None
    kept.found(FoundUser("0", (20,)))
    assert not kept.waiting


def test_what_nobody_asked_for_is_left_out(kept: Ledger) -> None:
    kept.found(FoundUser("1", (20,)))
    assert not kept.waiting


def test_answers_that_came_too_late_are_left_out(kept: Ledger, times: Times) -> None:
    for name in ("1", "2"):
        kept.take(ProbeOrder(name, USER))
    kept.found(FoundUser("1", (20,)))
    times.now += PATIENCE - 1
    kept.found(FoundUser("2", ()))
    times.now += 1
    assert kept.answers() == (ProbeAnswer("2"),)


def test_a_message_has_so_many_answers(kept: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MOST_TOLD", 2)
    assert MOST_TOLD > 2
    for name in "123":
        kept.take(ProbeOrder(name, ""))
    first = kept.answers()
    kept.told(first)
    assert [answer.id for answer in (*first, *kept.answers())] == ["1", "2", "3"]
    assert len(first) == 2

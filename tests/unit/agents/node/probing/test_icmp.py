"""ICMP: what is tried where the kernel does not permit it, and what icmplib's answers come to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from icmplib import NameLookupError, SocketPermissionError

from agents.node.probing import icmp as module
from agents.node.probing.icmp import Icmp


class Kernel:
    """Stands in for icmplib on a machine that permits some kinds of sockets."""

    def __init__(self, *, datagram: bool = True, raw: bool = True, answer: Any = None) -> None:
        self.permits = {False: datagram, True: raw}
        self.answer = answer
        self.used: list[bool] = []

    def ping(self, address: str, *, count: int, timeout: float, privileged: bool) -> Any:
        if not self.permits[privileged]:
            raise SocketPermissionError(privileged)
        self.used.append(privileged)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def install(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> Kernel:
    monkeypatch.setattr(module, "ping", kernel.ping)
    return kernel


def reply(milliseconds: float) -> SimpleNamespace:
    return SimpleNamespace(is_alive=True, avg_rtt=milliseconds)


@pytest.mark.parametrize(
    ("datagram", "raw", "permitted", "privileged"),
    [
        pytest.param(True, True, True, False, id="datagram sockets first"),
        pytest.param(False, True, True, True, id="raw sockets else"),
        pytest.param(False, False, False, None, id="neither"),
    ],
)
def test_the_least_privilege_is_used(
    monkeypatch: pytest.MonkeyPatch, datagram: bool, raw: bool, permitted: bool, privileged: bool | None
) -> None:
    kernel = install(monkeypatch, Kernel(datagram=datagram, raw=raw, answer=reply(0.01)))
    icmp = Icmp()
    assert icmp.permitted is permitted
    assert (icmp.probe("192.0.2.1") is not None) is permitted
    assert kernel.used[-1:] == ([] if privileged is None else [privileged])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(SimpleNamespace(is_alive=False, avg_rtt=0.0), None, id="no reply"),
        pytest.param(NameLookupError("nowhere"), None, id="no such name"),
        pytest.param(OSError("no route"), None, id="no route"),
    ],
)
def test_probe(monkeypatch: pytest.MonkeyPatch, answer: Any, expected: int | None) -> None:
    install(monkeypatch, Kernel(answer=answer))
    assert Icmp().probe("192.0.2.1") == expected


@pytest.mark.parametrize(
    "milliseconds",
    [
        pytest.param(3_600_000.0, id="forward by an hour"),
        pytest.param(-5.0, id="back by some milliseconds"),
        pytest.param(-315_360_000_000.0, id="back by ten years"),
    ],
)
def test_where_the_wall_clock_was_set_meanwhile_the_time_that_the_probe_took_counts(
    monkeypatch: pytest.MonkeyPatch, milliseconds: float
) -> None:
    install(monkeypatch, Kernel(answer=reply(milliseconds)))
    icmp, readings = Icmp(), iter((1_000_000, 9_000_000))
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter_ns=lambda: next(readings)))
    assert icmp.probe("192.0.2.1") == 8000


def test_loopback_answers_where_that_is_permitted() -> None:
    icmp = Icmp()
    found = icmp.probe("127.0.0.1")
    assert (found is not None) is icmp.permitted

"""A prober that has no descriptor left measures nothing, and says nothing about its peers."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest
from icmplib import ICMPSocketError, NameLookupError

from agents.node import boot_clock
from agents.node.probing.exhaustion import ExhaustedError, exhausted
from agents.node.probing.icmp import Icmp
from agents.node.probing.measurements import LONGEST_WAIT, Measurements
from agents.node.probing.prober import EXHAUSTED
from agents.node.probing.rounds import Prober, Target
from tests.support.probing import free_port, running_responder

RATE = 10_000.0


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    """The process may open no further file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("icmp", [pytest.param(False, id="TCP"), pytest.param(True, id="ICMP")])
def test_a_round_without_descriptors_is_disturbed_and_no_loss(monkeypatch: pytest.MonkeyPatch, icmp: bool) -> None:
    permitted = Icmp().permitted
    if icmp and not permitted:
        pytest.skip("the kernel permits no ICMP here")
    monkeypatch.setattr(Icmp, "_try", lambda own, *, privileged=False: icmp and _privilege(own, privileged))
    measurements = Measurements()
    measurements.keep({"a": "z", "b": "z"})
    with (
        running_responder() as peer,
        contextlib.closing(Prober(Target("", "127.0.0.1", 0 if icmp else peer.port), rate=RATE)) as prober,
    ):
        targets = [Target("a", "127.0.0.1", 0 if icmp else peer.port)]
        assert measurements.add(prober.run(targets))
        # One more, to which there is no connection yet.
        targets.append(Target("b", "127.0.0.2", 0 if icmp else free_port()))
        with no_descriptors():
            assert not measurements.add(prober.run(targets))
        assert measurements.rounds_dropped == 1
        [found] = measurements.peers(boot_clock.now() + LONGEST_WAIT)
        assert (found.node, found.figures.loss) == ("a", 0.0)
        assert measurements.add(prober.run(targets)), "it goes on with the next one"


def _privilege(icmp: Icmp, privileged: bool) -> bool:
    icmp._privileged = True
    return not privileged


def failure(number: int, *, wrapped: bool) -> Exception:
    """What a probe fails with, as icmplib wraps it."""
    error = OSError(number, os.strerror(number))
    if not wrapped:
        return error
    try:
        try:
            raise error
        except OSError as found:
            raise ICMPSocketError(str(found))  # noqa: B904 - icmplib does so
    except ICMPSocketError as found:
        told: Exception = found
        return told


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "by icmplib"])
@pytest.mark.parametrize(
    ("number", "own"),
    [
        (errno.EMFILE, True),
        (errno.ENFILE, True),
        (errno.ENOBUFS, True),
        (errno.ENOMEM, True),
        (errno.ECONNREFUSED, False),
        (errno.EHOSTUNREACH, False),
        (errno.ENETUNREACH, False),
    ],
)
def test_whose_fault_an_error_is(number: int, own: bool, wrapped: bool) -> None:
    assert exhausted(failure(number, wrapped=wrapped)) is own


def test_an_error_without_a_number_is_nobodys_own() -> None:
    assert not exhausted(NameLookupError("nowhere.invalid"))


def test_without_descriptors_nobody_knows_what_the_kernel_permits() -> None:
    """To take it for permitted would have all later probes lost where only the other kind of socket is."""
    with no_descriptors(), pytest.raises(ExhaustedError):
        Icmp()


def test_a_prober_without_descriptors_ends_and_says_why() -> None:
    program = (
        "import os, resource, sys; from agents.node.probing import prober, responder; listen = responder.listen\n"
        "def last(*where):\n"
        "    found = listen(*where)\n"
        "    lowest = os.dup(0); os.close(lowest)\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 3, lowest + 3))  # the responder's own\n"
        "    return found\n"
        "responder.listen = last\n"
        "sys.exit(prober.main(['--address=127.0.0.1', '--port=0', '--interval=1', '--rate=1']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], input="", capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (EXHAUSTED, "prober: no descriptor or memory is left for a socket\n")

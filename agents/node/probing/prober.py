"""The prober process: ``python -m agents.node.probing.prober``, started by the agent and by nobody else.

It has a process of its own so that the agent's other work does not disturb measuring, and imports little so that it
stays small. Orders come on standard input, rounds go to standard output; it ends when standard input does, and is
killed with the agent where it is stopped and cannot see that.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from agents.node.probing.exhaustion import ExhaustedError
from agents.node.probing.messages import Order, decode_input, encode_found, encode_round
from agents.node.probing.responder import Responder
from agents.node.probing.rounds import Prober, Target
from agents.node.probing.user_probes import FoundUser, UserProbes
from berth.kube.jitter import jitter

JITTER: Final = 0.1
"""Share of the interval by which a round comes earlier or later, so that the agents' rounds do not fall together."""
PORT_TAKEN: Final = 3
"""Exit status when the responder cannot listen."""
EXHAUSTED: Final = 4
"""Exit status when there is no room for a socket to find out what may be sent."""
USER_RATE: Final = 10.0
"""Probes a second to users at most, where nothing else is said."""
_PR_SET_PDEATHSIG: Final = 1


class _Orders:
    """The newest order, read from standard input by a thread, which hands users on to be measured."""

    def __init__(self, users: UserProbes) -> None:
        self._users = users
        self._newest = Order(())
        self._given = threading.Event()

    def read(self) -> None:
        for line in sys.stdin.buffer:
            given = decode_input(line)
            if isinstance(given, Order):
                self._newest = given
                self._given.set()
            else:
                self._users.ask(given)

    def wait(self) -> Order:
        self._given.wait()
        return self._newest


class _Answers:
    """Standard output, a line at a time from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def write(self, line: bytes) -> None:
        with self._lock:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()

    def found(self, found: FoundUser) -> None:
        self.write(encode_found(found))


def pause(interval: float, elapsed: float) -> float:
    """Return the seconds until the next round begins.

    Args:
        interval: seconds from the begin of a round to that of the next, on average.
        elapsed: seconds that this round took.
    """
    return max(0.0, interval * jitter(1 - JITTER, 1 + JITTER) - elapsed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until standard input ends."""
    parser = argparse.ArgumentParser(prog="prober")
    parser.add_argument("--address", default="")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--interval", type=float, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--user-rate", type=float, default=USER_RATE)
    options = parser.parse_args(arguments)
    # With the thread that started it, which is the agent's main one. What is refused leaves the end of standard input.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    try:
        responder = Responder(options.address, options.port)
    except OSError as error:
        sys.stderr.write(f"responder: {options.address or '*'} port {options.port}: {error.strerror}\n")
        return PORT_TAKEN
    answers = _Answers()
    try:
        orders = _Orders(UserProbes(answers.found, rate=options.user_rate))
        prober = Prober(Target("", options.address or "127.0.0.1", responder.port), rate=options.rate)
    except ExhaustedError:
        sys.stderr.write("prober: no descriptor or memory is left for a socket\n")
        return EXHAUSTED
    for loop in (responder.serve, orders.read):
        threading.Thread(target=_end_with, args=(loop,), daemon=True).start()
    while True:
        order = orders.wait()
        start = time.monotonic()
        answers.write(encode_round(prober.run(order.targets)))
        time.sleep(pause(options.interval, time.monotonic() - start))


def _end_with(loop: Callable[[], None]) -> None:
    """End the process with a loop that it is nothing without.

    When there are no orders any more the agent is gone, and a round under way is nobody's. One that measured on without
    its responder would have all of its rounds dropped, and one without its agent would keep the port.
    """
    status = 1
    try:
        loop()
        status = 0
    except Exception:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main())

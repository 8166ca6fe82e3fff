"""The prober process: ``python -m agents.node.probing.prober``, started by the agent and by nobody else.

It has a process of its own so that the agent's other work does not disturb measuring, and imports little so that it
stays small. Orders come on standard input, rounds go to standard output; it ends when standard input does, and is
killed with the agent where it is stopped and cannot see that.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from agents.node.probing.messages import Order, decode_order, encode_round
from agents.node.probing.responder import Responder
from agents.node.probing.rounds import Prober, Target

JITTER: Final = 0.1
"""Share of the interval by which a round comes earlier or later, so that the agents' rounds do not fall together."""
PORT_TAKEN: Final = 3
"""Exit status when the responder cannot listen."""
_PR_SET_PDEATHSIG: Final = 1


class _Orders:
    """The newest order, read from standard input by a thread."""

    def __init__(self) -> None:
        self._newest = Order(())
        self._given = threading.Event()

    def read(self) -> None:
        for line in sys.stdin.buffer:
            self._newest = decode_order(line)
            self._given.set()

    def wait(self) -> Order:
        self._given.wait()
        return self._newest


def pause(interval: float, elapsed: float) -> float:
    """Return the seconds until the next round begins.

    Args:
        interval: seconds from the begin of a round to that of the next, on average.
        elapsed: seconds that this round took.
    """
    return max(0.0, interval * random.uniform(1 - JITTER, 1 + JITTER) - elapsed)  # noqa: S311 - no secret


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until standard input ends."""
    parser = argparse.ArgumentParser(prog="prober")
    parser.add_argument("--address", default="")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--interval", type=float, required=True)
    parser.add_argument("--rate", type=float, required=True)
    options = parser.parse_args(arguments)
    # With the thread that started it, which is the agent's main one. What is refused leaves the end of standard input.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    try:
        responder = Responder(options.address, options.port)
    except OSError as error:
        sys.stderr.write(f"responder: {options.address or '*'} port {options.port}: {error.strerror}\n")
        return PORT_TAKEN
    orders = _Orders()
    for loop in (responder.serve, orders.read):
        threading.Thread(target=_end_with, args=(loop,), daemon=True).start()
    prober = Prober(Target("", options.address or "127.0.0.1", responder.port), rate=options.rate)
    while True:
        order = orders.wait()
        start = time.monotonic()
        sys.stdout.buffer.write(encode_round(prober.run(order.targets)))
        sys.stdout.buffer.flush()
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

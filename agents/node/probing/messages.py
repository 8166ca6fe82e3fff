"""What the agent and its prober process tell each other: lines of JSON."""

from __future__ import annotations

import json
from typing import NamedTuple

from agents.node.probing.rounds import Round, Target
from agents.node.probing.user_probes import FoundUser, UserTarget
from agents.node.probing.window import Method, Sample


class Order(NamedTuple):
    """What to do from now on; the agent's to its prober."""

    targets: tuple[Target, ...]
    """whom to probe in every round"""


def encode_order(order: Order) -> bytes:
    """The line for an order."""
    return _line([list(target) for target in order.targets])


def encode_user(target: UserTarget) -> bytes:
    """The line that asks for one user to be measured once."""
    return _line({"user": list(target)})


def decode_order(line: bytes) -> Order:
    """Read a line of :func:`encode_order`.

    Raises:
        ValueError, TypeError: it is none.
    """
    return Order(tuple(Target(*target) for target in json.loads(line)))


def decode_input(line: bytes) -> Order | UserTarget:
    """Read a line that is for the prober.

    Raises:
        ValueError, TypeError: it is none.
    """
    return UserTarget(*json.loads(line)["user"]) if line.startswith(b'{"user"') else decode_order(line)


def encode_round(measured: Round) -> bytes:
    """The line for a round."""
    samples = {name: [list(sample) for sample in samples] for name, samples in measured.samples.items()}
    return _line({"self": measured.self_probes, "samples": samples})


def encode_found(found: FoundUser) -> bytes:
    """The line for what came of a user."""
    return _line({"found": list(found)})


def decode_output(line: bytes) -> Round | FoundUser:
    """Read a line of the prober's.

    Raises:
        ValueError, TypeError, KeyError: it is none.
    """
    if not line.startswith(b'{"found"'):
        return decode_round(line)
    name, microseconds, refused = json.loads(line)["found"]
    return FoundUser(name, tuple(microseconds), refused)


def decode_round(line: bytes) -> Round:
    """Read a line of :func:`encode_round`.

    Raises:
        ValueError, TypeError, KeyError: it is none.
    """
    read = json.loads(line)
    return Round(
        tuple(read["self"]),
        {
            name: tuple(Sample(time, Method(method), value) for time, method, value in samples)
            for name, samples in read["samples"].items()
        },
    )


def _line(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"

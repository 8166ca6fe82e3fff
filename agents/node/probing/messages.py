"""What the agent and its prober process tell each other: lines of JSON."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

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
    """Read a line of the prober's, in which every value is what it should be.

    The network reaches the prober, and what it says goes into the agent's figures.

    Raises:
        ValueError: it is none.
    """
    try:
        read = json.loads(line)
        return _found_user(read["found"]) if "found" in read else _round(read)
    except (TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"neither a round nor a user: {error!r}") from error


def decode_round(line: bytes) -> Round:
    """Read a line of :func:`encode_round`.

    Raises:
        ValueError: it is none.
    """
    read = decode_output(line)
    if not isinstance(read, Round):
        raise ValueError("what came of a user, and no round")
    return read


def _found_user(read: Any) -> FoundUser:
    name, microseconds, refused, no_turn = read
    return FoundUser(_text(name), tuple(_whole(value) for value in microseconds), _text(refused), no_turn is True)


def _round(read: Any) -> Round:
    return Round(
        tuple(_round_trip(value) for value in read["self"]),
        {
            name: tuple(Sample(_seconds(time), Method(method), _round_trip(value)) for time, method, value in samples)
            for name, samples in read["samples"].items()
        },
    )


def _round_trip(value: Any) -> int | None:
    return None if value is None else _whole(value)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError(f"no round trip: {value!r:.40}")
    return value


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"no time: {value!r:.40}")
    return float(value)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"no text: {value!r:.40}")
    return value


def _line(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"

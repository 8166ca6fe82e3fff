"""What the agent and its prober process tell each other: lines of JSON."""

from __future__ import annotations

import json
from typing import NamedTuple

from agents.node.probing.rounds import Round, Target
from agents.node.probing.window import Method, Sample


class Order(NamedTuple):
    """What to do from now on; the agent's to its prober."""

    targets: tuple[Target, ...]
    """whom to probe in every round"""


def encode_order(order: Order) -> bytes:
    """The line for an order."""
    return _line([list(target) for target in order.targets])


def decode_order(line: bytes) -> Order:
    """Read a line of :func:`encode_order`.

    Raises:
        ValueError, TypeError: it is none.
    """
    return Order(tuple(Target(*target) for target in json.loads(line)))


def encode_round(measured: Round) -> bytes:
    """The line for a round."""
    samples = {name: [list(sample) for sample in samples] for name, samples in measured.samples.items()}
    return _line({"self": measured.self_probes, "samples": samples})


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

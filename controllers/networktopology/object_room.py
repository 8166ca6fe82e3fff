"""What of the computed costs an object has room for. No I/O.

etcd takes no object above 1.5 MiB, and one that is refused would keep the costs of before for ever. So what is least
missed goes first: costs of segments, without which those of their zone count; then the direct measurements between
zones, which are in the set of paths as well; then all costs of zones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import msgspec

from berth.api.labels import WEIGHTS_NETPERF
from controllers.networktopology.compute import Computation, Costs
from controllers.networktopology.weights import ownership, weight_sets

MAX_BYTES: Final = 1_480_000
"""Most bytes of an object: less than the 1,572,864 of etcd by what a status may take."""

_Step = tuple[dict[str, Costs], tuple[str, ...]]


class Fitted(NamedTuple):
    """What of a computation an object has room for."""

    computation: Computation
    """with as many costs, and what is left out"""
    weights: list[dict[str, Any]]
    """its sets, as the API has them"""


def fitted(computation: Computation, raw: Mapping[str, Any]) -> Fitted:
    """Return as much of the computation as there is room for.

    Args:
        computation: what was computed.
        raw: the object that the costs are for, as the API server has it.
    """
    spec = raw.get("spec") or {}
    ours = ownership(raw["metadata"].get("managedFields", ())).names | computation.sets.keys()
    others = [item for item in spec.get("weights") or () if item["name"] not in ours]
    room = MAX_BYTES - _bytes({**raw, "spec": {**spec, "weights": others}})
    # Where nothing fits, the last is what is left.
    for step in _steps(computation.sets):
        weights = weight_sets(step[0])
        if _bytes(weights) <= room:
            break
    sets, left_out = step
    return Fitted(replace(computation, sets=sets, left_out=left_out) if left_out else computation, weights)


def _steps(sets: Mapping[str, Costs]) -> Iterator[_Step]:
    """Yield the sets with ever fewer costs, and what is left out; steps that leave nothing out are none."""
    kept = dict(sets)
    left_out: tuple[str, ...] = ()
    yield kept, left_out
    for what, names, without in (
        ("costs of segments", [*kept], {"segments": {}, "cut_segments": frozenset()}),
        (f"costs of zones in {WEIGHTS_NETPERF}", [WEIGHTS_NETPERF] if len(kept) > 1 else [], {"zones": {}}),
        ("costs of zones", [*kept], {"zones": {}}),
    ):
        fewer = {name: replace(costs, **without) if name in names else costs for name, costs in kept.items()}
        if fewer != kept:
            kept, left_out = fewer, (*left_out, what)
            yield kept, left_out


def _bytes(content: Any) -> int:
    return len(msgspec.json.encode(content))

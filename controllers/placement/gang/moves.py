"""Local improvement: units, linked pairs and all units of a node change their node while that lowers the cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from controllers.placement.gang.field import Field
    from controllers.placement.gang.instance import Floats, Indices

__all__ = ["improve", "polish"]

_PASSES = 3
_EPSILON = 1e-9
_FAILURES = 4
"""Every move ages the estimates of the others; after so many that failed the rest is not worth trying."""
_PAIRS_UP_TO = 16
"""Applications with more units get no pair moves: there the moves of whole nodes matter."""


def improve(field: Field) -> float:
    """Apply improving moves, best first, in up to three passes; return the change of cost (<= 0)."""
    gained = 0.0
    for _ in range(_PASSES):
        change = _one_pass(field)
        gained += change
        if change == 0.0:
            break
    return gained


def _one_pass(field: Field) -> float:
    movers, homes = _movers(field)
    changes = field.moves(movers, homes)
    best = changes.min(axis=1)
    gained, moved, failures = 0.0, False, 0
    limit = -1e-9 * (1.0 + abs(float(field.static[0, homes[0]])))
    for row in np.argsort(best, kind="stable").tolist():
        if best[row] >= limit:
            break
        members = np.flatnonzero(movers[row])
        home = int(homes[row])
        if (field.where[members] != home).any():
            continue
        fresh = field.change(members, home) if moved else changes[row]
        column = int(fresh.argmin())
        if fresh[column] < limit and field.apply(members, column):
            gained += float(fresh[column])
            moved, failures = True, 0
            continue
        failures += 1
        if failures >= _FAILURES:
            break
    return gained


def polish(field: Field) -> float:
    """Alternate exchanges of two units with `improve` until neither helps; return the change of cost (<= 0).

    Exchanges matter where nodes are full and edges cross them, which single moves cannot mend.
    """
    gained = 0.0
    for _ in range(_PASSES):
        change = _swaps(field)
        if change == 0.0:
            break
        gained += change + improve(field)
    return gained


def _swaps(field: Field) -> float:
    """Exchange pairs of units on different nodes, most promising first; return the change of cost."""
    placed = np.flatnonzero(field.where[: field.instance.units] >= 0)
    homes = field.where[placed]
    standing = field.standing(placed)
    apart = standing[:, homes] - standing[np.arange(len(placed)), homes][:, None]
    tie = field.tie(placed)
    delta = apart + apart.T + tie + tie.T
    room = field.spare[:, homes] + field.requests[placed].T
    fits = (room[:, None, :] >= field.requests[placed].T[:, :, None]).all(axis=0)
    delta[~(fits & fits.T) | (homes[:, None] == homes)] = np.inf
    one, other = np.nonzero(np.triu(delta < -_EPSILON))
    gained, failures = 0.0, 0
    for at in np.argsort(delta[one, other], kind="stable").tolist():
        first, second = int(placed[one[at]]), int(placed[other[at]])
        if field.where[first] != homes[one[at]] or field.where[second] != homes[other[at]]:
            continue
        change = field.swap(first, second)
        gained += change
        failures = failures + 1 if change == 0.0 else 0
        if failures >= _FAILURES:
            break
    return gained


def _movers(field: Field) -> tuple[Floats, Indices]:
    """Return the 0/1 matrix of movers and their columns: units, then groups of a node, then linked pairs on a node."""
    units = field.instance.units
    where = field.where[:units]
    placed = np.flatnonzero(where >= 0)
    rows = [np.eye(units, field.where.size)]
    if len(placed) < units:
        rows[0] = rows[0][placed]
    homes = [where[placed]]
    groups = np.flatnonzero(np.bincount(where[placed]) > 1)
    if groups.size:
        member = np.zeros((len(groups), field.where.size))
        member[:, :units] = where[None] == groups[:, None]
        rows.append(member)
        homes.append(groups)
    if units <= _PAIRS_UP_TO:
        one, other, both = field.instance.pairs
        joint = (where[one] == where[other]) & (where[one] >= 0)
        rows.append(both[joint])
        homes.append(where[one[joint]])
    return np.concatenate(rows), np.concatenate(homes)

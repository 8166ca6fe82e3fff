"""Local improvement: units, linked pairs and all units of a node change their node while that lowers the cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from berth.scheduling.gang.instance import Floats, Indices
    from berth.scheduling.gang.search_state import SearchState

__all__ = ["exchange_units", "improve"]

_PASSES = 3
_EPSILON = 1e-9
_FAILURES = 4
"""Every move ages the estimates of the others; after so many that failed the rest is not worth trying."""
_PAIRS_UP_TO = 16
"""Applications with more units get no pair moves: there the moves of whole nodes matter."""


def improve(search: SearchState) -> float:
    """Apply improving moves, best first, in up to three passes; return the change of cost (<= 0)."""
    gained = 0.0
    for _ in range(_PASSES):
        change = _one_pass(search)
        gained += change
        if change == 0.0:
            break
    return gained


def _one_pass(search: SearchState) -> float:
    movers, homes = _movers(search)
    changes = search.moves(movers, homes)
    best = changes.min(axis=1)
    gained, moved, failures = 0.0, False, 0
    limit = -1e-9 * (1.0 + abs(float(search.static[0, homes[0]])))
    for row in np.argsort(best, kind="stable").tolist():
        if best[row] >= limit:
            break
        members = np.flatnonzero(movers[row])
        home = int(homes[row])
        if (search.where[members] != home).any():
            continue
        fresh = search.change(members, home) if moved else changes[row]
        column = int(fresh.argmin())
        if fresh[column] < limit and search.apply(members, column):
            gained += float(fresh[column])
            moved, failures = True, 0
            continue
        failures += 1
        if failures >= _FAILURES:
            break
    return gained


def exchange_units(search: SearchState) -> float:
    """Alternate exchanges of two units with `improve` until neither helps; return the change of cost (<= 0).

    Exchanges matter where nodes are full and edges cross them, which single moves cannot mend.
    """
    gained = 0.0
    for _ in range(_PASSES):
        change = _swaps(search)
        if change == 0.0:
            break
        gained += change + improve(search)
    return gained


def _swaps(search: SearchState) -> float:
    """Exchange pairs of units on different nodes, most promising first; return the change of cost."""
    placed = np.flatnonzero(search.where[: search.instance.units] >= 0)
    homes = search.where[placed]
    standing = search.standing(placed)
    apart = standing[:, homes] - standing[np.arange(len(placed)), homes][:, None]
    tie = search.tie(placed)
    delta = apart + apart.T + tie + tie.T
    room = search.spare[:, homes] + search.requests[placed].T
    fits = (room[:, None, :] >= search.requests[placed].T[:, :, None]).all(axis=0)
    delta[~(fits & fits.T) | (homes[:, None] == homes)] = np.inf
    one, other = np.nonzero(np.triu(delta < -_EPSILON))
    gained, failures = 0.0, 0
    for at in np.argsort(delta[one, other], kind="stable").tolist():
        first, second = int(placed[one[at]]), int(placed[other[at]])
        if search.where[first] != homes[one[at]] or search.where[second] != homes[other[at]]:
            continue
        change = search.swap(first, second)
        gained += change
        failures = failures + 1 if change == 0.0 else 0
        if failures >= _FAILURES:
            break
    return gained


def _movers(search: SearchState) -> tuple[Floats, Indices]:
    """Return the 0/1 matrix of movers and their columns: units, then groups of a node, then linked pairs on a node."""
    units = search.instance.units
    where = search.where[:units]
    placed = np.flatnonzero(where >= 0)
    rows = [np.eye(units, search.where.size)]
    if len(placed) < units:
        rows[0] = rows[0][placed]
    homes = [where[placed]]
    groups = np.flatnonzero(np.bincount(where[placed]) > 1)
    if groups.size:
        member = np.zeros((len(groups), search.where.size))
        member[:, :units] = where[None] == groups[:, None]
        rows.append(member)
        homes.append(groups)
    if units <= _PAIRS_UP_TO:
        one, other, both = search.instance.pairs
        joint = (where[one] == where[other]) & (where[one] >= 0)
        rows.append(both[joint])
        homes.append(where[one[joint]])
    return np.concatenate(rows), np.concatenate(homes)

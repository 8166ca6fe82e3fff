"""Relocation: blocks of components change their node together while that lowers the cost.

A block is one or several components on one node. Its rows are the sums of the rows of its components in the search
state, less what they exchange among themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.gang.search_state import INFEASIBLE

if TYPE_CHECKING:
    from collections.abc import Generator

    from berth.scheduling.gang.instance import Bools, Floats, Indices
    from berth.scheduling.gang.search_state import SearchState

PASSES = 3
FAILURES = 4
"""Every change ages the estimates of the others; after so many that failed the rest is not worth trying."""
_PAIRS_UP_TO = 16
"""In applications with more components pairs are not relocated: there the contents of whole nodes matter."""


def relocate(search: SearchState) -> Generator[None, None, float]:
    """Relocate components, linked pairs and contents of nodes, in up to three passes; return the change of cost."""
    gained = 0.0
    for _ in range(PASSES):
        if search.instance.budget.over:
            break
        change = yield from _one_pass(search)
        gained += change
        if change == 0.0:
            break
    return gained


def _one_pass(search: SearchState) -> Generator[None, None, float]:
    """Relocate the blocks that gain most first."""
    yield from search.instance.budget.pause()
    blocks, homes = _blocks(search)
    changes = relocation_costs(search, blocks, homes)
    best = changes.min(axis=1)
    gained, relocated, failures = 0.0, False, 0
    limit = -1e-9 * (1.0 + abs(float(search.static[0, homes[0]])))
    for row in np.argsort(best, kind="stable").tolist():
        yield from search.instance.budget.pause()
        if best[row] >= limit or search.instance.budget.over:
            break
        members = np.flatnonzero(blocks[row])
        home = int(homes[row])
        if (search.where[members] != home).any():
            continue
        fresh = relocation_cost(search, members, home) if relocated else changes[row]
        column = int(fresh.argmin())
        if fresh[column] < limit and _move(search, members, column):
            gained += float(fresh[column])
            relocated, failures = True, 0
            continue
        failures += 1
        if failures >= FAILURES:
            break
    return gained


def _blocks(search: SearchState) -> tuple[Floats, Indices]:
    """Return the 0/1 matrix of blocks and their columns: components, contents of a node, linked pairs on a node."""
    components = search.instance.components
    where = search.where[:components]
    placed = np.flatnonzero(where >= 0)
    rows = [np.eye(components, search.where.size)]
    if len(placed) < components:
        rows[0] = rows[0][placed]
    homes = [where[placed]]
    shared = np.flatnonzero(np.bincount(where[placed]) > 1)
    if shared.size:
        contents = np.zeros((len(shared), search.where.size))
        contents[:, :components] = where[None] == shared[:, None]
        rows.append(contents)
        homes.append(shared)
    if components <= _PAIRS_UP_TO:
        one, other, both = search.instance.pairs
        joint = (where[one] == where[other]) & (where[one] >= 0)
        rows.append(both[joint])
        homes.append(where[one[joint]])
    return np.concatenate(rows), np.concatenate(homes)


def _move(search: SearchState, members: Indices, column: int) -> bool:
    """Move `members` to the node of `column`; undone and False when a shared link would overflow."""
    allowed = None if search.paths is None else np.minimum(search.link, 0.0)  # one that is overdrawn takes no more
    before = [search.remove(component) for component in members.tolist()]
    for component in members.tolist():
        search.place(component, column)
    if allowed is None or (search.link >= allowed).all():
        return True
    for component in members.tolist():
        search.remove(component)
    for component, home in zip(members.tolist(), before, strict=True):
        search.place(component, home)
    return False


def relocation_costs(search: SearchState, blocks: Floats, homes: Indices) -> Floats:
    """Return float64[B, K], the change of cost when each block goes to each node.

    `blocks` is a 0/1 matrix [B, J'] of the components of each block, `homes` int[B] its column. Where a block may not
    go, and where it is, the cost is `INFEASIBLE` or more. Shared links are not looked at.
    """
    forbidden = np.zeros((len(homes), len(search.columns)), dtype=np.bool_)
    if search.limits is not None:
        forbidden |= search.beyond_limits(blocks)
    if search.instance.separate is not None:
        occupied = np.zeros((search.where.size, len(search.columns)))
        placed = np.flatnonzero(search.where >= 0)
        occupied[placed, search.where[placed]] = 1.0
        forbidden |= (blocks @ search.instance.separate @ occupied) > 0
    above = search.above_threshold
    if above is not None:
        above = np.stack([above[np.flatnonzero(row)].min(axis=0) for row in blocks], axis=1)
    traffic = network = None
    if search.traffic is not None:
        traffic = (blocks @ search.received, ((blocks @ search.traffic) * blocks).sum(axis=1))
    if search.network is not None:
        network = (blocks @ search.network, ((blocks @ search.weight) * blocks).sum(axis=1))
    requests = (blocks @ search.requests).T
    return _changes(search, homes, forbidden, requests, blocks @ search.static, above, traffic, network)


def relocation_cost(search: SearchState, members: Indices, home: int) -> Floats:
    """Return float64[K], the row of `relocation_costs` for one block given by its members."""
    homes = np.array([home])
    if search.limits is not None or search.instance.separate is not None or search.above_threshold is not None:
        blocks = np.zeros((1, search.where.size))
        blocks[0, members] = 1.0
        row: Floats = relocation_costs(search, blocks, homes)[0]
        return row
    traffic = network = None
    among = np.ix_(members, members)
    if search.traffic is not None:
        traffic = (search.received[members].sum(axis=0, keepdims=True), search.traffic[among].sum(keepdims=True)[0])
    if search.network is not None:
        network = (search.network[members].sum(axis=0, keepdims=True), search.weight[among].sum(keepdims=True)[0])
    forbidden = np.zeros((1, len(search.columns)), dtype=np.bool_)
    requests = search.requests[members].sum(axis=0)[:, None]
    static = search.static[members].sum(axis=0, keepdims=True)
    only: Floats = _changes(search, homes, forbidden, requests, static, None, traffic, network)[0]
    return only


def _changes(
    search: SearchState,
    homes: Indices,
    forbidden: Bools,
    requests: Floats,
    cost: Floats,
    above_threshold: Floats | None,
    traffic: tuple[Floats, Floats] | None,
    network: tuple[Floats, Floats] | None,
) -> Floats:
    """Return float64[B, K], the change of cost for blocks given by the sums of their rows in the search state.

    `traffic` and `network` come with what the members of each block exchange among themselves, counted in both
    directions. `forbidden` and `cost` are overwritten.
    """
    index = np.arange(len(homes))
    stay = cost[index, homes]
    rest = search.spare[:, None, :] - requests[:, :, None]
    forbidden |= np.logical_or.reduce((rest if above_threshold is None else rest + above_threshold) < 0, axis=0)
    back = search.spare[:, homes] + requests
    if search.waste is not None:
        cost += search.waste.everywhere(rest)
        cost -= search.wasted
        stay -= search.waste.at(back, homes) - search.wasted[homes]
    if search.balance is not None:
        now = search.balance.worth(search.spare)
        cost += now - search.balance.worth(rest)
        stay += search.balance.worth(back) - now[homes]
    if traffic is not None:
        received, internal = traffic
        received[index, homes] -= internal
        total = received.sum(axis=1)
        at_home = received[index, homes]
        extra = total[:, None] - 2 * received
        cost += extra * search.bandwidth_price
        stay += (total - 2 * at_home) * search.bandwidth_price[homes]
        forbidden |= extra > search.bandwidth
        forbidden |= (2 * at_home - total > search.bandwidth[homes])[:, None]
    if network is not None:
        near, internal = network
        cost += near - internal[:, None] * (search.distance[homes] + search.distance[:, homes].T)
        stay += near[index, homes]
    cost -= stay[:, None]
    cost += forbidden * INFEASIBLE
    cost[index, homes] = INFEASIBLE
    return cost

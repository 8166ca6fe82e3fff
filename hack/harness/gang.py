"""Plans of the gang engine, one after another: taking the room they use, and an independent check of what they broke.

The check looks at every budget and every rule from scratch, with plain loops; it shares no code with the engine on
purpose. Budgets are compared with a relative tolerance of 1e-9.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from berth.scheduling.gang import Application, Infrastructure, InfrastructureState

_TOLERANCE = 1e-9


def commit(state: InfrastructureState, application: Application, assignment: npt.ArrayLike) -> None:
    """Take what `application` uses under `assignment` (int[J], -1 for not placed) from the free amounts of `state`."""
    node, peers, links = np.asarray(assignment, dtype=np.intp), application.placed_peers, state.infrastructure.links
    np.subtract.at(state.free, node[node >= 0], application.requests[node >= 0])
    first = np.concatenate([node[application.edges[:, 0]], node[peers.component]])
    second = np.concatenate([node[application.edges[:, 1]], peers.node])
    demand = np.concatenate([application.bandwidth, peers.bandwidth])
    cut = (first != second) & (first >= 0) & (second >= 0)
    for end in (first, second):
        np.subtract.at(state.bandwidth_free, end[cut], demand[cut])
    if links is not None:
        for here, there, amount in zip(first[cut].tolist(), second[cut].tolist(), demand[cut], strict=True):
            state.link_free[list(links.path(here, there, state.infrastructure.location))] -= amount
    state.observe(application)


def violations(
    infrastructure: Infrastructure, placements: Sequence[tuple[Application, npt.ArrayLike]], *, complete: bool = True
) -> list[str]:
    """Return every rule that the placements break together, as sentences; empty when all is well.

    `placements` are applications with their assignment (int[J]), all starting from `infrastructure.free`. With
    `complete` an application with some but not all components placed is a violation as well.

    Thresholds: components that do not name a node must fit below its threshold among themselves; components that
    name it may use the rest.
    """
    found: list[str] = []
    count, kinds = infrastructure.free.shape
    used = np.zeros((count, kinds))
    used_unnamed = np.zeros((count, kinds))
    traffic = np.zeros(count)
    traffic_unnamed = np.zeros(count)
    links = infrastructure.links
    link_use = np.zeros(0 if links is None else len(links.names))

    for number, (application, assignment) in enumerate(placements):
        node = [int(value) for value in np.asarray(assignment)]
        title = f"application {number}"
        placed = [index for index, value in enumerate(node) if value >= 0]
        if complete and 0 < len(placed) < application.size:
            found.append(f"{title}: {len(placed)} of {application.size} components placed")
        for index in placed:
            found.extend(f"{title}: {text}" for text in _component(infrastructure, application, index, node[index]))
            used[node[index]] += application.requests[index]
            if not _named(application, index, node[index]):
                used_unnamed[node[index]] += application.requests[index]
        for one, other in application.separate.tolist():
            if node[one] == node[other] >= 0:
                found.append(f"{title}: {application.names[one]} and {application.names[other]} share a node")
        for first, second, demand, limit, owners in _edges(application, node):
            cost = infrastructure.location_cost[infrastructure.location[first], infrastructure.location[second]]
            if cost > limit:
                found.append(f"{title}: an edge costs {cost}, allowed {limit}")
            for end, owner in zip((first, second), owners, strict=True):
                traffic[end] += demand
                if owner is None or not _named(application, owner, end):
                    traffic_unnamed[end] += demand
            if links is not None:
                for link in links.path(first, second, infrastructure.location):
                    link_use[link] += demand

    for index, name in enumerate(infrastructure.names):
        reserve = 1.0 - infrastructure.threshold[index]
        for r, resource in enumerate(infrastructure.resources):
            capacity, free = infrastructure.capacity[index, r], infrastructure.free[index, r]
            slack = _TOLERANCE * max(abs(capacity), 1e-9)
            if used[index, r] > 0 and used[index, r] > free + slack:
                found.append(f"{name}: {used[index, r]} {resource} used, {free} free")
            if (
                reserve > 0
                and used_unnamed[index, r] > 0
                and used_unnamed[index, r] > free - reserve * capacity + slack
            ):
                found.append(f"{name}: {resource} above its threshold")
        capacity, free = infrastructure.bandwidth_capacity[index], infrastructure.bandwidth_free[index]
        slack = 0.0 if np.isinf(capacity) else _TOLERANCE * capacity
        if traffic[index] > 0 and traffic[index] > free + slack:
            found.append(f"{name}: bandwidth {traffic[index]} used, {free} free")
        kept = reserve * capacity if reserve > 0 and np.isfinite(capacity) else 0.0
        if kept > 0 and traffic_unnamed[index] > 0 and traffic_unnamed[index] > free - kept + slack:
            found.append(f"{name}: bandwidth above its threshold")
    if links is not None:
        for link, name in enumerate(links.names):
            if link_use[link] > links.free[link] + _TOLERANCE * links.capacity[link]:
                found.append(f"link {name}: {link_use[link]} used, {links.free[link]} free")
    return found


def _named(application: Application, component: int, node: int) -> bool:
    return application.named is not None and bool(application.named.row(component)[node])


def _component(infrastructure: Infrastructure, application: Application, index: int, node: int) -> list[str]:
    """Return what is wrong with one component on one node, whatever else is placed."""
    name, where = application.names[index], infrastructure.names[node]
    found = []
    if application.allowed is not None and not application.allowed.row(index)[node]:
        found.append(f"{name} is not allowed on {where}")
    found.extend(
        f"{name} is larger than the largest unit of {resource} on {where}"
        for r, resource in enumerate(infrastructure.resources)
        if application.requests[index, r] > max(infrastructure.max_unit[node, r], 0.0)
    )
    return found


def _edges(
    application: Application, node: list[int]
) -> list[tuple[int, int, float, float, tuple[int | None, int | None]]]:
    """Return origin, target, demand, limit and owning components of every edge between two different nodes."""
    found: list[tuple[int, int, float, float, tuple[int | None, int | None]]] = []
    for index, (one, other) in enumerate(application.edges.tolist()):
        demand, limit = float(application.bandwidth[index]), float(application.max_cost[index])
        found.append((node[one], node[other], demand, limit, (one, other)))
    placed_peers = application.placed_peers
    for index in range(len(placed_peers.component)):
        component, there = int(placed_peers.component[index]), int(placed_peers.node[index])
        demand, limit = float(placed_peers.bandwidth[index]), float(placed_peers.max_cost[index])
        here = node[component]
        if placed_peers.incoming[index]:
            found.append((there, here, demand, limit, (None, component)))
        else:
            found.append((here, there, demand, limit, (component, None)))
    return [edge for edge in found if edge[0] >= 0 and edge[1] >= 0 and edge[0] != edge[1]]

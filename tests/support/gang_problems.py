"""Generated gang problems: every rule of the engine mixed at random, small enough to shrink to something readable."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from berth.scheduling.gang import Application, Infrastructure, LinkModel, NodeCosts, NodeMasks, PlacedPeers

__all__ = ["infrastructures", "problems"]


def _links(draw: st.DrawFn, count: int, places: int) -> LinkModel | None:
    if not draw(st.booleans()):
        return None
    size = draw(st.integers(1, 3))
    capacity = np.array(draw(st.lists(st.integers(0, 12), min_size=size, max_size=size)), dtype=float)
    link = st.integers(0, size - 1)
    keys = [(one, other) for one in range(places) for other in range(one, places)]
    return LinkModel(
        names=tuple(f"link-{index}" for index in range(size)),
        capacity=capacity,
        free=capacity,
        by_location={key: (draw(link),) for key in keys if draw(st.booleans())},
        by_node={node: (draw(link),) for node in range(count) if draw(st.integers(0, 4)) == 0},
    )


@st.composite
def infrastructures(draw: st.DrawFn) -> Infrastructure:
    """Up to seven nodes in up to three locations, any mix of limits."""
    count, places = draw(st.integers(1, 7)), draw(st.integers(1, 3))

    def numbers(low: int, high: int, shape: tuple[int, ...]) -> np.ndarray:
        size = int(np.prod(shape))
        return np.array(draw(st.lists(st.integers(low, high), min_size=size, max_size=size)), dtype=float).reshape(
            shape
        )

    capacity = numbers(0, 12, (count, 2))
    bandwidth = numbers(0, 15, (count,)) if draw(st.booleans()) else np.full(count, np.inf)
    cost = numbers(0, 20, (places, places))
    if draw(st.booleans()):
        cost = np.minimum(cost, cost.T)
    return Infrastructure.of(
        [f"n{index}" for index in range(count)],
        ("cpu", "memory"),
        capacity,
        free=np.maximum(capacity - numbers(0, 3, (count, 2)), -1.0),
        price=numbers(0, 4, (count, 2)) if draw(st.booleans()) else 0.0,
        bandwidth_capacity=bandwidth,
        bandwidth_price=numbers(0, 3, (count,)) if draw(st.booleans()) else 0.0,
        threshold=draw(st.sampled_from([1.0, 0.75, 0.5])),
        max_unit=numbers(2, 9, (count, 2)) if draw(st.booleans()) else np.inf,
        location=draw(st.lists(st.integers(0, places - 1), min_size=count, max_size=count)),
        location_cost=cost,
        links=_links(draw, count, places),
    )


def _masks(draw: st.DrawFn, components: int, count: int) -> NodeMasks | None:
    if not draw(st.booleans()):
        return None
    rows = draw(st.integers(1, components))
    bits = draw(st.lists(st.booleans(), min_size=rows * count, max_size=rows * count))
    group = draw(st.lists(st.integers(0, rows - 1), min_size=components, max_size=components))
    return NodeMasks(np.array(bits).reshape(rows, count), np.array(group, dtype=np.int32))


def _costs(draw: st.DrawFn, components: int, count: int) -> NodeCosts:
    rows = draw(st.integers(1, components))
    amounts = draw(st.lists(st.integers(0, 9), min_size=rows * count, max_size=rows * count))
    group = draw(st.lists(st.integers(0, rows - 1), min_size=components, max_size=components))
    return NodeCosts(np.array(amounts, dtype=float).reshape(rows, count), np.array(group, dtype=np.int32))


@st.composite
def problems(draw: st.DrawFn) -> tuple[Infrastructure, Application]:
    """An infrastructure and an application of up to six components with edges, masks, costs and placed peers."""
    infrastructure = draw(infrastructures())
    count, components = infrastructure.size, draw(st.integers(1, 6))
    pairs = [(one, other) for one in range(components) for other in range(components) if one != other]

    def some(limit: int) -> list[tuple[int, int]]:
        return draw(st.lists(st.sampled_from(pairs), max_size=limit)) if pairs else []

    def amounts(size: int, low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=size, max_size=size))

    edges = some(7)
    fixed = draw(st.lists(st.tuples(st.integers(0, components - 1), st.integers(0, count - 1)), max_size=3))
    limits: Any = [draw(st.sampled_from([np.inf, np.inf, 3.0, 10.0])) for _ in edges]
    application = Application.of(
        np.array(amounts(2 * components, 0, 6), dtype=float).reshape(components, 2),
        edges=edges,
        bandwidth=amounts(len(edges), 0, 5),
        max_cost=limits,
        weight=amounts(len(edges), 0, 3),
        allowed=_masks(draw, components, count),
        placed_peers=PlacedPeers.of(
            [one for one, _ in fixed],
            [node for _, node in fixed],
            bandwidth=amounts(len(fixed), 0, 4),
            max_cost=[draw(st.sampled_from([np.inf, 5.0])) for _ in fixed],
            incoming=[draw(st.booleans()) for _ in fixed],
        ),
        separate=some(2),
        named=_masks(draw, components, count),
        has_selector=[draw(st.booleans()) for _ in range(components)],
        node_costs={name: _costs(draw, components, count) for name in ("Noise", "Wear") if draw(st.booleans())},
    )
    return infrastructure, application

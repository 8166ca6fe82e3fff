"""One replica more for each pod that moves: told before it is done, seen before the next; others' numbers stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.latencypolicy import Surge
from controllers.latency.surge import Scaling, scaling


def surge(replicas: int, previous: int, wanted: int, *, seen: bool = False) -> Surge:
    return Surge(replicas=replicas, previous=previous, wanted=wanted, seen=seen)


@pytest.mark.parametrize(
    ("remembered", "moves", "replicas", "settled", "found"),
    [
        pytest.param(None, 0, 2, True, Scaling(None), id="nothing moves"),
        pytest.param(None, 1, 2, False, Scaling(surge(2, 2, 3), (2, 3)), id="a move begins"),
        pytest.param(
            surge(2, 2, 3), 1, 2, False, Scaling(surge(2, 2, 3), (2, 3)), id="the write was lost, and is made again"
        ),
        pytest.param(surge(2, 2, 3), 1, 3, False, Scaling(surge(2, 2, 3, seen=True)), id="it is seen"),
        pytest.param(surge(2, 2, 3, seen=True), 2, 3, False, Scaling(surge(2, 3, 4), (3, 4)), id="another move begins"),
        pytest.param(surge(2, 2, 3, seen=True), 0, 3, False, Scaling(surge(2, 2, 3, seen=True)), id="not settled yet"),
        pytest.param(surge(2, 2, 3, seen=True), 0, 3, True, Scaling(surge(2, 3, 2), (3, 2)), id="all moves have ended"),
        pytest.param(
            surge(2, 3, 2), 0, 3, True, Scaling(surge(2, 3, 2), (3, 2)), id="the write back was lost, and is made again"
        ),
        pytest.param(surge(2, 3, 2), 0, 2, True, Scaling(None), id="all is as before"),
        pytest.param(surge(2, 2, 3, seen=True), 1, 2, True, Scaling(None, None, True), id="somebody has taken it away"),
        pytest.param(surge(2, 2, 3), 1, 5, True, Scaling(None, None, True), id="somebody has set another number"),
        pytest.param(surge(2, 3, 2), 0, 5, True, Scaling(None), id="another number when nothing moves"),
    ],
)
def test_steps(remembered: Surge | None, moves: int, replicas: int, settled: bool, found: Scaling) -> None:
    assert scaling(remembered, moves, replicas, settled=settled) == found


@given(
    replicas=st.integers(1, 5),
    steps=st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans(), st.booleans()), max_size=30),
)
def test_whatever_is_lost_the_number_is_as_before_in_the_end(
    replicas: int, steps: list[tuple[int, bool, bool, bool]]
) -> None:
    """Moves begin and end, the process dies before or after its write, and what it was to write is lost or not."""
    remembered: Surge | None = None
    deployment = replicas
    for moves, settled, told, written in [*steps, *[(0, True, True, True)] * 6]:
        found = scaling(remembered, moves, deployment, settled=settled)
        assert not found.taken_over
        if not told:
            continue
        remembered = found.surge
        if found.write is not None and written:
            assert deployment == found.write[0]
            deployment = found.write[1]
        assert replicas <= deployment <= replicas + 3
    assert (deployment, remembered) == (replicas, None)

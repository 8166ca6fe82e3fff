"""One replica more for each pod that moves: told before it is done, seen before the next; others' numbers stay."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from berth.api.latencypolicy import Surge
from controllers.latency.surge import Scaling, let_down, scaling


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


LEAVING = surge(3, 3, 3, seen=True).model_copy(update={"leaving": "p"})


@pytest.mark.parametrize(
    ("remembered", "replicas", "wanted", "gone", "settled", "found"),
    [
        pytest.param(None, 2, 2, False, False, Scaling(None), id="as many as are wanted"),
        pytest.param(None, 2, 4, False, False, Scaling(surge(4, 2, 4), (2, 4)), id="more are wanted"),
        pytest.param(surge(4, 2, 4), 2, 4, False, False, Scaling(surge(4, 2, 4), (2, 4)), id="the write was lost"),
        pytest.param(surge(4, 2, 4), 4, 4, False, False, Scaling(None), id="they are there"),
        pytest.param(surge(4, 2, 4), 5, 4, False, False, Scaling(None), id="somebody has set another number"),
        pytest.param(None, 3, 2, False, False, Scaling(LEAVING), id="fewer are wanted: a pod leaves first"),
        pytest.param(LEAVING, 3, 2, False, True, Scaling(LEAVING), id="it is there still"),
        pytest.param(LEAVING, 3, 3, False, True, Scaling(None), id="it may stay after all"),
        pytest.param(LEAVING, 3, None, False, True, Scaling(None), id="the number is not ours any more"),
        pytest.param(LEAVING, 3, 2, True, False, Scaling(LEAVING), id="it is gone, no other has come in its place"),
        pytest.param(LEAVING, 3, 2, True, True, Scaling(surge(2, 3, 2), (3, 2)), id="another has"),
        pytest.param(LEAVING, 3, 3, True, True, Scaling(surge(2, 3, 2), (3, 2)), id="it is too late to stay"),
        pytest.param(surge(2, 3, 2), 3, 2, True, True, Scaling(surge(2, 3, 2), (3, 2)), id="that write was lost"),
        pytest.param(surge(2, 3, 2), 2, 2, True, True, Scaling(None), id="there is one less"),
        pytest.param(LEAVING, 1, 2, False, True, Scaling(None), id="somebody has set a number meanwhile"),
    ],
)
def test_the_number_follows_the_users(
    remembered: Surge | None, replicas: int, wanted: int | None, gone: bool, settled: bool, found: Scaling
) -> None:
    assert scaling(remembered, 0, replicas, settled=settled, wanted=wanted, leaving="p", gone=gone) == found


@pytest.mark.parametrize(
    ("remembered", "replicas", "written"),
    [
        pytest.param(surge(2, 2, 3, seen=True), 3, (3, 2), id="as it was raised"),
        pytest.param(surge(2, 2, 3), 3, (3, 2), id="as it was raised, and not seen"),
        pytest.param(surge(2, 2, 3), 2, None, id="it was not raised yet"),
        pytest.param(surge(2, 3, 2), 3, (3, 2), id="it was to be lowered"),
        pytest.param(surge(2, 3, 2), 2, None, id="it was lowered"),
        pytest.param(surge(2, 4, 3, seen=True), 4, None, id="somebody has raised it again"),
        pytest.param(surge(2, 2, 3, seen=True), 5, None, id="somebody has set another number"),
        pytest.param(surge(4, 2, 4), 2, None, id="more were to come for users"),
        pytest.param(LEAVING, 3, None, id="a pod was to leave"),
    ],
)
def test_what_a_policy_raised_is_let_down_once_it_is_gone(
    remembered: Surge, replicas: int, written: tuple[int, int] | None
) -> None:
    assert let_down(remembered, replicas) == written


def test_no_status_that_somebody_has_written_makes_a_number_below_none() -> None:
    remembered = Surge(replicas=0, previous=1, wanted=1, seen=True, leaving="p")
    assert scaling(remembered, 0, 1, settled=True, gone=True) == Scaling(surge(0, 1, 0), (1, 0))
    remembered = remembered.model_copy(update={"wanted": 0})
    assert scaling(remembered, 0, 0, settled=True, gone=True) == Scaling(None)


def test_nobody_leaves_where_nobody_may() -> None:
    assert scaling(None, 0, 3, settled=True, wanted=2) == Scaling(None)


@pytest.mark.parametrize(
    ("remembered", "moves", "wanted", "found"),
    [
        pytest.param(surge(3, 3, 4), 1, None, Scaling(surge(3, 3, 4), (3, 4)), id="it is tried while it is wanted"),
        pytest.param(surge(3, 3, 4), 0, None, Scaling(None), id="its move was given up"),
        pytest.param(surge(2, 3, 4), 1, None, Scaling(surge(2, 3, 3, seen=True)), id="one of two moves was given up"),
        pytest.param(surge(2, 3, 2), 0, None, Scaling(surge(2, 3, 2), (3, 2)), id="the one too many is to go"),
        pytest.param(surge(2, 3, 2), 1, None, Scaling(surge(2, 3, 3, seen=True)), id="another move takes it"),
        pytest.param(surge(4, 3, 4), 0, 4, Scaling(surge(4, 3, 4), (3, 4)), id="users need more"),
        pytest.param(surge(4, 3, 4), 0, 3, Scaling(None), id="users have gone meanwhile"),
    ],
)
def test_a_number_that_was_refused(remembered: Surge, moves: int, wanted: int | None, found: Scaling) -> None:
    """Of a Deployment that says three."""
    assert scaling(remembered, moves, 3, settled=True, wanted=wanted, refused=True) == found


@given(
    replicas=st.integers(1, 5),
    steps=st.lists(
        st.tuples(st.integers(0, 3), st.booleans(), st.booleans(), st.sampled_from(["done", "lost", "refused"])),
        max_size=30,
    ),
)
@example(replicas=2, steps=[(1, True, True, "done"), (2, True, True, "refused"), (1, True, True, "done")])
def test_whatever_is_lost_the_number_is_as_before_in_the_end(
    replicas: int, steps: list[tuple[int, bool, bool, str]]
) -> None:
    """Moves begin and end, the process dies before or after its write, and that is made, lost or refused."""
    remembered: Surge | None = None
    deployment, refused = replicas, False
    for moves, settled, told, written in [*steps, *[(0, True, True, "done")] * 6]:
        found = scaling(remembered, moves, deployment, settled=settled, refused=refused)
        assert not found.taken_over
        if not told:
            continue
        remembered = found.surge
        if found.write is not None and written != "lost":
            assert deployment == found.write[0]
            refused = written == "refused"
            deployment = deployment if refused else found.write[1]
        assert replicas <= deployment <= replicas + 3
    assert (deployment, remembered) == (replicas, None)


@given(
    replicas=st.integers(1, 5),
    steps=st.lists(st.tuples(st.integers(1, 5), st.booleans(), st.booleans(), st.booleans()), max_size=30),
    wanted=st.integers(1, 5),
)
def test_whatever_is_lost_as_many_as_users_need_are_there_in_the_end(
    replicas: int, steps: list[tuple[int, bool, bool, bool]], wanted: int
) -> None:
    """Users come and go, the process dies before or after its write; a pod that leaves is away at times."""
    remembered: Surge | None = None
    deployment, gone = replicas, False
    for number, away, told, written in [*steps, *[(wanted, True, True, True)] * 20]:
        found = scaling(remembered, 0, deployment, settled=gone, wanted=number, leaving="p", gone=gone)
        assert not found.taken_over
        if not told:
            continue
        remembered = found.surge
        gone = remembered is not None and remembered.leaving is not None and (gone or away)
        if found.write is not None and written:
            assert deployment == found.write[0]
            assert found.write[1] >= deployment - 1
            deployment = found.write[1]
    assert (deployment, remembered) == (wanted, None)

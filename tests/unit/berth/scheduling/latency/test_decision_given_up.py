"""What moves leave that are given up: the pod that was created for one goes, and no other."""

from __future__ import annotations

import pytest

from berth.api.latencypolicy import LatencyPolicyStatus, Move, NodeState, Outcome, Surge
from berth.scheduling.latency import moves
from berth.scheduling.latency.decision import decide
from berth.scheduling.latency.situation import Create, Evict, Pod, View
from tests.support.latency import again, known, later, policy

NODES = ("a", "b", "c", "d")


def move(source: str, target: str, new: str | None, outcome: Outcome = Outcome.CANCELLED) -> Move:
    return Move(
        pod=f"on-{source}",
        source_node=source,
        target_node=target,
        reason="Nearer",
        outcome=outcome,
        start_time=later(0),
        new_pod=new,
    )


@pytest.mark.parametrize(
    ("made", "pods", "evicted"),
    [
        pytest.param([move("a", "b", "new")], {"old": "a", "new": "b"}, ["new"], id="the pod that it was given up for"),
        pytest.param([move("a", "b", "new")], {"old": "a", "other": "b"}, [], id="one made in its place on that node"),
        pytest.param([move("a", "b", None)], {"old": "a", "other": "b"}, [], id="none had come"),
        pytest.param(
            [move("a", "b", "kept"), move("b", "c", "new", Outcome.MOVED)],
            {"kept": "b", "new": "c"},
            [],
            id="one was given up before another was made",
        ),
        pytest.param(
            [move("a", "b", "kept"), move("b", "c", "new")],
            {"kept": "b", "new": "c"},
            ["new"],
            id="one was given up before, and its pod stayed",
        ),
    ],
)
def test_what_goes(made: list[Move], pods: dict[str, str], evicted: list[str]) -> None:
    status = LatencyPolicyStatus(moves=tuple(made), surge=Surge(replicas=1, previous=1, wanted=2, seen=True))
    view = View(tuple(Pod(name, node) for name, node in pods.items()), 1, NODES, NODES)
    found = decide(status, policy(hard=80), view, later(60))
    assert [action.pod for action in found.actions if isinstance(action, Evict)] == evicted


@pytest.mark.parametrize("outcome", [Outcome.CREATING, Outcome.CANCELLED])
@pytest.mark.parametrize(
    ("replicas", "unready", "evicted"),
    [
        pytest.param(2, (), ["new"], id="enough others serve"),
        pytest.param(2, ("other",), [], id="another does not serve"),
        pytest.param(2, ("new",), ["new"], id="it does not serve itself"),
        pytest.param(1, ("other",), ["new"], id="another is not needed"),
    ],
)
def test_it_goes_while_as_many_others_serve_as_should(
    outcome: Outcome, replicas: int, unready: tuple[str, ...], evicted: list[str]
) -> None:
    surge = Surge(replicas=replicas, previous=replicas, wanted=replicas + 1, seen=True)
    status = LatencyPolicyStatus(moves=(move("a", "b", "new", outcome),), surge=surge)
    places = {"on-a": "a", "new": "b", "other": "c"}
    view = View(tuple(Pod(name, node, name not in unready) for name, node in places.items()), replicas, NODES, NODES)
    found = decide(status, policy(hard=80), view, later(moves.PATIENCE.total_seconds()))
    assert [action.pod for action in found.actions if isinstance(action, Evict)] == evicted
    assert [each.outcome for each in found.status.moves] == [Outcome.CANCELLED]


@pytest.mark.parametrize(
    ("new", "refused", "rejections"),
    [
        pytest.param(None, "exceeded quota", 0, id="no pod may be created"),
        pytest.param(None, "", 1, id="none came there"),
        pytest.param("new", "", 1, id="it got not ready"),
        pytest.param("new", "exceeded quota", 1, id="it got not ready, and others may not be created"),
    ],
)
def test_a_node_is_left_alone_for_what_happened_there(new: str | None, refused: str, rejections: int) -> None:
    status = LatencyPolicyStatus(moves=(move("a", "b", new, Outcome.CREATING),))
    pods = (Pod("on-a", "a"), *((Pod(new, "b", ready=False),) if new else ()))
    view = View(pods, 1, NODES, NODES, refused=refused)
    found = decide(status, policy(hard=80), view, later(moves.PATIENCE.total_seconds())).status
    assert [each.outcome for each in found.moves] == [Outcome.CANCELLED]
    assert [known.rejections for known in found.nodes if known.node == "b"] == [rejections] * bool(rejections)


@pytest.mark.parametrize(
    ("new", "elsewhere", "refused", "begun"),
    [
        pytest.param(None, "", "exceeded quota", True, id="no pod may be created"),
        pytest.param(None, "", "", False, id="none came there"),
        pytest.param(None, "c", "exceeded quota", False, id="one came elsewhere"),
        pytest.param("new", "", "exceeded quota", False, id="it got not ready, and others may not be created"),
    ],
)
def test_a_move_for_which_no_pod_may_be_created_counts_as_none(
    new: str | None, elsewhere: str, refused: str, begun: bool
) -> None:
    """Another begins although one an hour is allowed, once there is no pod too many."""
    spec, over = policy(hard=80, max_per_hour=1), moves.PATIENCE.total_seconds()
    nodes = [known("a", 120, NodeState.INVALID), known("b", 20, NodeState.SOFT_VALID)]
    nodes = [each.model_copy(update={"time": later(over)}) for each in nodes]
    status = LatencyPolicyStatus(moves=(move("a", "b", new, Outcome.CREATING),), nodes=tuple(nodes))
    pods = [Pod("on-a", "a")]
    added = [*([Pod(new, "b", ready=False)] if new else []), *([Pod("lost", elsewhere)] if elsewhere else [])]
    view = View((*pods, *added), 1, NODES, NODES, refused=refused)
    first = decide(status, spec, view, later(over))
    second = decide(again(first.status), spec, view._replace(pods=tuple(pods), refused=""), later(over + 1))
    created = [action for each in (first, second) for action in each.actions if isinstance(action, Create)]
    assert (len(created), len(second.status.moves)) == (int(begun), 1 + begun)


def test_a_move_says_which_pod_has_come() -> None:
    status = LatencyPolicyStatus(moves=(move("a", "b", None, Outcome.CREATING),))
    view = View((Pod("on-a", "a"), Pod("new", "b", ready=False)), 1, NODES, NODES)
    [found] = decide(status, policy(hard=80), view, later(60)).status.moves
    assert (found.outcome, found.new_pod) == (Outcome.CREATING, "new")


@pytest.mark.parametrize(
    ("unready", "evicted"),
    [
        pytest.param((), ["on-a", "on-b"], id="enough serve without both"),
        pytest.param(("on-c",), ["on-a"], id="enough serve without one alone"),
        pytest.param(("on-c", "new-d"), [], id="too few in any case"),
    ],
)
def test_of_moves_that_end_at_once_as_many_pods_go_as_are_not_needed(
    unready: tuple[str, ...], evicted: list[str]
) -> None:
    begun = (move("a", "d", "new-d", Outcome.EVICTING), move("b", "e", "new-e", Outcome.EVICTING))
    known_then = {"ready_time": later(0), "expected_microseconds": 20_000}
    made = tuple(each.model_copy(update=known_then) for each in begun)
    places = {"on-a": "a", "on-b": "b", "on-c": "c", "new-d": "d", "new-e": "e"}
    pods, nodes = tuple(Pod(name, node, name not in unready) for name, node in places.items()), (*NODES, "e")
    view = View(pods, 3, nodes, nodes)
    surge = Surge(replicas=3, previous=3, wanted=5, seen=True)
    found = decide(LatencyPolicyStatus(moves=made, surge=surge), policy(hard=80, max_concurrent=2), view, later(10))
    assert [action.pod for action in found.actions if isinstance(action, Evict)] == evicted


@pytest.mark.parametrize("outcome", sorted(moves.OPEN))
@pytest.mark.parametrize("new", [None, "new"], ids=["none came there", "one came there"])
@pytest.mark.parametrize(("node", "ended"), [("b", False), ("gone", True)], ids=["it is there", "it is gone"])
def test_a_move_is_given_up_as_soon_as_its_node_is_gone(
    outcome: Outcome, new: str | None, node: str, ended: bool
) -> None:
    status = LatencyPolicyStatus(moves=(move("a", node, new, outcome),))
    pods = (Pod("on-a", "a"), *((Pod(new, node, ready=False),) if new else ()))
    found = decide(status, policy(hard=80), View(pods, 1, NODES, NODES), later(1))
    goes_on = outcome if new else Outcome.CREATING
    assert [each.outcome for each in found.status.moves] == [Outcome.CANCELLED if ended else goes_on]
    assert [action.pod for action in found.actions if isinstance(action, Evict)] == ([new] if ended and new else [])


@pytest.mark.parametrize("outcome", sorted(moves.OPEN))
@pytest.mark.parametrize(
    ("elsewhere", "candidates", "ended"),
    [
        pytest.param("c", "cd", True, id="the node takes none, and the new pod is elsewhere"),
        pytest.param("", "cd", False, id="the new pod has no node yet"),
        pytest.param(None, "cd", False, id="there is none yet"),
        pytest.param("c", "bcd", False, id="the node would take one"),
    ],
)
def test_a_move_is_given_up_where_its_node_takes_no_pod_and_the_new_one_is_elsewhere(
    outcome: Outcome, elsewhere: str | None, candidates: str, ended: bool
) -> None:
    """The node was cordoned, say, after the move had begun. It is not left alone for that."""
    status = LatencyPolicyStatus(moves=(move("a", "b", None, outcome),))
    pods = (Pod("on-a", "a"), *((Pod("new", elsewhere),) if elsewhere is not None else ()))
    found = decide(status, policy(hard=80), View(pods, 1, NODES, tuple(candidates)), later(1))
    assert [each.outcome for each in found.status.moves] == [Outcome.CANCELLED if ended else Outcome.CREATING]
    assert not [action for action in found.actions if isinstance(action, Evict)]
    assert not any(known.rejections for known in found.status.nodes)


@pytest.mark.parametrize(
    ("begun", "first"),
    [
        pytest.param(0.0, Outcome.CREATING, id="which goes on"),
        pytest.param(-moves.PATIENCE.total_seconds(), Outcome.CANCELLED, id="which is given up"),
    ],
)
@pytest.mark.parametrize(
    ("second", "ended"),
    [
        pytest.param(None, False, id="its pod is still to be created"),
        pytest.param("", False, id="its pod has no node yet"),
        pytest.param("d", True, id="its pod is elsewhere"),
    ],
)
def test_the_pod_of_one_move_is_not_taken_for_that_of_another(
    begun: float, first: Outcome, second: str | None, ended: bool
) -> None:
    """Without users no node is a candidate, so that is no news of the other's node."""
    one, other = move("a", "b", "first", Outcome.CREATING), move("c", "e", None, Outcome.CREATING)
    one = one.model_copy(update={"start_time": later(begun)})
    pods = [Pod("on-a", "a"), Pod("on-c", "c"), Pod("first", "b", ready=False)]
    pods += [Pod("second", second)] if second is not None else []
    surge = Surge(replicas=2, previous=2, wanted=4, seen=True)
    view = View(tuple(pods), 2, (*NODES, "e"), ())
    status = LatencyPolicyStatus(moves=(one, other), surge=surge)
    found = decide(status, policy(hard=80, max_concurrent=2), view, later(1)).status
    assert [each.outcome for each in found.moves] == [first, Outcome.CANCELLED if ended else Outcome.CREATING]

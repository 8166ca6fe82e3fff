"""A policy by whose wish the published rules decide, on a real API server, by two controllers one after the other.

Rounds are four seconds apart. Left out: longer searches (tests/unit/bench/latency/test_published_rounds.py).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from berth.api.latencypolicy import LatencyPolicySpec, LatencyPolicyStatus, PublishedRule
from berth.cli.main import app
from berth.scheduling.latency.classification import Limits
from berth.scheduling.latency.moves import open_moves
from berth.scheduling.latency.published.rules import RULES
from berth.scheduling.latency.published.search import Visited
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.chosen_constants import chosen_constants
from tests.support.latency_stand import LatencyStand

ARGUMENTS = ["--no-leader-elect", "--latency-listen", "127.0.0.1", "--latency-port", "0"]
ARGUMENTS += ["--latency-status-interval", "1"]
ROUND = 4.0
FAR = {"a": 120, "b": 60, "c": 20, "d": 70}


@pytest.fixture
def controller(lively: LocalCluster, tmp_path: Path) -> Callable[[], ControllerProcess]:
    """Starts a latency controller of brisk rounds."""
    chosen = {"berth.scheduling.latency.published.rounds.ROUND_SECONDS": ROUND}
    return partial(
        ControllerProcess.start,
        ["latency"],
        kubeconfig=lively.kubeconfig,
        directory=tmp_path,
        arguments=ARGUMENTS,
        environment=chosen_constants(tmp_path / "constants", **chosen),
    )


def is_over(status: LatencyPolicyStatus) -> bool:
    """Whether rounds found nothing to leave, long after the last move."""
    ended = [move.ready_time or move.start_time for move in status.moves]
    late = status.search is not None and status.search.round_time >= max(ended) + timedelta(seconds=3 * ROUND)
    return late and not open_moves(status)


def check(stand: LatencyStand, rule: PublishedRule, limits: Limits) -> None:
    """Each move was from a node that the rule leaves to one that it takes, and it leaves none in the end."""
    nodes = {name: Visited(name, None) for name in stand.far}
    place = next(iter(nodes))
    nodes[place] = nodes[place].reached()._replace(microseconds=stand.far[place] * 1000)
    for move in stand.status().moves:
        known = tuple(nodes.values())
        assert move.source_node == place
        assert place in RULES[rule].leave(known, limits), known
        best = nodes[RULES[rule].destination(known)]
        goal = nodes[move.target_node]
        assert (goal.visits, goal.pods) == (best.visits, best.pods), "of equal nodes it may be any"
        nodes[place] = nodes[place]._replace(pods=0, dropped=True)
        place = move.target_node
        nodes[place] = goal.reached()._replace(microseconds=stand.far[place] * 1000)
    assert RULES[rule].leave(tuple(nodes.values()), limits) == ()
    search = stand.status().search
    assert search is not None
    visits = {each.node: (each.visits, each.left) for each in search.visited}
    assert visits == {node.node: (node.visits, node.dropped) for node in nodes.values() if node.visits}


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        pytest.param({"hardMaxLatency": 65}, PublishedRule.HARD, id="hard limit"),
        pytest.param({"hardMaxLatency": 65, "softMaxLatency": 30}, PublishedRule.HARD_AND_SOFT, id="both limits"),
        pytest.param({"objective": "Minimum"}, PublishedRule.MINIMUM, id="minimum"),
    ],
)
def test_a_search_goes_on_with_the_next_controller(
    lively: LocalCluster, controller: Callable[[], ControllerProcess], spec: dict[str, Any], rule: PublishedRule
) -> None:
    with LatencyStand(lively, FAR) as stand:
        stand.deploy()
        stand.want(decisions="Published", moves={"maxPerHour": 20}, **spec)
        with controller() as process:
            eventually(stand.outcomes, timeout=120, what="a first move")
            process.kill()
        begun = stand.status().search
        assert begun is not None
        with controller():
            status = eventually(stand.status, accept=is_over, timeout=240, what="the end")
            assert status.search is not None
            assert (status.search.rule, status.search.start_time) == (rule, begun.start_time)
            check(stand, rule, Limits.of(LatencyPolicySpec.model_validate({"targetRef": {"name": "web"}} | spec)))
            where = ["-n", stand.stage.name, "--kubeconfig", str(lively.kubeconfig)]
            page = CliRunner().invoke(app, ["explain", "lp/web", *where], env={"COLUMNS": "250"}).stdout
            assert f"the published rule {rule} decides" in page
            assert f"the published rule {rule} decides" in stand.message("Working")
        assert (max(stand.serving), stand.least()) == (2, 1), "another pod is there first"

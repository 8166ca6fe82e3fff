"""Rollouts beside plans from scratch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from bench.replicas.boutique import Case
from bench.replicas.cluster import Manifest
from bench.replicas.rollouts import Ending, Rollout, page, roll_out


def alternating(documents: Sequence[Manifest]) -> Mapping[str, str]:
    """From scratch on two nodes of a zone; later pods on one of another."""
    pods = [each for each in documents if each["kind"] == "Pod"]
    waiting = [each["metadata"]["name"] for each in pods if not each["spec"].get("nodeName")]
    later = len(waiting) < len(pods)
    return {name: "us-east-a-012" if later else f"eu-west-a-00{at % 2}" for at, name in enumerate(waiting)}


def rolled(*turns: str) -> Ending:
    return roll_out(Rollout(Case(), ((1, 0),), "together", turns, 0), alternating)


def test_a_rollout_is_judged_beside_a_plan_from_scratch() -> None:
    ending = rolled()
    assert (ending.lived.pods, ending.fresh.pods) == (33, 33)
    assert (ending.lived.survive_node, ending.fresh.survive_node) == (0, 11)
    assert ending.lived.cost == 0.0 < ending.fresh.cost
    assert ending.loses == (True, False)
    assert not ending.dearer
    assert ending.objectives[0] > ending.objectives[1]
    assert ending.settled


@pytest.mark.parametrize(
    ("turns", "pods"),
    [((), 33), (("grown",), 44), (("shrunk",), 22), (("shrunk", "shrunk"), 22), (("back", "killed"), 33)],
)
def test_both_have_as_many_replicas_in_the_end(turns: tuple[str, ...], pods: int) -> None:
    ending = rolled(*turns)
    assert (ending.lived.pods, ending.fresh.pods) == (pods, pods)
    assert ending.settled


def test_rollouts_by_chance_are_the_same_every_time() -> None:
    assert [Rollout.of(seed) for seed in range(20)] == [Rollout.of(seed) for seed in range(20)]
    assert len({Rollout.of(seed).case.rule for seed in range(100)}) == 6


def test_a_page_has_a_row_for_each_kind_of_rules() -> None:
    lines = page([rolled()]).splitlines()
    assert [line.split("|")[1].strip() for line in lines] == ["rules", "---", "none", "all"]
    assert [cell.strip() for cell in lines[-1].split("|")[2:7]] == ["1", "0", "1", "0", "1"]

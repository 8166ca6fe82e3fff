"""Applications that are scaled, beside plans from scratch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from bench.replicas.cluster import Manifest
from bench.replicas.scalings import STEPS, scaled


def in_turns(documents: Sequence[Manifest]) -> Mapping[str, str]:
    """Waiting pods on two nodes of a zone, alternately."""
    pods = [each for each in documents if each["kind"] == "Pod"]
    waiting = [each["metadata"]["name"] for each in pods if not each["spec"].get("nodeName")]
    return {name: f"eu-west-a-00{at % 2}" for at, name in enumerate(waiting)}


def test_every_step_is_judged_beside_a_plan_of_as_many_replicas() -> None:
    steps = list(scaled(0, in_turns))
    assert len(steps) == STEPS
    assert all(step.settled for step in steps)
    pods = [step.lived.pods for step in steps]
    assert pods == [step.fresh.pods for step in steps]
    assert all(before != after for before, after in itertools.pairwise(pods))
    # One that shrinks needs no plan.
    grown = [step.plans > 0 for step in steps[1:]]
    assert grown == [after > before for before, after in itertools.pairwise(pods)]


def test_walks_by_chance_are_the_same_every_time() -> None:
    walks = [[step.lived for step in scaled(3, in_turns)] for _ in range(2)]
    assert walks[0] == walks[1]

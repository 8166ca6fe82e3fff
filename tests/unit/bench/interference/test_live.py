"""What the live benchmark asks of the API server, and how it reads the controller's metrics; it is run by hand."""

from __future__ import annotations

import math
import random

import pytest

from bench.interference.live import manifest, nodes_of, planned
from bench.interference.scale import SOCKET_CPUS, SOCKETS, pod
from berth.api.labels import LABEL_INTERFERENCE_CLASS


def test_nodes_have_room_for_all_of_their_sockets() -> None:
    specs, sockets = nodes_of(60, random.Random(1))
    assert [spec.name for spec in specs] == list(sockets)
    assert set(sockets.values()) == set(SOCKETS)
    for spec in specs:
        assert spec.capacity == spec.allocatable
        assert spec.capacity["cpu"] == str(SOCKET_CPUS * sockets[spec.name])


@pytest.mark.parametrize("workload", [0, 7])
def test_pods_are_those_of_the_planners_benchmark(workload: int) -> None:
    one, body = pod(3, workload), manifest(3, workload)
    assert body["metadata"]["labels"][LABEL_INTERFERENCE_CLASS] == one.metadata.labels[LABEL_INTERFERENCE_CLASS]
    assert body["spec"]["schedulerName"] == one.spec.scheduler_name
    [container] = body["spec"]["containers"]
    assert container["resources"]["requests"] == one.spec.containers[0].resources.requests


@pytest.mark.parametrize(
    ("metrics", "seconds"),
    [
        pytest.param(
            'berth_placement_decision_duration_seconds_sum{entry="group"} 9.0\n'
            'berth_placement_decision_duration_seconds_sum{entry="pod"} 2.5\n',
            2.5,
            id="pods",
        ),
        pytest.param("", math.nan, id="none"),
    ],
)
def test_planning_time_is_that_of_pods(metrics: str, seconds: float) -> None:
    assert planned(metrics) == pytest.approx(seconds, nan_ok=True)

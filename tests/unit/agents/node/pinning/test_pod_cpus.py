"""What a pod requests, and what it is to be able to use."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agents.node.pinning.pod_cpus import PodCpus, cpus_of
from berth.kube.objects import Pod


def container(requests: Any = None, limits: Any = None, **fields: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": requests} if requests else {}, "limits": {"cpu": limits} if limits else {}}
    return {"name": "c", "resources": resources, **fields}


def pod(*containers: dict[str, Any], status: dict[str, Any] | None = None, **spec: Any) -> Pod:
    fields = {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}, "status": status or {}}
    return msgspec.convert(fields, Pod)


def resize(reason: str, **status: Any) -> dict[str, Any]:
    """Status of a pod whose containers, or all of it, were to have other resources."""
    return {"conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}], **status}


HAS_TWO = {"containerStatuses": [container("1", "2")]}


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        pytest.param(pod(), (0, 0), id="no containers"),
        pytest.param(pod(container()), (0, 0), id="nothing is stated"),
        pytest.param(pod(container("250m"), container("1")), (1250, 1250), id="containers run together"),
        pytest.param(pod(container("1", "4"), container("500m")), (1500, 4500), id="a limit of one"),
        pytest.param(pod(container(None, "2")), (0, 2000), id="a limit alone: the API server adds a request"),
        pytest.param(pod(container("2", "1")), (2000, 2000), id="a limit that is less"),
        pytest.param(
            pod(container("1"), initContainers=[container("500m", restartPolicy="Always")]),
            (1500, 1500),
            id="sidecars run beside them",
        ),
        pytest.param(
            pod(
                container("1", "3"),
                initContainers=[container("1", "5"), container("4"), container("2", restartPolicy="Always")],
            ),
            (4000, 5000),
            id="an init container that takes more than what runs later",
        ),
        pytest.param(
            pod(
                container("1"),
                initContainers=[
                    container("500m", restartPolicy="Always"),
                    container("8"),
                    container("2", restartPolicy="Always"),
                ],
            ),
            (8500, 8500),
            id="an init container beside the sidecars before it",
        ),
        pytest.param(
            pod(container("1", "1"), resources={"requests": {"cpu": "3"}, "limits": {"cpu": "5"}}),
            (3000, 5000),
            id="of the whole pod",
        ),
        pytest.param(
            pod(container("1", "64"), status=resize("Infeasible", **HAS_TWO)), (1000, 2000), id="what it cannot become"
        ),
        pytest.param(
            pod(container("1", "4"), status=resize("Deferred", **HAS_TWO)), (1000, 4000), id="what it may become"
        ),
        pytest.param(
            pod(
                container("1"),
                resources={"requests": {"cpu": "3"}, "limits": {"cpu": "64"}},
                status=resize("Infeasible", resources={"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}),
            ),
            (2000, 4000),
            id="what all of it cannot become",
        ),
        pytest.param(pod(container("0.0001")), (1, 1), id="rounded up"),
        pytest.param(pod(container("1", "9E")), (1000, 2**40), id="huge"),
        pytest.param(pod(container("many", "-1")), (0, 0), id="no quantity"),
    ],
)
def test_cpus(of: Pod, expected: tuple[int, int]) -> None:
    assert cpus_of(of) == PodCpus(*expected)

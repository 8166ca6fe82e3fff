"""Effective requests of pods: containers, init containers, sidecars, overhead, pod level, resizes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects import Pod
from berth.scheduling.requests import SCORING_DEFAULTS, pod_requests, resize_infeasible
from berth.scheduling.units import LIMIT, resource_units, whole_units

MI = 1024 * 1024


def make(spec: dict[str, Any], status: dict[str, Any] | None = None) -> Pod:
    return msgspec.convert({"spec": spec, "status": status or {}}, Pod)


def c(cpu: str | None = None, memory: str | None = None, *, sidecar: bool = False) -> dict[str, Any]:
    requests = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    container: dict[str, Any] = {"name": "c", "resources": {"requests": requests}}
    if sidecar:
        container["restartPolicy"] = "Always"
    return container


@pytest.mark.parametrize(
    ("resource", "text", "units"),
    [
        pytest.param("cpu", "100m", 100, id="milli-cpu"),
        pytest.param("cpu", "0.1", 100, id="decimal-cpu"),
        pytest.param("cpu", 2, 2000, id="integer-cpu"),
        pytest.param("cpu", "1500u", 2, id="part-of-a-milli-cpu-rounds-up"),
        pytest.param("memory", "1Ki", 1024, id="binary-suffix"),
        pytest.param("memory", "1k", 1000, id="decimal-suffix"),
        pytest.param("memory", "1.5Gi", 1536 * MI, id="fraction-of-a-binary-suffix"),
        pytest.param("memory", "1e3", 1000, id="exponent"),
        pytest.param("memory", "100m", 1, id="part-of-a-byte-rounds-up"),
        pytest.param("example.com/gpu", "3", 3, id="device"),
        pytest.param("memory", "9000E", LIMIT, id="clamped"),
        pytest.param("cpu", "10e399", LIMIT, id="an-exponent-that-the-API-server-takes"),
        pytest.param("cpu", "0e400", 0, id="nothing-with-such-an-exponent"),
        pytest.param("memory", "1e-400", 1, id="next-to-nothing"),
    ],
)
def test_units(resource: str, text: str | int, units: int) -> None:
    assert resource_units(resource, text) == units


@pytest.mark.parametrize("text", ["", "lots", "1 Gi", "1GiB"])
def test_unreadable_quantities_are_errors(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantity"):
        whole_units(text)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [c("1", "1Gi")]}, {"cpu": 1000, "memory": 1024 * MI}, id="one-container"),
        pytest.param({"containers": [c("1"), c("500m", "1Mi")]}, {"cpu": 1500, "memory": MI}, id="containers-add-up"),
        pytest.param({"containers": [c("1")], "initContainers": [c("3"), c("2")]}, {"cpu": 3000}, id="greatest-init"),
        pytest.param({"containers": [c("2")], "initContainers": [c("1")]}, {"cpu": 2000}, id="init-within-containers"),
        pytest.param(
            {"containers": [c("1", "4Mi")], "initContainers": [c("2", "1Mi")]},
            {"cpu": 2000, "memory": 4 * MI},
            id="each-resource-on-its-own",
        ),
        pytest.param(
            {"containers": [c("1")], "initContainers": [c("500m", sidecar=True)]},
            {"cpu": 1500},
            id="sidecar-runs-beside-containers",
        ),
        pytest.param(
            {"containers": [c("1")], "initContainers": [c("500m", sidecar=True), c("2")]},
            {"cpu": 2500},
            id="init-after-a-sidecar-runs-beside-it",
        ),
        pytest.param(
            {"containers": [c("1")], "initContainers": [c("2"), c("500m", sidecar=True)]},
            {"cpu": 2000},
            id="init-before-a-sidecar-runs-alone",
        ),
        pytest.param(
            {"containers": [c("100m")], "initContainers": [c("1", sidecar=True), c("1", sidecar=True), c("1")]},
            {"cpu": 3000},
            id="sidecars-accumulate",
        ),
        pytest.param(
            {"containers": [c("1")], "overhead": {"cpu": "250m", "memory": "1Mi"}},
            {"cpu": 1250, "memory": MI},
            id="overhead-on-top",
        ),
        pytest.param(
            {"containers": [c("1", "1Mi")], "resources": {"requests": {"cpu": "3"}}},
            {"cpu": 3000, "memory": MI},
            id="pod-level-replaces-the-sum",
        ),
        pytest.param(
            {"containers": [c("1")], "resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "1"}},
            {"cpu": 3000},
            id="overhead-on-top-of-pod-level",
        ),
        pytest.param(
            {"containers": [c("1")], "resources": {"requests": {"hugepages-2Mi": "4Mi", "example.com/gpu": "1"}}},
            {"cpu": 1000, "hugepages-2Mi": 4 * MI},
            id="pod-level-knows-cpu-memory-hugepages-only",
        ),
        pytest.param({"containers": [c()]}, {}, id="nothing-requested"),
    ],
)
def test_requests(spec: dict[str, Any], expected: dict[str, int]) -> None:
    assert pod_requests(make(spec)) == expected


@pytest.mark.parametrize(
    ("containers", "cpu", "memory"),
    [
        pytest.param([c()], 100, 200 * MI, id="both-missing"),
        pytest.param([c("0", "0")], 0, 0, id="explicit-zero-stays"),
        pytest.param([c("1")], 1000, 200 * MI, id="memory-missing"),
        pytest.param([c(), c()], 200, 400 * MI, id="per-container"),
    ],
)
def test_scoring_defaults(containers: list[dict[str, Any]], cpu: int, memory: int) -> None:
    assert pod_requests(make({"containers": containers}), missing=SCORING_DEFAULTS) == {"cpu": cpu, "memory": memory}


def resized(actual: str, allocated: str | None = None, reason: str = "") -> dict[str, Any]:
    status: dict[str, Any] = {"name": "c", "resources": {"requests": {"cpu": actual}}}
    if allocated is not None:
        status["allocatedResources"] = {"cpu": allocated}
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    return {"containerStatuses": [status], "conditions": conditions}


@pytest.mark.parametrize(
    ("wanted", "status", "cpu"),
    [
        pytest.param("1", resized("2"), 2000, id="still-bigger-than-wanted"),
        pytest.param("3", resized("2"), 3000, id="will-be-bigger"),
        pytest.param("1", resized("1", "4"), 4000, id="allocated-is-greatest"),
        pytest.param("9", resized("2", "3", "Infeasible"), 3000, id="infeasible-wish-does-not-count"),
        pytest.param("9", resized("2", "3", "Deferred"), 9000, id="deferred-wish-counts"),
    ],
)
def test_resize_in_place(wanted: str, status: dict[str, Any], cpu: int) -> None:
    pod = make({"containers": [c(wanted)]}, status)
    assert pod_requests(pod) == {"cpu": cpu}
    assert resize_infeasible(pod) == (cpu == 3000 and wanted == "9")


def test_pod_level_resize_takes_the_greatest_of_wanted_actual_allocated() -> None:
    pod = make(
        {"containers": [c("1")], "resources": {"requests": {"cpu": "2"}}},
        {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2500m"}},
    )
    assert pod_requests(pod) == {"cpu": 3000}


amounts = st.integers(0, 4000).map(lambda m: f"{m}m")
containers = st.lists(st.tuples(amounts, st.booleans()), max_size=5)


@given(main=st.lists(amounts, min_size=1, max_size=4), init=containers)
def test_request_covers_every_moment_of_the_pods_life(main: list[str], init: list[tuple[str, bool]]) -> None:
    pod = make(
        {"containers": [c(cpu) for cpu in main], "initContainers": [c(cpu, sidecar=sidecar) for cpu, sidecar in init]}
    )
    running, moments = 0, []
    for cpu, sidecar in init:
        moments.append(running + int(cpu[:-1]))
        running += int(cpu[:-1]) * sidecar
    moments.append(running + sum(int(cpu[:-1]) for cpu in main))
    assert pod_requests(pod).get("cpu", 0) == max(moments)

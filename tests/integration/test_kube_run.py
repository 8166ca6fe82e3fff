"""``berth run`` as real processes on a real API server: readiness, hand-over, death, shutdown."""

from __future__ import annotations

import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from hack.harness.cluster import Kubectl, eventually
from hack.localcluster import LocalCluster
from hack.localcluster.components import Options
from tests.support.kube import paused
from tests.support.probe import berth

DURATION = 6
LEADER = 'berth_leader{component="berth-probe"}'
LOOKS = 'berth_api_requests_total{code="200",resource="leases",verb="GET"}'


def arguments(cluster: LocalCluster, namespace: str, *more: str) -> list[str]:
    where = ["--kubeconfig", str(cluster.kubeconfig), "--lease-namespace", namespace]
    health = ["--health-host", "127.0.0.1", "--health-port", "0"]
    return ["run", "probe", *where, *health, "--lease-duration", str(DURATION), *more]


def status(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def page(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()


def metric(port: int, series: str) -> float | None:
    """The value of one series of /metrics; None when it is not there."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    values = [float(value) for name, _, value in (line.rpartition(" ") for line in lines) if name == series]
    return values[0] if values else None


def lease(kubectl: Kubectl) -> dict[str, Any]:
    found: dict[str, Any] = kubectl.get("lease", "berth-probe")["spec"]
    return found


def test_ready_when_listed_and_gone_at_sigterm(cluster: LocalCluster, namespace: str, kubectl: Kubectl) -> None:
    with berth(*arguments(cluster, namespace), mode="wait", env={"POD_NAME": "berth-7d9f"}) as process:
        port = process.until("started")["health_port"]
        process.until("working")
        eventually(lambda: status(port, "/readyz") == 200, what="ready")
        assert status(port, "/healthz") == 200
        assert metric(port, LEADER) == 1.0
        assert lease(kubectl)["holderIdentity"].startswith("berth-7d9f_")
        assert process.stop() == 0
    assert lease(kubectl)["holderIdentity"] == ""


@pytest.mark.parametrize(
    ("number", "wait"), [(signal.SIGTERM, 0), (signal.SIGKILL, DURATION / 2)], ids=["stopped", "killed"]
)
def test_another_process_takes_over(
    cluster: LocalCluster, namespace: str, kubectl: Kubectl, number: signal.Signals, wait: float
) -> None:
    with berth(*arguments(cluster, namespace), mode="wait") as first:
        first.until("working")
        with berth(*arguments(cluster, namespace), mode="wait") as second:
            port = second.until("started")["health_port"]
            assert status(port, "/readyz") == 200  # or a rolling update would never end
            # It has seen the Lease once and again, so that its clock for it runs.
            eventually(
                lambda: metric(port, LOOKS),
                accept=lambda count: count is not None and count >= 3,
                what="the second process looks at the Lease",
            )
            began = time.monotonic()
            assert first.stop(number) == (0 if number == signal.SIGTERM else -number)
            second.until("working")
            assert time.monotonic() - began >= wait
            assert lease(kubectl)["leaseTransitions"] == 1
            assert second.stop() == 0


def test_events_of_the_last_moment_are_written(cluster: LocalCluster, namespace: str, kubectl: Kubectl) -> None:
    with berth(*arguments(cluster, namespace), mode="note") as process:
        port = process.until("started")["health_port"]
        eventually(lambda: metric(port, 'berth_cached_objects{resource="namespaces"}'), what="listed")
        eventually(lambda: status(port, "/readyz") == 200 and metric(port, LEADER) == 1.0, what="leadership")
        assert process.stop() == 0
    described = cluster.kubectl("describe", "namespace", "default").stdout
    events = cluster.kubectl("get", "events", "-n", "default", "--field-selector", "reason=Stopped").stdout
    assert "Name:         default" in described
    assert "the probe was stopped" in events


def test_a_leader_that_hears_nothing_ends_with_1(fresh_cluster: Callable[..., LocalCluster]) -> None:
    cluster = fresh_cluster(crds=False, kwok=False, options=Options(controller_manager=False))
    with berth(*arguments(cluster, "default"), mode="wait") as process:
        process.until("working")
        with paused(cluster):
            assert process.wait() == 1
    assert any(line["event"].startswith("leadership lost") for line in process.lines)


def test_a_leader_that_is_stuck_is_ended_all_the_same(fresh_cluster: Callable[..., LocalCluster]) -> None:
    """Work that ignores its cancellation must not go on beside the next leader's."""
    cluster = fresh_cluster(crds=False, kwok=False, options=Options(controller_manager=False))
    with berth(*arguments(cluster, "default"), mode="stuck") as process:
        process.until("working")
        with paused(cluster):
            assert process.wait() == 1
    assert "work goes on although its leadership is lost" in process.text


def test_a_namespace_without_permission_is_told_and_waited_for(
    cluster: LocalCluster, namespace: str, tmp_path: Any
) -> None:
    path = cluster.service_account_kubeconfig(namespace, "default", path=tmp_path / "k")
    options = ["--kubeconfig", str(path), "--health-host", "127.0.0.1", "--health-port", "0"]
    with berth("run", "probe", *options, "--lease-namespace", namespace, mode="wait") as process:
        # In this order: of attempts there are more, whichever comes first.
        port = process.until("started")["health_port"]
        failure = process.until("lease attempt failed")
        assert 'cannot get resource "leases"' in failure["error"]
        eventually(
            lambda: page(port, "/readyz"),
            accept=lambda text: f"lease of probe: lease {namespace}/berth-probe cannot be had (403 Forbidden: " in text,
            what="what is missing",
        )
        assert status(port, "/healthz") == 200
        rights = {f"{namespace}-leases": "leases.coordination.k8s.io", f"{namespace}-namespaces": "namespaces"}
        for role, resource in rights.items():
            verbs = "list,get,create,update" if "leases" in role else "list"
            cluster.kubectl("create", "clusterrole", role, f"--verb={verbs}", f"--resource={resource}")
            cluster.kubectl(
                "create", "clusterrolebinding", role, f"--clusterrole={role}", f"--serviceaccount={namespace}:default"
            )
        process.until("working")
        eventually(
            lambda: page(port, "/readyz"),
            accept=lambda text: (
                text.startswith("sync namespaces: namespaces cannot be listed (403 Forbidden: ")
                and 'cannot watch resource "namespaces"' in text
                and text.endswith("; allow this account to list and watch namespaces\n")
            ),
            what="what else is missing",
        )
        assert status(port, "/healthz") == 200
        rules = [{"op": "add", "path": "/rules/0/verbs/-", "value": "watch"}]
        cluster.kubectl(
            "patch", "clusterrole", f"{namespace}-namespaces", "--type=json", f"--patch={json.dumps(rules)}"
        )
        eventually(lambda: page(port, "/readyz") == "ok\n", what="ready")
        assert process.stop() == 0

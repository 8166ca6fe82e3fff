"""Policies that cannot be carried out, and messages that are not what they should be: a clear word, nothing moved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import msgspec
import pytest

from berth.api import latency_exchange as exchange
from berth.api.latencypolicy import AnnotatedLimits
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.latency_stand import LatencyStand, token_of

LIMITS: dict[str, Any] = {"hardMaxLatency": 80, "softMaxLatency": 30}


@pytest.fixture
def stand(lively: LocalCluster, latency_process: ControllerProcess) -> Iterator[LatencyStand]:
    """A workload whose pods would move."""
    with LatencyStand(lively, {"a": 120, "b": 20}) as stand:
        yield stand


def wait_working(stand: LatencyStand, reason: str, text: str, name: str = "web") -> None:
    eventually(lambda: stand.reasons(name), accept=lambda found: found.get("Working") == reason, what=reason)
    assert text in stand.message("Working", name)
    assert stand.outcomes() == []


def test_no_target_then_there_is_one(stand: LatencyStand) -> None:
    stand.want(**LIMITS)
    wait_working(stand, "TargetNotFound", "Deployment web is not in namespace")
    assert "create it" in stand.stage.wait_event("web", "TargetNotFound")
    stand.deploy()
    stand.wait_settled("b")


def test_no_meter(stand: LatencyStand) -> None:
    stand.meters = False
    stand.deploy()
    stand.want(**LIMITS)
    eventually(stand.places, accept=lambda found: found == ["a"], what="a pod")
    wait_working(stand, "NotMeasured", "no latency meter")


def test_pods_of_another_scheduler(stand: LatencyStand) -> None:
    stand.deploy(schedulerName="default-scheduler")
    stand.want(**LIMITS)
    wait_working(stand, "OtherScheduler", "set schedulerName: berth-scheduler")


def test_two_policies_on_one_target_until_one_is_deleted(stand: LatencyStand) -> None:
    stand.want("other", objective="Minimum")
    stand.want(**LIMITS)
    stand.deploy()
    wait_working(stand, "TargetShared", "also other")
    wait_working(stand, "TargetShared", "also web", "other")
    stand.api.request("DELETE", stand.path("other"))
    stand.wait_settled("b")


def test_a_workload_that_is_scaled_by_somebody_else(stand: LatencyStand) -> None:
    scaler = {
        "metadata": {"name": "busy"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 3},
    }
    path = f"/apis/autoscaling/v2/namespaces/{stand.stage.name}/horizontalpodautoscalers"
    stand.api.request("POST", path, scaler)
    stand.want(**LIMITS)
    stand.deploy()
    wait_working(stand, "Autoscaled", "HorizontalPodAutoscaler busy")
    stand.api.request("DELETE", f"{path}/busy")
    stand.wait_settled("b")


def test_a_number_of_replicas_that_may_not_be_set_until_it_may(stand: LatencyStand) -> None:
    name, group = stand.stage.name, "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments/scale"]}
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.spec.replicas < 2", "message": "one is enough"}],
    }
    binding = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}},
    }
    for kind, spec in {"policies": policy, "policybindings": binding}.items():
        path = f"{group}/validatingadmission{kind}"
        stand.api.request("POST", path, {"metadata": {"name": name}, "spec": spec})
    stand.deploy()
    scale = f"/apis/apps/v1/namespaces/{name}/deployments/web/scale?dryRun=All"
    patch = {"spec": {"replicas": 2}}
    eventually(
        lambda: stand.api.raw("PATCH", scale, patch, content_type="application/merge-patch+json")[0],
        accept=(422).__eq__,
        what="the policy in force",
    )
    stand.want(**LIMITS)
    assert "one is enough" in stand.stage.wait_event("web", "ScalingRefused")
    eventually(stand.reasons, accept=lambda found: found["Moving"] == "CreationRefused", what="the condition")
    assert "one is enough" in stand.message("Moving")
    stand.api.request("DELETE", f"{group}/validatingadmissionpolicybindings/{name}")
    stand.wait_settled("b")
    stand.api.request("DELETE", f"{group}/validatingadmissionpolicies/{name}")


@pytest.mark.parametrize(
    ("annotations", "reason", "text"),
    [
        pytest.param({}, "NoLimits", "hard_max_latency", id="none"),
        pytest.param({"hard_max_latency": "80ms"}, "LimitsUnreadable", "'80ms' is no limit", id="no number"),
        pytest.param(
            {"hard_max_latency": "30", "soft_max_latency": "80"}, "LimitsUnreadable", "is above", id="soft above hard"
        ),
    ],
)
def test_limits_that_neither_the_policy_nor_the_pods_state(
    stand: LatencyStand, annotations: dict[str, str], reason: str, text: str
) -> None:
    stand.want()
    stand.deploy(annotations=annotations)
    wait_working(stand, reason, text)


def test_limits_that_the_pods_state(stand: LatencyStand) -> None:
    stand.want()
    stand.deploy(annotations={"hard_max_latency": "80", "soft_max_latency": "30"})
    stand.wait_settled("b")
    assert stand.status().annotated_limits == AnnotatedLimits(hard_max_latency=80, soft_max_latency=30)
    stand.want(hardMaxLatency=90)
    eventually(stand.status, accept=lambda found: found.annotated_limits is None, what="those of the policy alone")


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("169.254.169.254", id="metadata"),
        pytest.param("10.0.0.1", id="a pod, by the network of a node"),
        pytest.param("metadata.google.internal", id="a name"),
    ],
)
def test_an_address_that_must_not_be_probed_is_not(
    stand: LatencyStand, latency_process: ControllerProcess, address: str
) -> None:
    body = {"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}}
    stand.stage.change_node("a", body)
    before = latency_process.metric("berth_latency_probes_ordered_total")
    stand.address = address
    stand.want(**LIMITS, moves={"dryRun": True})
    stand.deploy()
    eventually(lambda: stand.status().unreachable_time, what="that nobody can be probed")
    assert latency_process.metric("berth_latency_probes_ordered_total") == before


def address_of_pod(stand: LatencyStand) -> str:
    """That of the workload's pod, which no node has the network of."""

    def look() -> str | None:
        pods = list(stand.stage.pods().values())
        return str(pods[0].get("status", {}).get("podIP", "")) if pods else None

    return str(eventually(look, what="an address of a pod"))


def address_of_service(stand: LatencyStand) -> str:
    return str(stand.api.request("GET", "/api/v1/namespaces/default/services/kubernetes")["spec"]["clusterIP"])


@pytest.mark.parametrize(
    "address_of",
    [
        pytest.param(address_of_pod, id="of a pod outside of the networks of nodes"),
        pytest.param(address_of_service, id="of a Service"),
    ],
)
def test_an_address_of_the_cluster_is_not_probed_whoever_gave_it(
    stand: LatencyStand, latency_process: ControllerProcess, address_of: Callable[[LatencyStand], str]
) -> None:
    stand.meters = False
    stand.deploy()
    stand.address = address_of(stand)
    before = latency_process.metric("berth_latency_probes_ordered_total")
    stand.want(**LIMITS, moves={"dryRun": True})
    stand.meters = True
    eventually(lambda: stand.status().unreachable_time, what="that nobody can be probed", timeout=40.0)
    assert latency_process.metric("berth_latency_probes_ordered_total") == before


def ask(stand: LatencyStand, *messages: tuple[str, str, bytes]) -> list[int]:
    """Send messages, each of token, path and body; returns the statuses of the answers that were refused."""

    async def send() -> list[int]:
        seen = len(stand.refused)
        async with aiohttp.ClientSession() as session:
            for token, path, body in messages:
                await stand.send(session, token, path, body)
        return stand.refused[seen:]

    return asyncio.run(send())


def report(**fields: Any) -> bytes:
    return msgspec.json.encode(exchange.RoundTrips(**{"instance": "i", "sequence": 1, **fields}))


def test_who_may_not_speak_and_what_cannot_be_read(stand: LatencyStand) -> None:
    stand.meters = False
    stand.deploy()
    eventually(stand.places, accept=lambda found: found == ["a"], what="a pod")
    [pod] = stand.stage.pods().values()
    token, elsewhere = token_of(stand.api, pod), token_of(stand.api, pod, audience="elsewhere")
    trips, probes = exchange.ROUND_TRIPS_PATH, exchange.PROBES_PATH
    many = tuple(exchange.UserRoundTrips(f"u{at}", (1,)) for at in range(exchange.MAX_USERS + 1))
    answers = ask(
        stand,
        ("nonsense", trips, report()),
        (elsewhere, trips, report()),
        (token, probes, msgspec.json.encode(exchange.ProbeAnswers())),
        (token, trips, b"{"),
        (token, trips, b"[" * 100_000),
        (token, trips, report(users=many)),
        (token, trips, report(instance="i" * (exchange.MAX_INSTANCE + 1))),
        (token, trips, b" " * (2 << 20)),
        (token, "/", b""),
        (token, trips, report()),
    )
    assert answers == [401, 401, 403, 400, 400, 400, 400, 413, 404]
    # As many at once as it takes, however slowly they are sent.
    eventually(lambda: ask(stand, *[(token, trips, report())] * 20), accept=lambda found: 429 in found, what="429")

"""Which policies can be carried out, and why the others cannot."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import CustomObject, ObjectMeta, OwnerReference, Pod
from controllers.latency.objects import (
    Autoscaler,
    AutoscalerSpec,
    Deployment,
    DeploymentSpec,
    PodTemplate,
    PodTemplateMeta,
    PodTemplateSpec,
    ScaleTarget,
)
from controllers.latency.policies import Policies
from controllers.latency.workloads import Workloads
from tests.support import builders

TARGET = "shop/Deployment/web"
NO_LIMITS: dict[str, Any] = {"hardMaxLatency": None}


def policy(name: str = "web", version: int = 1, target: str = "web", **spec: Any) -> CustomObject:
    metadata = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": str(version)}
    return CustomObject.of(
        {"metadata": metadata, "spec": {"targetRef": {"name": target}, "hardMaxLatency": 80} | spec, "status": {}}
    )


def deployment(scheduler: str = "berth-scheduler", **annotations: str) -> Deployment:
    template = PodTemplate(PodTemplateMeta(annotations), PodTemplateSpec(scheduler_name=scheduler))
    return Deployment(ObjectMeta(name="web", namespace="shop"), DeploymentSpec(replicas=2, template=template))


def autoscaler(target: str = "web") -> Autoscaler:
    reference = ScaleTarget(kind="Deployment", name=target)
    return Autoscaler(ObjectMeta(name="busy", namespace="shop"), AutoscalerSpec(scale_target_ref=reference))


def web_pod(uid: str, **fields: Any) -> Pod:
    pod = builders.pod("web-1", namespace="shop", on="a", labels={"pod-template-hash": "5d"}, **fields)
    pod.metadata.uid = uid
    pod.metadata.owner_references = [OwnerReference(kind="ReplicaSet", name="web-5d", uid="rs", controller=True)]
    return pod


@pytest.mark.parametrize(
    ("spec", "there", "others", "reason"),
    [
        pytest.param({}, [deployment()], [], None, id="all is well"),
        pytest.param({}, [], [], "TargetNotFound", id="no Deployment"),
        pytest.param({}, [deployment("")], [], "OtherScheduler", id="placed by the default"),
        pytest.param({}, [deployment(), autoscaler()], [], "Autoscaled", id="scaled by another"),
        pytest.param({}, [deployment(), autoscaler("db")], [], None, id="another is scaled"),
        pytest.param({}, [deployment()], [policy("two")], "TargetShared", id="two policies"),
        pytest.param({}, [deployment()], [policy("two", target="db")], None, id="another of another"),
        pytest.param(NO_LIMITS, [deployment()], [], "NoLimits", id="no limit"),
        pytest.param(NO_LIMITS, [deployment(hard_max_latency="40")], [], None, id="a limit by annotation"),
        pytest.param(NO_LIMITS, [deployment(hard_max_latency="near")], [], "LimitsUnreadable", id="one that is none"),
        pytest.param({}, [deployment(hard_max_latency="near")], [], None, id="one that is none and does not count"),
        pytest.param(NO_LIMITS | {"objective": "Minimum"}, [deployment()], [], None, id="the minimum without a limit"),
        pytest.param({"users": {"mode": "PerUser"}}, [deployment()], [], None, id="each user apart"),
        pytest.param(
            {"users": {"mode": "PerUser"}},
            [deployment(), autoscaler()],
            [],
            None,
            id="each user apart, who is routed whoever scales",
        ),
    ],
)
def test_obstacles(
    spec: dict[str, Any], there: list[Deployment | Autoscaler], others: list[CustomObject], reason: str | None
) -> None:
    policies, workloads = Policies(), Workloads()
    for each in (policy(**spec), *others):
        assert policies.update(each) is None
    for one in there:
        if isinstance(one, Deployment):
            assert workloads.deployment_changed(None, one) == TARGET
        else:
            workloads.autoscaler_changed(None, one)
    mine = policies.get("shop/web")
    assert mine is not None
    found = workloads.obstacle(mine, policies)
    assert (found.reason if found is not None else None) == reason


@pytest.mark.parametrize(
    ("there", "held"),
    [
        pytest.param([], False, id="nobody"),
        pytest.param([autoscaler()], True, id="an autoscaler"),
        pytest.param([autoscaler("db")], False, id="of another"),
    ],
)
def test_who_else_scales_a_workload(there: list[Autoscaler], held: bool) -> None:
    workloads = Workloads()
    for scaler in there:
        workloads.autoscaler_changed(None, scaler)
    found = workloads.autoscaled(TARGET)
    assert (found is not None) is held
    assert found is None or "HorizontalPodAutoscaler busy" in found.message


def test_pods_of_a_workload_come_and_go_and_one_of_the_same_name_is_another() -> None:
    workloads = Workloads()
    first, second = web_pod("u1"), web_pod("u2")
    assert workloads.pod_changed(None, first) == TARGET
    assert list(workloads.pods(TARGET)) == ["u1"]
    assert workloads.pod("shop", "web-1", "u1") is first
    workloads.pod_changed(first, second)
    assert list(workloads.pods(TARGET)) == ["u2"]
    assert workloads.pod("shop", "web-1", "u1") is None
    workloads.pod_changed(second, web_pod("u2", phase="Failed"))
    assert not workloads.pods(TARGET)


def test_an_autoscaler_that_goes_elsewhere_concerns_both() -> None:
    workloads = Workloads()
    assert workloads.autoscaler_changed(None, autoscaler()) == {TARGET}
    assert workloads.autoscaler_changed(autoscaler(), autoscaler("db")) == {TARGET, "shop/Deployment/db"}


def test_what_was_written_is_not_undone_by_an_older_event() -> None:
    policies = Policies()
    policies.update(policy(version=3))
    document = policy(version=9).document(api_version="berth.dev/v1alpha1", kind="LatencyPolicy")
    policies.written(document | {"status": {"p50": "20.0 ms"}})
    policies.update(policy(version=5))
    known = policies.get("shop/web")
    assert known is not None
    assert (known.metadata.resource_version, known.status.p50) == ("9", "20.0 ms")
    policies.update(policy(version=10))
    known = policies.get("shop/web")
    assert known is not None
    assert known.status.p50 is None


def test_a_policy_that_is_gone_is_remembered_until_its_end_is_dealt_with() -> None:
    policies = Policies()
    policies.update(policy())
    policies.remove("shop/web")
    assert (policies.get("shop/web"), policies.of(TARGET), policies.target("shop/web")) == (None, frozenset(), "")
    last = policies.last("shop/web")
    assert last is not None
    assert last.spec.hard_max_latency == 80
    policies.forget("shop/web")
    assert policies.last("shop/web") is None


def test_one_that_cannot_be_read_counts_for_nothing() -> None:
    policies = Policies()
    policies.update(policy())
    assert "softMaxLatency" in str(policies.update(policy(version=2, softMaxLatency="near")))
    assert policies.get("shop/web") is None


def test_a_deployment_is_found_by_its_uid_in_its_namespace_alone() -> None:
    workloads, found = Workloads(), deployment()
    found.metadata.uid = "d"
    workloads.deployment_changed(None, found)
    assert workloads.with_uid("shop", "d") is found
    assert workloads.with_uid("elsewhere", "d") is None, "a status could name any"
    assert workloads.with_uid("shop", "e") is None

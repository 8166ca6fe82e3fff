"""The workloads of policies: Deployments, their pods, who scales them, and why one cannot be moved. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from berth.api.labels import ANNOTATION_HARD_MAX_LATENCY, ANNOTATION_SOFT_MAX_LATENCY, SCHEDULER_NAME
from berth.api.latencypolicy import AnnotatedLimits, LatencyPolicy, Objective, UserMode
from berth.api.text import listed
from berth.kube.meta import object_key
from berth.kube.objects import Pod
from berth.kube.owners import owner_key, owner_of
from berth.scheduling.latency.stated_limits import UnreadableLimitError, annotated_limits, with_limits
from controllers.latency.objects import Autoscaler, Deployment
from controllers.latency.policies import Policies, target_of

T = TypeVar("T")


class Obstacle(NamedTuple):
    """Why a policy cannot be carried out."""

    reason: str
    """one word in CamelCase"""
    message: str
    """a sentence, with what to do"""


class Workloads:
    """What there is, kept up to date by changes."""

    def __init__(self) -> None:
        """Begin without any."""
        self._deployments: dict[str, Deployment] = {}
        self._pods: dict[str, dict[str, Pod]] = {}
        self._by_name: dict[str, Pod] = {}
        self._scalers: dict[str, str] = {}

    def deployment(self, target: str) -> Deployment | None:
        """Return a Deployment by its name as `owner_key` has it."""
        return self._deployments.get(target)

    def with_uid(self, namespace: str, uid: str) -> Deployment | None:
        """Return a Deployment of a namespace by its uid."""
        there = (each for each in self._deployments.values() if each.metadata.uid == uid)
        return next((each for each in there if each.metadata.namespace == namespace), None)

    def pods(self, target: str) -> Mapping[str, Pod]:
        """Return the unfinished pods of a workload, by uid."""
        return self._pods.get(target, {})

    def pod(self, namespace: str, name: str, uid: str) -> Pod | None:
        """Return a pod that is there and is the one with that uid."""
        found = self._by_name.get(f"{namespace}/{name}")
        return found if found is not None and found.metadata.uid == uid else None

    def deployment_changed(self, old: Deployment | None, new: Deployment | None) -> str:
        """Take in a change; returns the workload, as `owner_key` names it."""
        metadata = (new or old or Deployment()).metadata
        target = owner_key(metadata.namespace, "Deployment", metadata.name)
        _set(self._deployments, target, new)
        return target

    def pod_changed(self, old: Pod | None, new: Pod | None) -> str:
        """Take in a change; returns the workload that the pod is of, empty for none."""
        pod = new or old or Pod()
        target = owner_of(pod)
        there = new if new is not None and not new.finished else None
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._keep(owner_of(old), old.metadata.uid, None)
        _set(self._by_name, object_key(pod.metadata), there)
        self._keep(target, pod.metadata.uid, there)
        return target

    def autoscaler_changed(self, old: Autoscaler | None, new: Autoscaler | None) -> set[str]:
        """Take in a change; returns the workloads that are scaled, before and after."""
        found = {_scaled(scaler) for scaler in (old, new) if scaler is not None}
        scaler = new or old or Autoscaler()
        _set(self._scalers, object_key(scaler.metadata), _scaled(new) if new is not None else None)
        return found

    def obstacle(self, policy: LatencyPolicy, policies: Policies) -> Obstacle | None:
        """Return why a policy cannot be carried out; None if it can.

        Where each user counts, users are routed whoever scales the workload: see `autoscaled`.
        """
        reference, namespace, target = policy.spec.target_ref, policy.metadata.namespace, target_of(policy)
        named = f"{reference.kind} {reference.name}"
        others = sorted(policies.of(target) - {policy.key})
        if others:
            names = listed([key.partition("/")[2] for key in others])
            return Obstacle(
                "TargetShared", f"{named} has more than one LatencyPolicy, also {names}; delete all but one"
            )
        deployment = self.deployment(target)
        if deployment is None:
            return Obstacle(
                "TargetNotFound", f"{named} is not in namespace {namespace}; create it, or correct targetRef"
            )
        scheduler = deployment.spec.template.spec.scheduler_name or "default-scheduler"
        if scheduler != SCHEDULER_NAME:
            message = (
                f"pods of {named} are placed by {scheduler}, which knows no LatencyPolicy; "
                f"set schedulerName: {SCHEDULER_NAME} in its template"
            )
            return Obstacle("OtherScheduler", message)
        held = self.autoscaled(target) if policy.spec.users.mode is UserMode.SINGLE else None
        return held or _limits_obstacle(policy, deployment)

    def autoscaled(self, target: str) -> Obstacle | None:
        """Return who else scales a workload, and so keeps its pods from moving."""
        scalers = sorted(key.partition("/")[2] for key, scaled in self._scalers.items() if scaled == target)
        if not scalers:
            return None
        message = (
            f"Deployment {target.rpartition('/')[2]} is scaled by HorizontalPodAutoscaler {listed(scalers)}, which "
            "would take away the pod that is created before another goes; nothing is moved"
        )
        return Obstacle("Autoscaled", message)

    def _keep(self, target: str, uid: str, pod: Pod | None) -> None:
        if not target:
            return
        pods = self._pods.setdefault(target, {})
        _set(pods, uid, pod)
        if not pods:
            del self._pods[target]


def left_over(deployment: Deployment, refusal: str, who: str = "a LatencyPolicy that is gone") -> Obstacle:
    """Return what a policy waits for where somebody has raised the number of replicas; `refusal`: why it stays so."""
    message = (
        f"{who} has raised the number of replicas of Deployment {deployment.metadata.name}, "
        f"which has to be set back first; {refusal}; allow that, or set the number by hand"
    )
    return Obstacle("ReplicasLeft", message)


def limits_of_pods(policy: LatencyPolicy, deployment: Deployment | None) -> AnnotatedLimits | None:
    """Return the limits that annotations of a workload's pods state; none where they cannot be read, an obstacle."""
    if deployment is None:
        return None
    try:
        return annotated_limits(policy.spec, deployment.spec.template.metadata.annotations)
    except UnreadableLimitError:
        return None


def _limits_obstacle(policy: LatencyPolicy, deployment: Deployment) -> Obstacle | None:
    spec, template = policy.spec, f"the pod template of Deployment {deployment.metadata.name}"
    try:
        limits = annotated_limits(spec, deployment.spec.template.metadata.annotations)
    except UnreadableLimitError as error:
        return Obstacle("LimitsUnreadable", f"annotations of {template}: {error}, or the limits in the policy")
    stated = with_limits(spec, limits)
    none = stated.hard_max_latency is None and stated.soft_max_latency is None
    if not none or spec.objective is Objective.MINIMUM:
        return None
    message = (
        "there is no limit to keep to; write hardMaxLatency or softMaxLatency, annotations "
        f"{ANNOTATION_HARD_MAX_LATENCY} or {ANNOTATION_SOFT_MAX_LATENCY} of {template}, or objective: Minimum"
    )
    return Obstacle("NoLimits", message)


def _scaled(scaler: Autoscaler) -> str:
    reference = scaler.spec.scale_target_ref
    return owner_key(scaler.metadata.namespace, reference.kind, reference.name)


def _set(found: dict[str, T], key: str, value: T | None) -> None:
    if value is None:
        found.pop(key, None)
    else:
        found[key] = value

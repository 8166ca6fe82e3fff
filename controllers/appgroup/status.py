"""The status that an AppGroup should have: a function of its plan, its pods and its present status.

The present status matters for times only, and for the order that an invalid spec leaves in place. The
function is idempotent: what it returns, given back as the present status, comes out unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from berth.api import conditions
from berth.api.appgroup import (
    CONDITION_ORDERED,
    CONDITION_PLACED,
    MAX_PODS_SCHEDULED,
    AppGroupStatus,
    PodScheduled,
    order_summary,
    sorted_by_selector,
)
from controllers.appgroup.conditions import ordered, placed
from controllers.appgroup.plan import SpecPlan
from controllers.appgroup.pods import PodFacts, group_by_workload


def read_status(document: Mapping[str, Any]) -> AppGroupStatus:
    """Return the status of a raw AppGroup; one that cannot be read counts as empty and is replaced."""
    try:
        status = AppGroupStatus.model_validate(document.get("status") or {})
    except ValidationError:
        return AppGroupStatus()
    ours = tuple(item for item in status.conditions if item.type in (CONDITION_ORDERED, CONDITION_PLACED))
    return status.model_copy(update={"conditions": ours})


def desired_status(
    plan: SpecPlan, pods: Collection[PodFacts], current: AppGroupStatus, *, now: datetime
) -> AppGroupStatus:
    """Return the status that follows from spec and pods.

    Args:
        plan: what the spec comes to.
        pods: all pods of the group.
        current: the present status, as :func:`read_status` gives it.
        now: time of any transition; whole seconds are kept.
    """
    now = now.replace(microsecond=0)
    by_workload = group_by_workload(pods)
    bound = [
        PodScheduled(workload=ref, pod=pod.name, replica_id=pod.uid, hostname=pod.node)
        for selector, ref in plan.workloads.items()
        for pod in by_workload.get(selector, ())
        if pod.node and not pod.finished
    ]
    if plan.valid:
        kept = current.topology_order == plan.order and current.algorithm == plan.algorithm
        calculated: datetime | None = (current.topology_calculation_time if kept else None) or now
        algorithm: str | None = plan.algorithm
        order = plan.order
    else:
        # The last good order stays: schedulers that read it are better off with it than without any.
        calculated = current.topology_calculation_time
        algorithm = current.algorithm
        order = sorted_by_selector(current.topology_order)
    return AppGroupStatus(
        observed_generation=plan.generation,
        running_workloads=sum(1 for pod in pods if pod.phase == "Running"),
        schedule_start_time=_schedule_start(pods, current),
        topology_calculation_time=calculated,
        algorithm=algorithm,
        topology_order=order,
        order_summary=order_summary(order) if order else None,
        pods_scheduled=tuple(bound[:MAX_PODS_SCHEDULED]),
        pods_scheduled_total=len(bound),
        conditions=conditions.apply(
            current.conditions,
            [ordered(plan), placed(plan, by_workload)],
            observed_generation=plan.generation,
            now=now,
        ),
    )


def _schedule_start(pods: Collection[PodFacts], current: AppGroupStatus) -> datetime | None:
    """Scheduling began when the first pod of the group was created; later pods and deletions do not move it.

    The pods state this themselves, so a controller that was down meanwhile finds the same answer.
    """
    if current.schedule_start_time is not None:
        return current.schedule_start_time
    return min((pod.created for pod in pods if pod.created is not None), default=None)

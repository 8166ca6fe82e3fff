"""What a spec comes to: the order of its workloads, or the reasons why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from berth.api.appgroup import (
    AppGroup,
    AppGroupSpec,
    SortingAlgorithm,
    TopologyOrderEntry,
    WorkloadRef,
    sorted_by_selector,
)
from berth.api.checks import appgroup_problems
from berth.api.errors import InvalidObjectError
from berth.api.spread import spread_problem
from controllers.appgroup.orders import DependencyGraph, sort_workloads

REASON_INVALID: Final = "InvalidSpec"
"""The spec cannot be read."""
REASON_TOO_LARGE: Final = "OrderTooLarge"
"""Spec and order together do not fit into one object."""

MAX_OBJECT_BYTES: Final = 1_400_000
"""Most bytes of spec and order together: etcd refuses objects above 1.5 MiB, the rest of the status needs some too."""


@dataclass(frozen=True, slots=True)
class SpecPlan:
    """The part of the status that depends on the spec alone."""

    generation: int
    """metadata.generation of the spec"""
    algorithm: SortingAlgorithm | None = None
    """algorithm of the order; None when there is none"""
    order: tuple[TopologyOrderEntry, ...] = ()
    """every workload with its index from 1, sorted by selector; empty when there is no order"""
    workloads: Mapping[str, WorkloadRef] = field(default_factory=dict)
    """selector to workload, in order; empty when there is no order"""
    num_members: int = 0
    """spec.numMembers or the number of workloads, whichever is larger; 0 when there is no order"""
    cycles: tuple[tuple[str, ...], ...] = ()
    """one closed path of selectors per strongly connected component with a cycle"""
    remarks: tuple[str, ...] = ()
    """what makes no sense in a spec that has an order nevertheless, and in annotations, and how it is read, a sentence
    each"""
    problems: tuple[str, ...] = ()
    """why there is no order, a sentence each; empty when there is one"""
    reason: str = ""
    """reason of the condition when there is no order"""

    @property
    def valid(self) -> bool:
        """True when there is an order."""
        return not self.problems


def plan_spec(document: Mapping[str, Any]) -> SpecPlan:
    """Return the plan of a raw AppGroup; a spec that makes no sense gives a plan with problems, never an exception."""
    generation = int(document.get("metadata", {}).get("generation") or 0)
    try:
        # The status is ours to compute: whatever it holds must not make the spec unreadable.
        spec = AppGroup.parse({**document, "status": {}}).spec
    except InvalidObjectError as error:
        return SpecPlan(generation, problems=tuple(map(str, error.problems)), reason=REASON_INVALID)
    plan = _order(spec, generation=generation, spec_bytes=len(msgspec.json.encode(document["spec"])))
    spread = spread_problem(document.get("metadata", {}).get("annotations") or {})
    return plan if spread is None or not plan.valid else replace(plan, remarks=(*plan.remarks, str(spread)))


def _order(spec: AppGroupSpec, *, generation: int, spec_bytes: int) -> SpecPlan:
    workloads = spec.by_selector()
    selectors = list(workloads)
    called: dict[str, list[int]] = {selector: [] for selector in selectors}
    number = {selector: index for index, selector in enumerate(selectors)}
    for dependent, dependency in spec.edges():
        called[dependent].append(number[dependency.workload.selector])
    algorithm = SortingAlgorithm.read(spec.topology_sorting_algorithm)
    ordering = sort_workloads(DependencyGraph.of(called.values()), algorithm)
    references = [workloads[selectors[node]] for node in ordering.order]
    if spec_bytes + _size(references) > MAX_OBJECT_BYTES:
        # kind, name and selector identify a workload; the other two only repeat the spec.
        references = [WorkloadRef(kind=ref.kind, name=ref.name, selector=ref.selector) for ref in references]
    size = _size(references)
    if spec_bytes + size > MAX_OBJECT_BYTES:
        problem = (
            f"spec.workloads: the order of {len(references)} workloads takes {size} bytes and the spec {spec_bytes}, "
            f"together more than the {MAX_OBJECT_BYTES} that fit into one object; split the group, or shorten the "
            "workloads' names and leave out apiVersion and namespace"
        )
        return SpecPlan(generation, problems=(problem,), reason=REASON_TOO_LARGE)
    return SpecPlan(
        generation=generation,
        algorithm=algorithm,
        order=sorted_by_selector(
            TopologyOrderEntry(workload=ref, index=index) for index, ref in enumerate(references, start=1)
        ),
        workloads={ref.selector: ref for ref in references},
        num_members=spec.members,
        cycles=tuple(tuple(selectors[node] for node in cycle) for cycle in ordering.cycles),
        remarks=tuple(map(str, appgroup_problems(spec))),
    )


def _size(references: list[WorkloadRef]) -> int:
    """Return the bytes that topologyOrder takes as JSON, a little on the safe side."""
    frame = len('{"workload":{"kind":"","name":"","selector":"","apiVersion":"","namespace":""},"index":10000},')
    return sum(
        frame
        + sum(len(text.encode()) for text in (ref.kind, ref.name, ref.selector, ref.api_version, ref.namespace) if text)
        for ref in references
    )

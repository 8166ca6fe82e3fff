"""What makes no sense in a spec although the schema accepts it, how it is read, and what to write instead.

Controllers repeat this in conditions; ``berth plan`` refuses such manifests. The admission policies have the same
rules in CEL (:mod:`berth.api.rules`), where an author meets them at once, if the policies are installed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from berth.api.appgroup import SortingAlgorithm
from berth.api.errors import FieldProblem
from berth.api.quantity import read_quantity
from berth.api.rules import MAX_SELECTOR
from berth.api.workloadprofile import CO_RUN_MESSAGE, LearningMethod

if TYPE_CHECKING:
    from berth.api.appgroup import AppGroupSpec
    from berth.api.networktopology import NetworkTopologySpec
    from berth.api.workloadprofile import WorkloadProfileSpec

LONGEST_NAME: Final = 100
"""Characters of a name or value that texts show: thousands may be about one that is as long as an object can be."""


def appgroup_problems(spec: AppGroupSpec) -> list[FieldProblem]:
    """Return what is wrong with ``spec`` although it fits the schema; empty when all is well.

    Linear in the number of workloads and dependencies.
    """
    counts = Counter(item.workload.selector for item in spec.workloads)
    problems = [
        FieldProblem(
            ("spec", "workloads"),
            f'{times} workloads have the selector "{_shown(selector)}"; they are read as one; give each workload a '
            "selector of its own",
        )
        for selector, times in counts.items()
        if times > 1
    ]

    def add(path: tuple[int | str, ...], text: str) -> None:
        problems.append(FieldProblem(path, text))

    if spec.topology_sorting_algorithm not in set(SortingAlgorithm):
        add(
            ("spec", "topologySortingAlgorithm"),
            f'"{_shown(spec.topology_sorting_algorithm)}" is no algorithm; KahnSort is used; write one of '
            f"{', '.join(SortingAlgorithm)}",
        )
    if spec.num_members < len(spec.workloads):
        add(
            ("spec", "numMembers"),
            f"numMembers is {spec.num_members} but the group has {len(spec.workloads)} workloads, "
            "each of which needs at least one pod; raise numMembers",
        )
    for place, item in enumerate(spec.workloads):
        own = item.workload.selector
        shown = _shown(own)
        if len(own) > MAX_SELECTOR:
            add(
                ("spec", "workloads", place, "workload", "selector"),
                f'"{shown}" has more than {MAX_SELECTOR} characters, which no pod label can hold; shorten it',
            )
        for edge_place, edge in enumerate(item.dependencies):
            path = ("spec", "workloads", place, "dependencies", edge_place)
            target = edge.workload.selector
            if target == own:
                add(
                    path,
                    f'workload "{shown}" depends on itself; that dependency is ignored; remove it, or correct its '
                    "selector if another workload is meant",
                )
            elif target not in counts:
                add(
                    path,
                    f'workload "{shown}" depends on "{_shown(target)}", which is not a workload of this group; that '
                    "dependency is ignored; add it to spec.workloads or correct the selector",
                )
            if not _is_bandwidth(edge.min_bandwidth):
                add(
                    (*path, "minBandwidth"),
                    f'"{_shown(edge.min_bandwidth or "")}" is not a bandwidth; it is read as no demand; write a '
                    "quantity of bit/s from 0 up, such as 100M, 1Gi or 1e9",
                )
    return problems


def topology_problems(spec: NetworkTopologySpec) -> list[FieldProblem]:
    """Return what is wrong with ``spec`` although it fits the schema; empty when all is well."""
    return [
        FieldProblem(
            (
                *("spec", "weights", _shown(weights.name), _shown(level.topology_key)),
                *(_shown(origin.origin), _shown(cost.destination), "bandwidthCapacity"),
            ),
            f'"{_shown(cost.bandwidth_capacity or "")}" is not a bandwidth; it is read as not known; write a '
            "quantity of bit/s from 0 up, such as 10G or 1Gi",
        )
        for weights in spec.weights
        for level in weights.topology_list
        for origin in level.origin_list
        for cost in origin.cost_list
        if not _is_bandwidth(cost.bandwidth_capacity)
    ]


def profile_problems(spec: WorkloadProfileSpec) -> list[FieldProblem]:
    """Return what the API server refuses of ``spec`` by a rule of the kind; empty when all is well."""
    limit, measured = spec.qos_limit, (spec.sensitivity, spec.contentiousness)
    if spec.method is not LearningMethod.CO_RUN:
        return []
    if limit is not None and None not in measured:
        sensitive, contentious = (each is not None and each >= limit for each in measured)
        if (sensitive, contentious) == (spec.interference_class in "BD", spec.interference_class in "CD"):
            return []
    return [FieldProblem(("spec",), CO_RUN_MESSAGE)]


def _is_bandwidth(text: str | None) -> bool:
    return text is None or (read_quantity(text) is not None and not text.startswith("-"))


def _shown(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"

"""The CEL rules of an AppGroup once more, in Python.

The API server checks them when an object is written. Objects that were stored under upstream's
definition, before ours was installed, never met them; manifests read from a file did not either.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from berth.api.errors import FieldProblem

if TYPE_CHECKING:
    from berth.api.appgroup import AppGroupSpec


def appgroup_problems(spec: AppGroupSpec) -> list[FieldProblem]:
    """Return what is wrong with ``spec`` although it fits the schema; empty when all is well.

    Linear in the number of workloads and dependencies.
    """
    counts = Counter(item.workload.selector for item in spec.workloads)
    problems = [
        FieldProblem(
            ("spec", "workloads"),
            f'{times} workloads have the selector "{selector}"; give each workload a selector of its own',
        )
        for selector, times in counts.items()
        if times > 1
    ]

    def add(path: tuple[int | str, ...], text: str) -> None:
        problems.append(FieldProblem(path, text))

    if spec.num_members < len(spec.workloads):
        add(
            ("spec", "numMembers"),
            f"numMembers is {spec.num_members} but the group has {len(spec.workloads)} workloads, "
            "each of which needs at least one pod; raise numMembers",
        )
    for place, item in enumerate(spec.workloads):
        own = item.workload.selector
        for edge_place, edge in enumerate(item.dependencies):
            path = ("spec", "workloads", place, "dependencies", edge_place)
            target = edge.workload.selector
            if target == own:
                add(
                    path,
                    f'workload "{own}" depends on itself; remove that dependency, or correct its selector if '
                    "another workload is meant",
                )
            elif target not in counts:
                add(
                    path,
                    f'workload "{own}" depends on "{target}", which is not a workload of this group; add it to '
                    "spec.workloads or correct the selector",
                )
            if edge.min_bandwidth is not None and edge.min_bandwidth.amount < 0:
                add(
                    (*path, "minBandwidth"),
                    f'"{edge.min_bandwidth}" is negative; write a quantity of bit/s from 0 up, '
                    "such as 100M, 1Gi or 1e9",
                )
    return problems

"""WorkloadProfiles of workloads whose class is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from berth.api.workloadprofile import (
    API_VERSION,
    KIND,
    MAX_NAME,
    MAX_NEIGHBOURS,
    LearningMethod,
    NeighbourSlowdown,
    TargetRef,
    WorkloadProfileSpec,
)
from berth.scheduling.interference.classification import Classification

_FOREIGN: Final = re.compile("[^a-z0-9.-]+")


def profiles(
    found: Sequence[Classification], limit: float, *, namespace: str | None, measured: datetime | None
) -> list[dict[str, Any]]:
    """Return manifests of the profiles, each for the Deployment with the workload's name.

    Args:
        found: classified workloads; those without class are left out.
        limit: slowdown from which on a workload suffers.
        namespace: namespace of the profiles; None: whichever they are applied to.
        measured: when the run times were measured; None: not known.

    Raises:
        ValueError: a name cannot be an object's, two give the same, or a table is too large.
    """
    names = object_names(item.workload for item in found)
    about = {"namespace": namespace} if namespace else {}
    return [
        {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": names[item.workload], **about}, "spec": spec}
        for item in found
        if (spec := _spec(item, names, limit, measured)) is not None
    ]


def object_names(workloads: Iterable[str]) -> dict[str, str]:
    """Return names of objects by workload: small letters, and hyphens for what such names cannot hold.

    Raises:
        ValueError: nothing is left of a name, or two workloads get the same.
    """
    names: dict[str, str] = {}
    for workload in workloads:
        # Each part between dots has to begin and end with a letter or digit.
        parts = (part.strip("-") for part in _FOREIGN.sub("-", workload.lower()).split("."))
        name = ".".join(filter(None, parts))
        if not name or len(name) > MAX_NAME:
            raise ValueError(f"{workload!r} gives no name of an object; rename it in the file")
        twin = next((other for other, own in names.items() if own == name), None)
        if twin is not None:
            raise ValueError(f"{twin!r} and {workload!r} both give the name {name}; rename one in the file")
        names[workload] = name
    return names


def _spec(
    item: Classification, names: Mapping[str, str], limit: float, measured: datetime | None
) -> dict[str, Any] | None:
    if item.suffers is None or item.causes is None or item.interference_class is None:
        return None
    if len(item.slowdowns) > MAX_NEIGHBOURS:
        raise ValueError(f"{item.workload!r} has more than {MAX_NEIGHBOURS} neighbours; a profile holds no more")
    spec = WorkloadProfileSpec(
        target_ref=TargetRef(api_version="apps/v1", kind="Deployment", name=names[item.workload]),
        interference_class=item.interference_class,
        sensitivity=item.suffers.whisker,
        contentiousness=item.causes.whisker,
        qos_limit=limit,
        method=LearningMethod.CO_RUN,
        samples=len(item.suffers.values) + len(item.causes.values),
        measured_time=measured,
        slowdowns=tuple(
            NeighbourSlowdown(beside=names[neighbour], slowdown=slowdown)
            for neighbour, slowdown in item.slowdowns.items()
            if neighbour in names
        ),
    )
    return spec.to_api()

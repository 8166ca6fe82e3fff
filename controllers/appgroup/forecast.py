"""What this controller would write about an AppGroup that is not in the cluster yet, for ``berth plan``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.appgroup.plan import plan_spec

Labels = Mapping[str, str]


def forecast(
    document: Mapping[str, Any],
    nodes: Mapping[str, Labels],  # noqa: ARG001 - forecasts of all kinds are called alike
    configmaps: Mapping[str, Mapping[str, str]],  # noqa: ARG001
    measured: object = None,  # noqa: ARG001
) -> dict[str, Any]:
    """Return the AppGroup with the order in its status; unchanged when its spec gives none.

    Args:
        document: the AppGroup.
        nodes: labels by node name.
        configmaps: data by ``namespace/name``.
        measured: what node agents have measured.
    """
    order = [entry.to_api() for entry in plan_spec(document).order]
    status = {**(document.get("status") or {}), **({"topologyOrder": order} if order else {})}
    return {**document, "status": status}

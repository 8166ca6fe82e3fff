"""Whose the sockets of assignments are, by ``metadata.managedFields``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from berth.api.socketstatus import PLACEMENT_MANAGER, REPAIRING_MANAGER
from berth.kube.managed_fields import owned_items

BERTH: Final = frozenset({PLACEMENT_MANAGER, REPAIRING_MANAGER})
"""Field managers whose sockets this controller may change."""


def movable(managed_fields: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the uids of assignments whose socket is Berth's own, and nobody else's.

    The API server keeps this for every field manager, so that it is true for every replica and after a restart. Where
    it was taken away, nothing is known to be Berth's.
    """
    owners: dict[str, set[str]] = {}
    for entry in managed_fields:
        if entry.get("subresource"):
            continue
        for uid, owned in owned_items(entry, "spec", "assignments", key="uid").items():
            if "f:socket" in owned:
                owners.setdefault(uid, set()).add(entry.get("manager", ""))
    return frozenset(uid for uid, managers in owners.items() if managers <= BERTH)

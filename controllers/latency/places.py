"""The nodes: which there are, which of them share what is measured, and whom they may probe. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from berth.api.labels import LABEL_ZONE
from berth.api.latencypolicy import Sharing
from berth.network.probe_range import Network, ProbeRange
from controllers.latency.objects import NetworkNode


class Places:
    """Kept up to date by changes."""

    def __init__(self, never: Iterable[Network]) -> None:
        """Begin without nodes; `never` are networks in which nobody is probed."""
        self._range = ProbeRange(never)
        self._zones: dict[str, str] = {}

    def node_changed(self, old: NetworkNode | None, new: NetworkNode | None) -> bool:
        """Take in a change; returns whether a node came, went, or is in another zone."""
        name = (new or old or NetworkNode()).metadata.name
        self._range.node(name, new.networks() if new is not None else ())
        before = self._zones.get(name)
        if new is None:
            self._zones.pop(name, None)
        else:
            self._zones[name] = new.metadata.labels.get(LABEL_ZONE, "")
        return before != self._zones.get(name)

    def addresses_changed(self, old: Collection[str], new: Collection[str]) -> None:
        """Take in a change of the addresses of a pod or Service; most changes are of something else."""
        if old != new:
            self._range.addresses(old, new)

    def nodes(self) -> tuple[str, ...]:
        """Return the names of all nodes."""
        return tuple(self._zones)

    def exists(self, node: str) -> bool:
        """Return whether there is a node of that name."""
        return node in self._zones

    def place_of(self, node: str, sharing: Sharing) -> str:
        """Return under what the measurements of a node are kept: its own name, or that of its zone."""
        zone = self._zones.get(node, "") if sharing is Sharing.ZONE else ""
        return f"zone {zone}" if zone else node

    def nodes_by_place(self, sharing: Sharing) -> dict[str, list[str]]:
        """Return the nodes by place; each has at least one."""
        found: dict[str, list[str]] = {}
        for node in self._zones:
            found.setdefault(self.place_of(node, sharing), []).append(node)
        return found

    def may_probe(self, address: str) -> bool:
        """Return whether a user's address may be probed."""
        return self._range.refusal(address) is None

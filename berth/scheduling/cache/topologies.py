"""NetworkTopologies, which of them serves an application, and the costs that are read from it.

They are kept by namespace: however many others have, an application's costs are found without a look at those. Each is
kept as the watch has it, and is a model for a moment only: that of a megabyte takes 20 MiB, and anybody may make some.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final, NamedTuple

import msgspec

from berth.api.errors import InvalidObjectError
from berth.api.labels import WEIGHTS_ALLOCATED
from berth.api.networktopology import API_VERSION, KIND, NetworkTopology
from berth.kube.decoding import ObjectDecoder
from berth.kube.objects import CustomObject
from berth.network.costs import NO_COSTS, NetworkCosts, absent_costs, read_costs
from berth.scheduling.configuration import Profile

_Key = tuple[str, str]
"""Namespace and name."""


class _WeightSet(msgspec.Struct, rename="camel"):
    name: str = ""
    topology_list: msgspec.Raw = msgspec.Raw()


class _Spec(msgspec.Struct, rename="camel"):
    weights: list[_WeightSet] = []
    configmap_name: msgspec.Raw = msgspec.Raw()


_SPEC: Final = ObjectDecoder(_Spec)


class _Edit(NamedTuple):
    """The last edit of a NetworkTopology: what placement itself writes into it is none."""

    uid: str
    generation: int
    stated: int
    """hash of all but what is allocated"""


class TopologyTable:
    """Fed with every NetworkTopology."""

    def __init__(self) -> None:
        """Start empty."""
        self._topologies: dict[_Key, CustomObject] = {}
        self._names: dict[str, list[str]] = {}  # by namespace, sorted
        self._costs: dict[_Key, dict[tuple[str, ...], NetworkCosts]] = {}  # by names of weight sets
        self._edits: dict[_Key, _Edit] = {}

    def update(self, obj: CustomObject) -> tuple[str | None, bool]:
        """A NetworkTopology was added or changed.

        Returns what is wrong with it (None when it can be used), and whether costs that were in use changed or may
        be used from now on: its controller also writes bandwidth and times, which placement does not wait for.
        """
        key = namespace, name = obj.metadata.namespace, obj.metadata.name
        before = self._topologies.get(key)
        known = before is not None
        if before is not None and _content(before) == _content(obj):
            return None, False
        try:
            fresh = _model(obj)
        except InvalidObjectError as error:
            self.delete(obj)
            return str(error), known
        self._topologies[key] = obj
        self._edits[key] = edit = _edit(obj, self._edits.get(key))
        if not known:
            insort(self._names.setdefault(namespace, []), name)
        changed = not known
        for weight_sets, old in self._costs.get(key, {}).items():
            costs = read_costs(fresh, weight_sets=weight_sets, edited=edit.generation)
            if costs != old:
                self._costs[key][weight_sets] = costs
                changed = changed or not costs.judges_as(old)
        return None, changed

    def delete(self, obj: CustomObject) -> None:
        """A NetworkTopology was deleted."""
        key = namespace, name = obj.metadata.namespace, obj.metadata.name
        self._costs.pop(key, None)
        self._edits.pop(key, None)
        if self._topologies.pop(key, None) is not None:
            names = self._names[namespace]
            del names[bisect_left(names, name)]
            if not names:
                del self._names[namespace]

    def objects(self) -> list[CustomObject]:
        """All that can be used, as the watch has them."""
        return list(self._topologies.values())

    def costs_for(self, namespace: str, profile: Profile) -> NetworkCosts:
        """Network costs that an application of this namespace is placed with; the same object until they change."""
        key = self.serving(namespace, profile)
        if key is None:
            reference = profile.network_topology
            return NO_COSTS if reference is None else absent_costs(f"{reference.namespace}/{reference.name}")
        costs, weight_sets = self._costs.setdefault(key, {}), tuple(profile.weight_sets)
        if weight_sets not in costs:
            topology = _model(self._topologies[key])
            costs[weight_sets] = read_costs(topology, weight_sets=weight_sets, edited=self._edits[key].generation)
        return costs[weight_sets]

    def serving(self, namespace: str, profile: Profile) -> _Key | None:
        """Namespace and name of the NetworkTopology that serves an application of `namespace`.

        The configured one or, if that does not exist, none: another would be a guess that nobody notices. Where none
        is configured, the first by name in the application's namespace, else in the system namespace. Those of other
        namespaces never count: whoever may write there is no judge of this network.
        """
        reference = profile.network_topology
        if reference is not None:
            key = reference.namespace, reference.name
            return key if key in self._topologies else None
        for place in (namespace, profile.system_namespace):
            if place in self._names:
                return place, self._names[place][0]
        return None


def _content(obj: CustomObject) -> tuple[object, ...]:
    """What costs are read from."""
    return obj.metadata.uid, obj.metadata.generation, obj.spec, obj.status


def _edit(obj: CustomObject, before: _Edit | None) -> _Edit:
    """The last edit of an object, given the one before; one that etcd lost in a restore from a backup is none."""
    spec = _SPEC.decode(obj.spec)
    sets = tuple((item.name, bytes(item.topology_list)) for item in spec.weights if item.name != WEIGHTS_ALLOCATED)
    edit = _Edit(obj.metadata.uid, obj.metadata.generation, hash((sets, bytes(spec.configmap_name))))
    if before is None or before.generation > edit.generation:
        return edit
    return before if (before.uid, before.stated) == (edit.uid, edit.stated) else edit


def _model(obj: CustomObject) -> NetworkTopology:
    return NetworkTopology.parse(obj.document(api_version=API_VERSION, kind=KIND))

"""Classes that WorkloadProfiles state, by workload: as much of them as pinning reads. No I/O.

Each node follows all profiles of the cluster, which may state slowdowns by the thousand: these are not kept.
"""

from __future__ import annotations

from typing import Final

import msgspec

from berth.api.interference import InterferenceClass
from berth.kube.meta import ObjectMeta, Struct
from berth.kube.objects import Pod
from berth.kube.owners import owner_key, owner_of
from berth.kube.resources import WORKLOAD_PROFILES, Resource

_LETTERS: Final = frozenset(InterferenceClass)


class Target(Struct):
    """Workload that a profile is about."""

    kind: str = ""
    name: str = ""


class ProfileSpec(Struct):
    """Spec of a WorkloadProfile without what was measured."""

    target_ref: Target = msgspec.field(default_factory=Target)
    interference_class: str = ""


class Profile(Struct):
    """A WorkloadProfile, cut down."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ProfileSpec = msgspec.field(default_factory=ProfileSpec)

    @property
    def workload(self) -> str:
        """The workload that it is about, as `berth.kube.owners` names it."""
        return owner_key(self.metadata.namespace, self.spec.target_ref.kind, self.spec.target_ref.name)


PROFILES: Final = Resource(
    WORKLOAD_PROFILES.group, WORKLOAD_PROFILES.version, WORKLOAD_PROFILES.plural, WORKLOAD_PROFILES.kind, Profile
)
"""WorkloadProfiles, cut down."""


class ProfiledClasses:
    """Classes of workloads, kept up to date by changes of profiles."""

    def __init__(self) -> None:
        """Start without any."""
        self._by_workload: dict[str, dict[str, InterferenceClass]] = {}

    def changed(self, old: Profile | None, new: Profile | None) -> None:
        """Take in a change, as a watch reports it; a profile with what is no class counts for nothing."""
        if old is not None:
            there = self._by_workload.get(old.workload, {})
            there.pop(old.metadata.name, None)
            if not there:
                self._by_workload.pop(old.workload, None)
        if new is not None and new.spec.interference_class in _LETTERS:
            there = self._by_workload.setdefault(new.workload, {})
            there[new.metadata.name] = InterferenceClass(new.spec.interference_class)

    def of(self, pod: Pod) -> InterferenceClass | None:
        """Return the class of a pod's workload, by the first profile by name as for placement; None without any."""
        there = self._by_workload.get(owner_of(pod))
        return None if there is None else there[min(there)]

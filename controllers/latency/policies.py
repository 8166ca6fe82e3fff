"""The LatencyPolicies, each in the newest version that is known: from the watch, or as it was written last. No I/O."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from berth.api.errors import InvalidObjectError
from berth.api.latencypolicy import API_VERSION, KIND, LatencyPolicy
from berth.kube.objects import CustomObject
from berth.kube.owners import owner_key
from berth.kube.resources import version_number


def target_of(policy: LatencyPolicy) -> str:
    """Return the workload of a policy, as `owner_key` names it."""
    reference = policy.spec.target_ref
    return owner_key(policy.metadata.namespace, reference.kind, reference.name)


@dataclass(frozen=True, slots=True)
class Known:
    """A policy that can be read."""

    policy: LatencyPolicy
    """the policy"""

    @property
    def version(self) -> int:
        """Its version, as a number that grows."""
        return version_number(self.policy.metadata.resource_version)

    @property
    def target(self) -> str:
        """Name of its workload, as `owner_key` has it."""
        return target_of(self.policy)


class Policies:
    """Policies by key, ``namespace/name``, and by workload."""

    def __init__(self) -> None:
        """Begin without any."""
        self._known: dict[str, Known] = {}
        self._of_target: dict[str, set[str]] = {}
        self._last: dict[str, LatencyPolicy] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._known)

    def get(self, key: str) -> LatencyPolicy | None:
        """Return a policy; None if it is not there, or cannot be read."""
        known = self._known.get(key)
        return known.policy if known is not None else None

    def target(self, key: str) -> str:
        """Return the workload of a policy, as `owner_key` names it; empty where there is no such policy."""
        known = self._known.get(key)
        return known.target if known is not None else ""

    def of(self, target: str) -> frozenset[str]:
        """Return the keys of the policies on a workload, as `owner_key` names it."""
        return frozenset(self._of_target.get(target, ()))

    def update(self, obj: CustomObject) -> str | None:
        """Take in what the watch has shown; returns what is wrong with it, if it cannot be read.

        A version that is older than the one that was written last is left out.
        """
        return self._take(obj.document(api_version=API_VERSION, kind=KIND))

    def written(self, raw: dict[str, Any]) -> None:
        """Take in the answer to a write; of a policy that is gone by then, as the one that was known last.

        The watch may have told that it went before its writer hears of the write: it would be there for ever.
        """
        metadata = raw["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        last, known = self._last.get(key), self._known.get(key)
        if last is None or last.metadata.uid != metadata["uid"]:
            self._take(raw)
        elif known is None or known.policy.metadata.uid != metadata["uid"]:
            with suppress(InvalidObjectError):
                self._last[key] = LatencyPolicy.parse(raw)

    def last(self, key: str) -> LatencyPolicy | None:
        """Return a policy that is gone, as it was known last; None once it was forgotten.

        Another of its name may have taken its place.
        """
        return self._last.get(key)

    def has_left(self, target: str) -> bool:
        """Return whether something is still to be done on a workload about a policy that is gone."""
        return any(target_of(policy) == target for policy in self._last.values())

    def forget(self, key: str) -> None:
        """What was to be done about a policy that is gone is done."""
        self._last.pop(key, None)

    def remove(self, key: str) -> None:
        """A policy is gone, or cannot be read any more."""
        known = self._known.pop(key, None)
        if known is not None:
            self._last.setdefault(key, known.policy)
            keys = self._of_target[known.target]
            keys.discard(key)
            if not keys:
                del self._of_target[known.target]

    def _take(self, document: dict[str, Any]) -> str | None:
        key = f"{document['metadata']['namespace']}/{document['metadata']['name']}"
        try:
            known = Known(LatencyPolicy.parse(document))
        except InvalidObjectError as error:
            self.remove(key)
            return str(error)
        before = self._known.get(key)
        same = before is not None and before.policy.metadata.uid == known.policy.metadata.uid
        if before is not None and same and known.version < before.version:
            return None
        self.remove(key)
        self._known[key] = known
        last = self._last.get(key)
        if last is not None and last.metadata.uid == known.policy.metadata.uid:
            del self._last[key]
        self._of_target.setdefault(known.target, set()).add(key)
        return None

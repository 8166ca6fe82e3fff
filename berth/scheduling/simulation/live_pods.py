"""Pods of a live cluster, found by what a workload selects without looking at every pod."""

from __future__ import annotations

from collections.abc import Iterable

from berth.kube.objects import Pod
from berth.scheduling.simulation.workloads import Workload


class LivePods:
    """Unfinished pods by namespace and label."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        """Sort them in; their labels must not change any more."""
        self._keys: set[str] = set()
        self._by_namespace: dict[str, list[Pod]] = {}
        self._by_label: dict[tuple[str, str, str], list[Pod]] = {}
        for pod in pods:
            namespace = pod.metadata.namespace
            self._keys.add(pod.key)
            self._by_namespace.setdefault(namespace, []).append(pod)
            for name, value in pod.metadata.labels.items():
                self._by_label.setdefault((namespace, name, value), []).append(pod)

    def __contains__(self, key: str) -> bool:
        """Whether there is a pod ``namespace/name``."""
        return key in self._keys

    def of(self, workload: Workload) -> list[Pod]:
        """The pods that a workload's selector finds, in the order in which they were given."""
        selects, namespace = workload.selects, workload.namespace
        if selects is None:
            return []
        # Each label that is asked for by one value has a list; the shortest of them holds all that can match.
        candidates = self._by_namespace.get(namespace, [])
        for name, operator, values in selects.requirements:
            if operator == "In" and len(values) == 1:
                (value,) = values
                having = self._by_label.get((namespace, name, value), [])
                candidates = min(candidates, having, key=len)
        return [pod for pod in candidates if selects.matches(pod.metadata.labels)]

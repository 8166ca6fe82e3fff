"""Which pods with rules about other pods are worth another look, now that more pods have been assumed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from berth.scheduling.cache.volumes import claim_keys, disk_uses

if TYPE_CHECKING:
    from berth.scheduling.cache.pod_templates import PodInfo, PodTemplateInfo
    from berth.scheduling.cache.state import ClusterState


class Turns:
    """Pods that no node took, and whose turn comes again when a pod is assumed that their rules select.

    More pods make room for a pod through required affinity and through topology spread (the emptiest domain fills);
    every other rule only gets stricter. What selects what is found out once per pair of templates.
    """

    def __init__(self, state: ClusterState, infos: Iterable[PodInfo]) -> None:
        """Watch over pods with these compiled templates."""
        self._state = state
        templates = {info.template.key: info.template for info in infos}.values()
        self._waiting = [one for one in templates if one.hard_spread or one.terms_of("affinity")]
        """those whose turn may come again"""
        # By key: a large template may be compiled anew for every pod.
        self._interested: dict[bytes, list[bytes]] = {}
        self._assumed = 0
        self._woken: defaultdict[bytes, int] = defaultdict(int)
        self._judged: dict[str, int] = {}

    def due(self, info: PodInfo) -> bool:
        """Whether a pod was assumed, since this one was looked at, that may have made a node fit."""
        return self._woken[info.template.key] > self._judged.get(info.pod.metadata.uid, -1)

    def judged(self, info: PodInfo) -> None:
        """Note that a pod was looked at with all that is assumed by now."""
        self._judged[info.pod.metadata.uid] = self._assumed

    def assumed(self, info: PodInfo) -> None:
        """Note that a pod was assumed."""
        self._assumed += 1
        template = info.template
        if template.key not in self._interested:
            self._interested[template.key] = [one.key for one in self._waiting if selects(self._state, one, template)]
        for one in self._interested[template.key]:
            self._woken[one] = self._assumed


def selects(state: ClusterState, rules: PodTemplateInfo, template: PodTemplateInfo) -> bool:
    """Whether a pod's required affinity or topology spread counts pods of a template."""
    labels = state.namespace_labels(template.namespace)
    return any(term.matches(template.namespace, template.labels, labels) for term in rules.terms_of("affinity")) or any(
        rules.namespace == template.namespace and constraint.selector.matches(template.labels)
        for constraint in rules.hard_spread
    )


def depends_on_others(info: PodInfo) -> bool:
    """Whether the pod's rules look at other pods, so that a joint plan may break them."""
    template = info.template
    return bool(
        template.terms
        or template.hard_spread
        or template.host_ports
        or claim_keys(info.pod)
        or (info.pod.spec.volumes and disk_uses(info.pod))
    )

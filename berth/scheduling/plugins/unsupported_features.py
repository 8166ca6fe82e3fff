"""Pods that need what Berth does not implement are never placed, and told so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.kube.meta import MOST_ENTRIES
from berth.scheduling.framework.plugin import FilterPlugin

if TYPE_CHECKING:
    from berth.kube.objects import Pod
    from berth.scheduling.framework.cycle_state import CycleState


MOST_RULES = 256
"""Affinity terms and topology spread constraints of one pod that are looked at: each may mean any pod of the cluster,
and the thousands that a pod has room for would keep all others waiting for minutes."""


def unsupported_features(pod: Pod) -> list[str]:
    """Field paths of the pod that kube-scheduler would act on and Berth does not.

    Empty for pods that Berth understands in full.
    """
    spec = pod.spec
    found = []
    if spec.resource_claims:
        found.append("spec.resourceClaims")
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for number, container in enumerate(containers):
            if container.resources.claims:
                found.append(f"spec.{field}[{number}].resources.claims")
    if spec.scheduling_group is not None:
        found.append("spec.schedulingGroup")
    return found


class UnsupportedFeatures(FilterPlugin):
    """Blocks pods with fields that are not implemented or that make no sense."""

    name = "UnsupportedFeatures"

    def pre_filter(self, cycle: CycleState) -> str | None:
        """Names the fields."""
        info = cycle.pod
        entries = info.pod.spec.omitted_entries
        if entries:
            return (
                f"the pod has {entries} labels, annotations, selectors, ports, requests and the like, more than "
                f"{MOST_ENTRIES}; use fewer"
            )
        fields = unsupported_features(info.pod)
        if fields:
            return f"the pod uses fields that Berth does not implement: {', '.join(fields)}"
        if info.template.problems:
            return f"the pod cannot be understood: {'; '.join(map(str, info.template.problems))}"
        template = info.template
        rules = sum(map(len, template.terms.values())) + len(template.hard_spread) + len(template.soft_spread)
        if rules > MOST_RULES:
            return (
                f"the pod has {rules} affinity terms and topology spread constraints, more than {MOST_RULES}; "
                "use fewer, with selectors that mean more pods each"
            )
        return None

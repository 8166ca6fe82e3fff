"""PriorityClass: what the API server's Priority admission reads when it sets ``spec.priority`` of a new pod."""

from __future__ import annotations

import msgspec

from berth.kube.meta import Int64
from berth.kube.objects import ObjectMeta
from berth.kube.resources import Resource


class PriorityClass(msgspec.Struct, gc=False, rename="camel", omit_defaults=True):
    """schedulingv1.PriorityClass."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    value: Int64 = 0
    global_default: bool = False


PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", PriorityClass, namespaced=False
)

SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Classes that every cluster has."""

"""Pods of one owner are nearly equal, so the copy of a cluster keeps what they have in common only once.

Of the fields that Berth reads, a Deployment's pods differ in name, uid, version, node and volumes; containers,
tolerations, labels and conditions are the larger part and mostly the same. Objects in the copy are read only, which
makes interning safe.
"""

from __future__ import annotations

from berth.kube.objects import Pod

_METADATA = ("namespace", "labels", "annotations", "owner_references")
_SPEC = (
    "scheduler_name",
    "node_selector",
    "affinity",
    "tolerations",
    "topology_spread_constraints",
    "containers",
    "init_containers",
    "overhead",
    "volumes",
)
_STATUS = ("conditions", "container_statuses", "init_container_statuses", "allocated_resources")


class PodInterning:
    """Replaces parts of a pod by the equal parts of the pod of the same owner that was seen last."""

    def __init__(self) -> None:
        """Begin without models."""
        self._models: dict[str, Pod] = {}

    def __call__(self, pod: Pod) -> None:
        """Share what can be shared; pods without an owner are left alone."""
        owner = _owner(pod)
        if not owner:
            return
        model = self._models.get(owner)
        if model is not None:
            _share(pod.metadata, model.metadata, _METADATA)
            _share(pod.spec, model.spec, _SPEC)
            _share(pod.status, model.status, _STATUS)
        # The newest is the likeliest to be like the next: while an application starts, conditions change in waves.
        self._models[owner] = pod

    def replaced(self, old: Pod, new: Pod | None) -> None:
        """A pod of the copy has changed or is gone (None): what is gone is no model, so that nothing is kept for it."""
        owner = _owner(old)
        model = self._models.get(owner)
        if model is not None and model.metadata.uid == old.metadata.uid and (new is None or _owner(new) != owner):
            del self._models[owner]


def _owner(pod: Pod) -> str:
    references = pod.metadata.owner_references
    return references[0].uid if references else ""


def _share(part: object, model: object, fields: tuple[str, ...]) -> None:
    for field in fields:
        known = getattr(model, field)
        if getattr(part, field) == known:
            setattr(part, field, known)

"""Where a policy's limits come from: the policy itself or, where it states none, annotations of the workload's pods.

The annotations are those of the thesis that this goes back to; they are read from the pod template.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from berth.api.labels import ANNOTATION_HARD_MAX_LATENCY, ANNOTATION_SOFT_MAX_LATENCY
from berth.api.latencypolicy import AnnotatedLimits, LatencyPolicySpec

_WHOLE: Final = re.compile(r"[1-9][0-9]{0,4}")
_LARGEST: Final = 60_000


class UnreadableLimitError(ValueError):
    """An annotation states no limit; the text says which one, and what to write."""


def annotated_limits(spec: LatencyPolicySpec, annotations: Mapping[str, str]) -> AnnotatedLimits | None:
    """Return the limits that count by annotations; None where the policy states one itself, or neither does.

    Raises:
        UnreadableLimitError: they cannot be read, or the soft limit is above the hard one.
    """
    if spec.hard_max_latency is not None or spec.soft_max_latency is not None:
        return None
    hard, soft = (
        _milliseconds(annotations, name) for name in (ANNOTATION_HARD_MAX_LATENCY, ANNOTATION_SOFT_MAX_LATENCY)
    )
    if hard is not None and soft is not None and soft > hard:
        raise UnreadableLimitError(
            f"{ANNOTATION_SOFT_MAX_LATENCY} {soft} is above {ANNOTATION_HARD_MAX_LATENCY} {hard}; write a soft limit "
            "that is no higher"
        )
    if hard is None and soft is None:
        return None
    return AnnotatedLimits(hard_max_latency=hard, soft_max_latency=soft)


def with_limits(spec: LatencyPolicySpec, limits: AnnotatedLimits | None) -> LatencyPolicySpec:
    """Return a spec with the limits that count, given those of annotations."""
    if limits is None:
        return spec
    return spec.model_copy(
        update={"hard_max_latency": limits.hard_max_latency, "soft_max_latency": limits.soft_max_latency}
    )


def _milliseconds(annotations: Mapping[str, str], name: str) -> int | None:
    text = annotations.get(name)
    if text is None:
        return None
    if not _WHOLE.fullmatch(text.strip()) or int(text) > _LARGEST:
        raise UnreadableLimitError(f"{name} {text[:40]!r} is no limit; write whole milliseconds, 1 to {_LARGEST}")
    return int(text)

"""CEL rules of the kinds: what a structural schema cannot say, checked by the API server.

Two budgets bound every rule: the API server estimates its cost from the largest object that the
schema allows (10 million per rule) and stops it at run time (1 million per call). Membership and
uniqueness over 10,000 workloads therefore go through a CEL map, which is linear, and every list
and string that a rule walks has a limit.
"""

from __future__ import annotations

from typing import Any, Final

MAX_WORKLOADS: Final = 10_000
"""Most workloads of an AppGroup."""
MAX_DEPENDENCIES: Final = 60
"""Most dependencies of one workload; times :data:`MAX_WORKLOADS` it is what the cost budget of a rule allows."""
MAX_BANDWIDTH: Final = 20
"""Longest text of ``minBandwidth``, in characters; the largest whole number of 64 bits has 19."""
MAX_SELECTOR: Final = 63
"""Longest selector, in characters: it is the value of a pod label."""

QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""Quantities as upstream's schemas accept them, for lists too large for a CEL rule per entry."""

API_VERSION_DESCRIPTION: Final = "Group and version of the object's schema."
"""Description of ``apiVersion``."""
KIND_DESCRIPTION: Final = "Kind of the object."
"""Description of ``kind``."""

WORKLOAD_RULES: Final[tuple[dict[str, str], ...]] = (
    {
        # Membership in a map costs the same for any selector; comparing strings is charged by their length.
        "rule": (
            "!has(self.dependencies) || [{self.workload.selector: true}].all(own, "
            "!self.dependencies.exists(d, d.workload.selector in own))"
        ),
        "message": "a workload depends on itself; remove that dependency",
        "messageExpression": (
            "'workload \"' + self.workload.selector + '\" depends on itself; remove that dependency, or correct its "
            "selector if another workload is meant'"
        ),
    },
)
"""Rules of one entry of ``spec.workloads``."""

_BANDWIDTH: Final = "self.minBandwidth"
_BANDWIDTH_MESSAGE: Final[dict[str, str]] = {
    "message": "minBandwidth is not a bandwidth; write a quantity of bit/s from 0 up, such as 100M, 1Gi or 1e9",
    "messageExpression": (
        "'minBandwidth of the dependency on \"' + self.workload.selector + '\" is not a bandwidth; write a quantity of "
        "bit/s from 0 up, such as 100M, 1Gi or 1e9'"
    ),
    "fieldPath": ".minBandwidth",
}
DEPENDENCY_RULES: Final[tuple[dict[str, str], ...]] = (
    {"rule": f"!has({_BANDWIDTH}) || type({_BANDWIDTH}) == int || isQuantity({_BANDWIDTH})", **_BANDWIDTH_MESSAGE},
    {
        "rule": (
            f"!has({_BANDWIDTH}) || (type({_BANDWIDTH}) == int ? {_BANDWIDTH} >= 0 : !{_BANDWIDTH}.startsWith('-'))"
        ),
        **_BANDWIDTH_MESSAGE,
    },
)
"""Rules of one dependency. Two, because the cost of each has a budget of its own."""

# Selector -> position. Building it fails on a selector that occurs twice, which is how duplicates are found:
# the API server then shows the selector and the rule's static message.
_KNOWN: Final = "[self.workloads.transformMapEntry(i, w, {w.workload.selector: i})]"
_UNKNOWN: Final = "has(w.dependencies) && w.dependencies.exists(d, !(d.workload.selector in known))"

APPGROUP_RULES: Final[tuple[dict[str, str], ...]] = (
    {
        "rule": "self.numMembers >= size(self.workloads)",
        "message": "numMembers is smaller than the number of workloads, each of which needs at least one pod; raise it",
        "messageExpression": (
            "'numMembers is %d but the group has %d workloads, each of which needs at least one pod; raise numMembers'"
            ".format([self.numMembers, size(self.workloads)])"
        ),
        "fieldPath": ".numMembers",
    },
    {
        "rule": f"{_KNOWN}.all(known, !self.workloads.exists(w, {_UNKNOWN}))",
        "message": "two workloads have the same selector; give each workload a selector of its own",
        "messageExpression": (
            # One list of [workload, missing dependency] pairs per workload; the first pair is reported.
            f'{_KNOWN}.map(known, \'workload "%s" depends on "%s", which is not a workload of this group; add it to '
            "spec.workloads or correct the selector'.format(self.workloads.map(w, has(w.dependencies), "
            "w.dependencies.map(d, !(d.workload.selector in known), [w.workload.selector, d.workload.selector]))"
            ".filter(pairs, size(pairs) > 0)[0][0]))[0]"
        ),
        "fieldPath": ".workloads",
    },
)
"""Rules of an AppGroup's spec."""


def schema_rules(rule_list: tuple[dict[str, str], ...]) -> dict[str, Any]:
    """Return ``rule_list`` as an addition to a model's schema."""
    return {"x-kubernetes-validations": list(rule_list)}

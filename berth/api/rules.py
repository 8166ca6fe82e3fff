"""CEL expressions of the admission policies: what makes no sense in a spec although its schema accepts it.

The policies warn, or deny in the strict overlay; :mod:`berth.api.checks` has the same rules for Python. The
API server stops an expression at a cost of a million, after a second or more; so rules that compare all workloads
with all others pass over large specs, and the condition of the object tells alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MAX_SELECTOR: Final = 63
"""Longest selector that a pod label can hold, in characters."""

API_VERSION_DESCRIPTION: Final = "Group and version of the object's schema."
"""Description of ``apiVersion``."""
KIND_DESCRIPTION: Final = "Kind of the object."
"""Description of ``kind``."""
MAX_COMPARISONS: Final = 250_000
"""Comparisons of selectors, workloads times workloads and their dependencies, above which a policy makes none: 200
workloads with five dependencies each. The API server takes some 30 ms for as many."""
_BANDWIDTH: Final = (
    "type({0}) == int ? {0} >= 0 : (size({0}) <= 128 && !{0}.startsWith('-') && "
    "{0}.matches('[0-9]') && !{0}.matches('[eE][+-]?0*[1-9][0-9]{{2}}') && isQuantity({0}))"
)
"""A bandwidth, within the bounds of :mod:`berth.api.quantity`: isQuantity keeps the API server busy for minutes with an
exponent of ten digits."""


SPEC_WRITTEN: Final = (
    "oldObject == null || has(object.spec) != has(oldObject.spec) || has(object.spec) && object.spec != oldObject.spec"
)
"""Whether a write is of the spec. Others pass, whatever was stored before the policies came: who labels an object did
not write its spec, and the garbage collector takes its finalizer away from an object that is being deleted."""


class Rule(NamedTuple):
    """One rule of a policy."""

    expression: str
    """CEL, true when all is well"""
    message: str
    """CEL, the problem in words with how it is read and what to write; used when the expression is false"""


APPGROUP_VARIABLES: Final[dict[str, str]] = {
    "workloads": "has(object.spec) ? object.spec.workloads : []",
    "selectors": "variables.workloads.map(w, w.workload.selector)",
    "algorithms": "['KahnSort', 'AlternateKahn', 'ReverseKahn', 'TarjanSort', 'AlternateTarjan', 'ReverseTarjan']",
    "dependencies": "variables.workloads.map(w, has(w.dependencies) ? size(w.dependencies) : 0).sum()",
    # Without its workloads no comparison finds anything.
    "compared": (
        f"size(variables.workloads) * (size(variables.workloads) + variables.dependencies) <= {MAX_COMPARISONS} "
        "? variables.workloads : []"
    ),
    "twice": (
        "variables.compared.map(w, w.workload.selector).filter(s, !variables.selectors.exists_one(other, other == s))"
    ),
    "long": f"variables.selectors.filter(s, size(s) > {MAX_SELECTOR})",
    "selfish": (
        "variables.workloads.filter(w, has(w.dependencies) && "
        "w.dependencies.exists(d, d.workload.selector == w.workload.selector))"
    ),
    "dangling": (
        "variables.compared.filter(w, has(w.dependencies) && "
        "w.dependencies.exists(d, !(d.workload.selector in variables.selectors)))"
    ),
    "bandwidths": (
        "variables.workloads.filter(w, has(w.dependencies) && w.dependencies.exists(d, has(d.minBandwidth) && "
        f"!({_BANDWIDTH.format('d.minBandwidth')})))"
    ),
}
"""Expressions that the rules of an AppGroup share, by name."""

APPGROUP_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "!has(object.spec) || object.spec.topologySortingAlgorithm in variables.algorithms",
        "'spec.topologySortingAlgorithm: \"' + object.spec.topologySortingAlgorithm + '\" is no algorithm; KahnSort is "
        "used; write one of ' + variables.algorithms.join(', ')",
    ),
    Rule(
        "!has(object.spec) || object.spec.numMembers >= size(variables.workloads)",
        "'spec.numMembers: numMembers is %d but the group has %d workloads, each of which needs at least one pod; "
        "raise numMembers'.format([object.spec.numMembers, size(variables.workloads)])",
    ),
    Rule(
        "size(variables.twice) == 0",
        "'spec.workloads: several workloads have the selector \"' + variables.twice[0] + '\"; they are read as one; "
        "give each workload a selector of its own'",
    ),
    Rule(
        "size(variables.long) == 0",
        f"'spec.workloads: the selector \"' + variables.long[0] + '\" has more than {MAX_SELECTOR} characters, which "
        "no pod label can hold; shorten it'",
    ),
    Rule(
        "size(variables.selfish) == 0",
        "'spec.workloads: workload \"' + variables.selfish[0].workload.selector + '\" depends on itself; that "
        "dependency is ignored; remove it'",
    ),
    Rule(
        "size(variables.dangling) == 0",
        "'spec.workloads: workload \"' + variables.dangling[0].workload.selector + '\" depends on \"' + "
        "variables.dangling[0].dependencies.filter(d, !(d.workload.selector in variables.selectors))[0]"
        ".workload.selector + '\", which is not a workload of this group; that dependency is ignored; add it to "
        "spec.workloads or correct the selector'",
    ),
    Rule(
        "size(variables.bandwidths) == 0",
        "'spec.workloads: a minBandwidth of workload \"' + variables.bandwidths[0].workload.selector + '\" is not a "
        "bandwidth; it is read as no demand; write a quantity of bit/s from 0 up, such as 100M, 1Gi or 1e9'",
    ),
)
"""Rules of an AppGroup."""

NETWORKTOPOLOGY_VARIABLES: Final[dict[str, str]] = {
    # Sets that stay as they are pass: the controller writes computed sets beside those of people, and has to be let in.
    "before": "oldObject != null && has(oldObject.spec) ? oldObject.spec.weights : []",
    "capacities": (
        "has(object.spec) ? object.spec.weights.filter(s, !(s in variables.before) && "
        "s.topologyList.exists(t, t.originList.exists(o, "
        "has(o.costList) && o.costList.exists(c, has(c.bandwidthCapacity) && "
        f"!({_BANDWIDTH.format('c.bandwidthCapacity')}))))) : []"
    ),
}
"""Expressions that the rules of a NetworkTopology share, by name."""

NETWORKTOPOLOGY_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "size(variables.capacities) == 0",
        "'spec.weights: a bandwidthCapacity of \"' + variables.capacities[0].name + '\" is not a bandwidth; it is read "
        "as not known; write a quantity of bit/s from 0 up, such as 10G or 1Gi'",
    ),
)
"""Rules of a NetworkTopology."""

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
MAX_DEPENDENCIES: Final = 64
"""Most dependencies of one workload."""
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

WORKLOAD_RULES: Final[tuple[dict[str, str], ...]] = ()
"""Rules of one entry of ``spec.workloads``."""
APPGROUP_RULES: Final[tuple[dict[str, str], ...]] = ()
"""Rules of an AppGroup's spec."""
NETWORKTOPOLOGY_RULES: Final[tuple[dict[str, str], ...]] = ()
"""Rules of a NetworkTopology's spec."""


def schema_rules(rule_list: tuple[dict[str, str], ...]) -> dict[str, Any]:
    """Return ``rule_list`` as an addition to a model's schema."""
    return {"x-kubernetes-validations": list(rule_list)} if rule_list else {}

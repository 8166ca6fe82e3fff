"""ValidatingAdmissionPolicies that tell an author at once what makes no sense in a spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from berth.api.rules import (
    APPGROUP_RULES,
    APPGROUP_VARIABLES,
    NETWORKTOPOLOGY_RULES,
    NETWORKTOPOLOGY_VARIABLES,
    SPEC_WRITTEN,
    Rule,
)
from hack.codegen.crds import yaml_text
from hack.codegen.kinds import APPGROUP, NETWORKTOPOLOGY, KindSpec

PATH: Final = "deploy/policies/warn/policies.yaml"
"""Where the policies are; the overlay ``deploy/policies/deny`` turns Warn into Deny."""


def policies() -> list[dict[str, Any]]:
    """Return the policies of all kinds, each with its binding."""
    return [
        *_policy(APPGROUP, APPGROUP_VARIABLES, APPGROUP_RULES),
        *_policy(NETWORKTOPOLOGY, NETWORKTOPOLOGY_VARIABLES, NETWORKTOPOLOGY_RULES),
    ]


def manifest() -> str:
    """Return the text of the policies' file."""
    return yaml_text(*policies())


def _policy(kind: KindSpec, variables: Mapping[str, str], rules: Sequence[Rule]) -> list[dict[str, Any]]:
    name = f"{kind.plural}.berth.dev"
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [kind.plural],
    }
    spec = {
        # An author is warned where that is possible; a policy that fails must not stop anybody.
        "failurePolicy": "Ignore",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "spec-written", "expression": SPEC_WRITTEN}],
        "variables": [{"name": key, "expression": expression} for key, expression in variables.items()],
        "validations": [{"expression": rule.expression, "messageExpression": rule.message} for rule in rules],
    }
    api = "admissionregistration.k8s.io/v1"
    binding = {"policyName": name, "validationActions": ["Warn"]}
    return [
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": binding},
    ]

"""The admission policies that put a latency meter into pods: one does it, the other warns where it cannot be done."""

from __future__ import annotations

from typing import Any, Final

from berth.api.labels import LABEL_METER, METER_DISABLED, METER_ENABLED
from berth.api.meter_injection import CONTAINER, PATCH, POD, RULES, VARIABLES
from hack.codegen.crds import yaml_text

PATH: Final = "deploy/meter/policies.yaml"
"""Where the policies are."""
NAME: Final = "meter.berth.dev"
"""Name of the policies and of their bindings."""
_API: Final = "admissionregistration.k8s.io/v1"
_MIRROR: Final = "kubernetes.io/config.mirror"


def policies() -> list[dict[str, Any]]:
    """Return both policies, each with its binding."""
    return [
        {"apiVersion": _API, "kind": "MutatingAdmissionPolicy", "metadata": {"name": NAME}, "spec": _mutating()},
        {
            "apiVersion": _API,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": NAME},
            "spec": _binding(),
        },
        {"apiVersion": _API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": NAME}, "spec": _warning()},
        {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": NAME},
            "spec": {**_binding(), "validationActions": ["Warn"]},
        },
    ]


def manifest() -> str:
    """Return the text of the policies' file."""
    return yaml_text(*policies())


def _mutating() -> dict[str, Any]:
    fits = " && ".join(f"({rule.expression})" for rule in RULES)
    variables = {**VARIABLES, "fits": fits, "at": "'/spec/initContainers/' + string(size(variables.inits))"}
    return {
        # Whatever goes wrong here, a pod is created.
        "failurePolicy": "Ignore",
        "paramKind": {"apiVersion": "v1", "kind": "PodTemplate"},
        "matchConstraints": {
            "objectSelector": {"matchLabels": {LABEL_METER: METER_ENABLED}},
            "resourceRules": [_rule("", "pods", create_only=True)],
        },
        # The API server's copy of a pod that a kubelet has from a file: that runs without the meter.
        "matchConditions": [
            {"name": "no-mirror", "expression": f"!('{_MIRROR}' in object.metadata.?annotations.orValue({{}}))"}
        ],
        "variables": _named(variables),
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": PATCH}}],
        "reinvocationPolicy": "Never",
    }


def _warning() -> dict[str, Any]:
    label = f"({POD}).metadata.?labels[?'{LABEL_METER}'].orValue('{METER_DISABLED}')"
    return {
        "failurePolicy": "Ignore",
        "paramKind": {"apiVersion": "v1", "kind": "PodTemplate"},
        # People write workloads; the warning about a pod is for whoever creates pods, mostly a controller.
        "matchConstraints": {
            "resourceRules": [
                _rule("", "pods", create_only=True),
                _rule("apps", "deployments", "statefulsets", "daemonsets"),
            ]
        },
        "matchConditions": [{"name": "labelled", "expression": f"{label} != '{METER_DISABLED}'"}],
        "variables": _named(VARIABLES),
        "validations": [
            {"expression": f"variables.metered || ({rule.expression})", "messageExpression": rule.message}
            for rule in RULES
        ],
    }


def _binding() -> dict[str, Any]:
    """Where: a label on a namespace, with the value that keeps the meter out of a pod, keeps it out of all there."""
    expressions = [
        {"key": LABEL_METER, "operator": "NotIn", "values": [METER_DISABLED]},
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]},
    ]
    return {
        "policyName": NAME,
        "paramRef": {"name": CONTAINER, "namespace": "berth-system", "parameterNotFoundAction": "Allow"},
        "matchResources": {"namespaceSelector": {"matchExpressions": expressions}},
    }


def _rule(group: str, *resources: str, create_only: bool = False) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": ["CREATE"] if create_only else ["CREATE", "UPDATE"],
        "resources": list(resources),
    }


def _named(variables: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "expression": expression} for name, expression in variables.items()]

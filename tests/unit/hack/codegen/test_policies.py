"""The admission policies; that they say the same as the Python checks is shown on a real API server."""

from __future__ import annotations

import pytest
import yaml

from berth.api.appgroup import SortingAlgorithm
from berth.api.rules import APPGROUP_RULES, APPGROUP_VARIABLES, NETWORKTOPOLOGY_RULES, Rule
from hack.codegen.files import ROOT
from hack.codegen.policies import PATH, manifest, policies


def test_the_manifest_is_yaml_of_the_policies() -> None:
    assert list(yaml.safe_load_all(manifest())) == policies()


def test_every_policy_is_bound_and_warns() -> None:
    by_kind: dict[str, list[str]] = {}
    for item in policies():
        by_kind.setdefault(item["kind"], []).append(item["metadata"]["name"])
    assert by_kind["ValidatingAdmissionPolicy"] == by_kind["ValidatingAdmissionPolicyBinding"]
    bindings = [item["spec"] for item in policies() if item["kind"].endswith("Binding")]
    assert [spec["validationActions"] for spec in bindings] == [["Warn"], ["Warn"]]


def test_a_policy_that_fails_stops_nobody() -> None:
    found = {item["spec"].get("failurePolicy") for item in policies() if not item["kind"].endswith("Binding")}
    assert found == {"Ignore"}


def test_the_algorithms_are_the_models() -> None:
    assert APPGROUP_VARIABLES["algorithms"] == str([item.value for item in SortingAlgorithm])


@pytest.mark.parametrize("rule", [*APPGROUP_RULES, *NETWORKTOPOLOGY_RULES], ids=lambda rule: rule.expression)
def test_messages_name_the_field_and_fit_into_a_line(rule: Rule) -> None:
    _, message = rule
    assert message.startswith("'spec.")
    assert "\n" not in message


def test_the_overlay_turns_warn_into_deny() -> None:
    base = yaml.safe_load((ROOT / PATH).with_name("kustomization.yaml").read_text())
    overlay = yaml.safe_load((ROOT / "deploy/policies/deny/kustomization.yaml").read_text())
    assert base["resources"] == ["policies.yaml"]
    assert overlay["resources"] == ["../warn"]
    assert [yaml.safe_load(patch["patch"])[0]["value"] for patch in overlay["patches"]] == ["Fail", ["Deny"]]

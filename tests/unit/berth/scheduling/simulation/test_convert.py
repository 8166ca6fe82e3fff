"""Objects that do not fit their kind: every problem names the field, its line, what was found and the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import Pod
from berth.scheduling.simulation.convert import ConversionError, convert
from berth.scheduling.simulation.manifests import Source, read_documents
from tests.support import plans


def problems(*manifests: dict[str, Any]) -> list[str]:
    _, found = plans.inputs_of(*manifests)
    return [str(item) for item in found]


def changed(manifest: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The manifest with one field set; `path` has dots, numbers are indices."""
    target: Any = manifest
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        target = target.setdefault(part, {}) if isinstance(target, dict) else target[part]
    target[last] = value
    return manifest


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        pytest.param("spec.tolerations", "all", "spec.tolerations: must be a list, found 'all'", id="text for a list"),
        pytest.param("spec.nodeSelector", ["a"], "spec.nodeSelector: must be a map of fields, found ['a']", id="list"),
        pytest.param("spec.hostNetwork", "yes", "spec.hostNetwork: must be true or false, found 'yes'", id="bool"),
        pytest.param(
            "spec.containers.0.name", 7, "spec.containers[0].name: must be text, found 7; put it in quotes", id="number"
        ),
        pytest.param(
            "metadata.labels.version", 1, "metadata.labels.version: must be text, found 1; put it in quotes", id="label"
        ),
        pytest.param("spec.priority", "high", "spec.priority: must be a whole number, found 'high'", id="priority"),
        pytest.param(
            "spec.priority", 10**30, "spec.priority: expected `int` <= 9223372036854775807; correct", id="no int64"
        ),
        pytest.param(
            "spec.overhead",
            {"pods": 1, "cpu": -(10**30)},
            "spec.overhead.cpu: expected `int` >= -9223372036854775808; correct",
            id="amount that is no int64",
        ),
        pytest.param("spec.containers", [], "spec.containers: missing; a pod has at least one container", id="none"),
        pytest.param(
            "spec.containers.0.resources.requests.cpu",
            "4x",
            "spec.containers[0].resources.requests.cpu: '4x' is not a valid quantity; write one such as 500m, 2 or 1Gi",
            id="quantity",
        ),
        pytest.param(
            "spec.containers.0.resources.requests.memory",
            "-1Gi",
            "spec.containers[0].resources.requests.memory: '-1Gi' is below 0; write 0 or more",
            id="negative",
        ),
        pytest.param(
            "spec.tolerations",
            [{"key": "a", "operator": "Is"}],
            "spec.tolerations[0].operator: 'Is' is none of Equal, Exists, Lt, Gt; write one of them",
            id="toleration operator",
        ),
        pytest.param(
            "spec.tolerations",
            [{"key": "a", "operator": "Exists", "effect": "Never"}],
            "spec.tolerations[0].effect: 'Never' is none of NoSchedule, PreferNoSchedule, NoExecute",
            id="effect",
        ),
        pytest.param(
            "spec.topologySpreadConstraints",
            [{"topologyKey": "zone", "whenUnsatisfiable": "Maybe"}],
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: 'Maybe' is neither DoNotSchedule nor ScheduleAnyway",
            id="spread",
        ),
        pytest.param(
            "spec.topologySpreadConstraints",
            [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "nodeTaintsPolicy": "Honour"}],
            "spec.topologySpreadConstraints[0].nodeTaintsPolicy: 'Honour' is none of Honor, Ignore; write one of them",
            id="taints policy",
        ),
        pytest.param(
            "spec.topologySpreadConstraints",
            [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "nodeAffinityPolicy": ""}],
            "spec.topologySpreadConstraints[0].nodeAffinityPolicy: '' is none of Honor, Ignore; write one of them",
            id="affinity policy",
        ),
        pytest.param(
            "spec.affinity",
            {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
                    ]
                }
            },
            "[0].preference.matchExpressions[0].operator: 'Near' is none of In, NotIn, Exists, DoesNotExist, Gt, Lt",
            id="node affinity operator",
        ),
        pytest.param(
            "spec.affinity",
            {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "Is"}]}]
                    }
                }
            },
            "nodeSelectorTerms[0].matchFields[0].operator: 'Is' is none of In, NotIn, Exists, DoesNotExist, Gt, Lt",
            id="node field operator",
        ),
    ],
)
def test_a_pod_with_a_wrong_field_is_named(path: str, value: Any, said: str) -> None:
    [found] = problems(changed(plans.pod("web"), path, value))
    head, _, rest = found.partition(": ")
    assert head.startswith("m.yaml:")
    assert rest.startswith("Pod default/web: ")
    assert said in rest


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        pytest.param({"maxSkew": 0}, "maxSkew: 0 is below 1; write 1 or more", id="no skew"),
        pytest.param({"maxSkew": -(2**63)}, "maxSkew: -9223372036854775808 is below 1", id="the least number"),
        pytest.param({"minDomains": 0}, "minDomains: 0 is below 1; write 1 or more, or leave it out", id="no domain"),
        pytest.param(
            {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"},
            "minDomains: counts with DoNotSchedule alone; leave it out, or set whenUnsatisfiable to that",
            id="domains of a soft constraint",
        ),
    ],
)
def test_numbers_of_a_spread_constraint_are_those_that_the_api_server_takes(stated: dict[str, Any], said: str) -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **stated}
    [found] = problems(changed(plans.pod("web"), "spec.topologySpreadConstraints", [constraint]))
    assert f"Pod default/web: spec.topologySpreadConstraints[0].{said}" in found
    assert not problems(changed(plans.pod("web"), "spec.topologySpreadConstraints", [{**constraint, **SOUND}]))


SOUND = {"maxSkew": 1, "minDomains": 1, "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize("weight", [-1, 0, 101, 2**63 - 1])
@pytest.mark.parametrize(
    ("field", "term"),
    [
        ("nodeAffinity", {"preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}),
        ("podAffinity", {"podAffinityTerm": {"topologyKey": "zone"}}),
        ("podAntiAffinity", {"podAffinityTerm": {"topologyKey": "zone"}}),
    ],
)
def test_a_preferred_term_weighs_as_much_as_the_api_server_takes(field: str, term: dict[str, Any], weight: int) -> None:
    terms = [{"weight": value, **term} for value in (1, 100, weight)]
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    [found] = problems(changed(plans.pod("web"), "spec.affinity", {field: {preferred: terms}}))
    where = f"spec.affinity.{field}.{preferred}[2].weight"
    assert f"Pod default/web: {where}: {weight} is not between 1 and 100; write such a number" in found


def test_the_line_is_that_of_the_field() -> None:
    manifest = changed(plans.pod("web"), "spec.containers.0.name", 7)
    line = next(n for n, row in enumerate(plans.text(manifest).splitlines(), start=1) if "name: 7" in row)
    [found] = problems(manifest)
    assert found.startswith(f"m.yaml:{line}: ")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({}, "status.allocatable: missing; state what pods may use"),
        ({"allocatable": {"cpu": "four"}}, "status.allocatable.cpu: 'four' is not a valid quantity"),
        ({"capacity": {"memory": "-1"}}, "status.allocatable.memory: '-1' is below 0"),
        ({"allocatable": {"cpu": "4", "memory": []}}, "status.allocatable.memory: must be an amount, found []; write"),
        ({"allocatable": {"cpu": 4, "memory": True}}, "status.allocatable.memory: must be an amount, found True"),
        ({"allocatable": {"cpu": "4", "memory": 2**64}}, "status.allocatable.memory: expected `int` <= 92233720368"),
    ],
    ids=["nothing stated", "no quantity", "capacity stands in for allocatable", "a list", "a truth value", "too large"],
)
def test_a_node_needs_readable_amounts(status: dict[str, Any], said: str) -> None:
    found = problems({**plans.node("a"), "status": status})
    assert any(said in item for item in found)


def test_the_effect_of_a_taint_is_one_that_there_is() -> None:
    [found] = problems(changed(plans.node("a"), "spec.taints", [{"key": "a", "effect": "NoSchedul"}]))
    assert "Node a: spec.taints[0].effect: 'NoSchedul' is none of NoSchedule, PreferNoSchedule, NoExecute" in found


def _stored(kind: str, **fields: Any) -> dict[str, Any]:
    group = "storage.k8s.io/v1" if kind.startswith("CSI") else "v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "it"}, **fields}


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        pytest.param(
            _stored("PersistentVolume", spec={"capacity": {"storage": "1GB"}}),
            "PersistentVolume it: spec.capacity.storage: '1GB' is not a valid quantity; write one such as",
            id="volume",
        ),
        pytest.param(
            _stored("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "-1Gi"}}}),
            "PersistentVolumeClaim default/it: spec.resources.requests.storage: '-1Gi' is below 0; write 0 or more",
            id="claim",
        ),
        pytest.param(
            plans.workload(
                "StatefulSet",
                "db",
                spec={
                    "volumeClaimTemplates": [
                        {"metadata": {"name": "a"}},
                        {"metadata": {"name": "b"}, "spec": {"resources": {"requests": {"storage": "much"}}}},
                    ]
                },
            ),
            "StatefulSet default/db: spec.volumeClaimTemplates[1].spec.resources.requests.storage: 'much' is not",
            id="claim of a StatefulSet",
        ),
        pytest.param(
            _stored("CSIStorageCapacity", capacity="all"),
            "CSIStorageCapacity default/it: capacity: 'all' is not a valid quantity",
            id="capacity of a class",
        ),
        pytest.param(
            _stored("CSIStorageCapacity", capacity="1Gi", maximumVolumeSize="1x"),
            "CSIStorageCapacity default/it: maximumVolumeSize: '1x' is not a valid quantity",
            id="largest volume of a class",
        ),
    ],
)
def test_storage_needs_readable_amounts(manifest: dict[str, Any], said: str) -> None:
    """Else the plan ends with a traceback when the first pod asks for the claim."""
    [found] = problems(manifest)
    assert said in found


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({}, "metadata.name: missing; give the object a name"),
        ({"generateName": "x-"}, "metadata.name: missing (generateName is not supported here)"),
        ({"name": 3}, "metadata.name: missing"),
        ("web", "metadata: must be a map of fields"),
    ],
    ids=["none", "generateName", "a number", "no map"],
)
def test_an_object_needs_a_name(metadata: Any, said: str) -> None:
    [found] = problems({**plans.pod("web"), "metadata": metadata})
    assert said in found


def test_appgroups_are_checked_like_the_api_server_does() -> None:
    wrong = plans.appgroup("shop", {"a": ["a"]})
    unknown = changed(plans.appgroup("other", {"a": []}), "spec.topologySortingAlgorithm", "Fast")
    first, second = problems(wrong, unknown)
    assert 'AppGroup default/shop: spec.workloads[0].dependencies[0]: workload "a" depends on itself' in first
    assert 'AppGroup default/other: spec.topologySortingAlgorithm: "Fast" is no algorithm; KahnSort is used' in second
    assert int(second.split(":")[1]) > int(first.split(":")[1]) > 1


@pytest.mark.parametrize("text", ["Zone", "zone ", "", "x" * 300_000], ids=["case", "space", "empty", "huge"])
def test_a_spread_that_cannot_be_read_is_told(text: str) -> None:
    group = plans.appgroup("shop", {"a": []})
    group["metadata"]["annotations"] = {"berth.dev/spread": text}
    [found] = problems(group)
    assert "AppGroup default/shop: metadata.annotations" in found
    assert "write one of soft, none, node, zone" in found
    assert len(found) < 500


@pytest.mark.parametrize("text", ["soft", "none", "node", "zone"])
def test_a_spread_that_can_be_read_is_taken(text: str) -> None:
    group = plans.appgroup("shop", {"a": []})
    group["metadata"]["annotations"] = {"berth.dev/spread": text}
    assert problems(group) == []


def test_every_bad_object_is_reported_at_once() -> None:
    found = problems(
        changed(plans.pod("a"), "spec.tolerations", "x"),
        plans.pod("fine"),
        changed(plans.node("b"), "status.allocatable.cpu", "x"),
        changed(plans.workload("Deployment", "c"), "spec.replicas", "3"),
    )
    assert [" ".join(item.split(": ")[1:3]) for item in found] == [
        "Pod default/a spec.tolerations",
        "Node b status.allocatable.cpu",
        "Deployment default/c spec.replicas",
    ]


def test_an_unknown_kind_of_ours_is_a_slip() -> None:
    wrong = {**plans.appgroup("shop", {"a": []}), "kind": "AppGroups"}
    [found] = problems(wrong)
    assert "kind: there is no such kind; kinds of this group: AppGroup" in found


def test_a_conversion_error_carries_its_problem() -> None:
    [document], _ = read_documents([Source("m.yaml", plans.text(changed(plans.pod("a"), "spec.priority", "x")))])
    with pytest.raises(ConversionError, match=r"spec\.priority: must be a whole number") as caught:
        convert(document, Pod)
    assert caught.value.problem.line > 1

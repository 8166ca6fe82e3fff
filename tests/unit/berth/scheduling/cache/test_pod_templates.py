"""Compiled pod templates: what they hold, what they share, and when they differ."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from berth.kube.objects import Pod
from berth.scheduling.cache import ClusterState, pod_templates
from berth.scheduling.cache.pod_templates import PodTemplateCache, PodTemplateInfo
from tests.support.builders import node, pod, pod_term, required_affinity, requirement, spread

X = {"app": "x"}


def away(**fields: Any) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [pod_term("zone", X, **fields)]}}


def test_pods_that_differ_in_labels_share_what_does_not_depend_on_them() -> None:
    cache = PodTemplateCache()
    spec = {"affinity": away(), "topologySpreadConstraints": [spread("zone", X)]}
    one, other = (cache.template(pod("p", labels={**X, "ordinal": ordinal}, cpu="1", spec=spec)) for ordinal in "12")
    assert one is not other
    assert one.group_key != other.group_key
    for part in ("terms", "hard_spread", "requests"):
        assert getattr(one, part) is getattr(other, part), part
    assert (one.selection_key, one.tolerations_key) == (other.selection_key, other.tolerations_key)


@pytest.mark.parametrize("field", ["matchLabelKeys", "mismatchLabelKeys"])
def test_labels_that_terms_refer_to_set_profiles_apart(field: str) -> None:
    cache = PodTemplateCache()
    spec = {"affinity": away(**{field: ["version"]})}
    one, other = (cache.template(pod("p", labels={**X, "version": version}, spec=spec)) for version in "12")
    assert one.terms_of("anti_affinity") != other.terms_of("anti_affinity")
    same_version = {**X, "version": "1"}
    matches = one.terms_of("anti_affinity")[0].matches("default", same_version, None)
    assert matches is (field == "matchLabelKeys")


def test_labels_that_constraints_refer_to_set_profiles_apart() -> None:
    cache = PodTemplateCache()
    spec = {"topologySpreadConstraints": [spread("zone", X, matchLabelKeys=["version"])]}
    one, other = (cache.template(pod("p", labels={**X, "version": version}, spec=spec)) for version in "12")
    assert one.hard_spread[0].selector.matches({**X, "version": "1"})
    assert not other.hard_spread[0].selector.matches({**X, "version": "1"})


def test_own_namespace_is_part_of_a_term() -> None:
    cache = PodTemplateCache()
    one, other = (cache.template(pod("p", namespace=name, spec={"affinity": away()})) for name in "ab")
    for template, name in ((one, "a"), (other, "b")):
        assert template.terms_of("anti_affinity")[0].namespaces == frozenset((name,))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param(
            {"topologySpreadConstraints": [spread("zone", X, whenUnsatisfiable="Perhaps")]},
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: 'Perhaps'",
            id="when-unsatisfiable",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    spread("zone", X),
                    spread("zone", labelSelector={"matchExpressions": [requirement("a", "In")]}),
                ]
            },
            "spec.topologySpreadConstraints[1].labelSelector.matchExpressions[0].values",
            id="selector-of-a-constraint",
        ),
        pytest.param(
            {"affinity": away(namespaceSelector={"matchExpressions": [requirement("a", "Near")]})},
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector",
            id="namespace-selector",
        ),
    ],
)
def test_problems_name_the_field_for_every_replica(spec: dict[str, Any], field: str) -> None:
    cache = PodTemplateCache()
    for ordinal in "12":
        (problem,) = cache.template(pod("p", labels={"ordinal": ordinal}, spec=spec)).problems
        assert str(problem).startswith(field)


def test_kinds_of_terms_are_kept_apart_with_their_weights() -> None:
    weighted = [{"weight": 7, "podAffinityTerm": pod_term("rack", X)}]
    spec = {
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [pod_term("zone", X)],
                "preferredDuringSchedulingIgnoredDuringExecution": weighted,
            },
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted},
        }
    }
    template = PodTemplateCache().template(pod("p", spec=spec))
    found = {kind: [(term.topology_key, term.weight) for term in terms] for kind, terms in template.terms.items()}
    assert found == {
        "affinity": [("zone", 0)],
        "preferred_affinity": [("rack", 7)],
        "preferred_anti_affinity": [("rack", 7)],
    }
    assert template.terms_of("anti_affinity") == ()


def test_soft_and_hard_constraints_are_kept_apart() -> None:
    spec = {"topologySpreadConstraints": [spread("a", X), spread("b", X, whenUnsatisfiable="ScheduleAnyway")]}
    template = PodTemplateCache().template(pod("p", spec=spec))
    assert [constraint.topology_key for constraint in template.hard_spread] == ["a"]
    assert [constraint.topology_key for constraint in template.soft_spread] == ["b"]


def test_keys_follow_what_they_name() -> None:
    cache = PodTemplateCache()
    plain = cache.template(pod("p"))
    tolerant = cache.template(pod("p", spec={"tolerations": [{"operator": "Exists"}]}))
    choosy = cache.template(pod("p", spec={"affinity": required_affinity(("a", "Exists", []))}))
    assert plain.selection_key == tolerant.selection_key != choosy.selection_key
    assert plain.tolerations_key == choosy.tolerations_key != tolerant.tolerations_key


def test_keys_are_small_whatever_they_name() -> None:
    spec = {
        "nodeSelector": {f"key-{n}": "x" for n in range(1000)},
        "tolerations": [{"key": f"key-{n}"} for n in range(1000)],
    }
    template = PodTemplateCache().template(pod("p", spec=spec))
    assert (len(template.key), len(template.selection_key), len(template.tolerations_key)) == (16, 16, 16)


def test_pods_that_are_gone_leave_no_more_than_the_memos_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_templates, "TEMPLATE_BYTES", 2**17)
    monkeypatch.setattr(pod_templates, "PART_BYTES", 2**17)
    cache = PodTemplateCache()

    def one(number: int) -> None:
        labels = {f"key-{number}-{n}": "x" for n in range(400)}
        terms = [{**pod_term("zone", X), "namespaces": [f"{number}-{n}" for n in range(400)]}]
        anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        cache.template(pod("p", labels=labels, spec={"nodeSelector": labels, "affinity": anti}))

    one(0)
    tracemalloc.start()
    try:
        for number in range(1, 60):
            one(number)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 3 * 2**20


def test_forgotten_templates_are_compiled_again_and_charged_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_templates, "TEMPLATE_BYTES", 1)
    state = ClusterState()
    state.update_node(node("n"))
    pods = [pod(name, on="n", cpu=cpu, labels={"app": name}) for name, cpu in (("a", "1"), ("b", "2"))]
    for _ in range(3):
        for item in pods:
            state.update_pod(item)
    assert state.used[0].tolist()[:1] == [3000]
    for item in pods:
        state.delete_pod(item.metadata.uid)
    assert not state.used.any()


@pytest.mark.parametrize(("terms", "compiled"), [(1, 6), (40, 2)], ids=["small", "large"])
def test_what_is_large_is_not_compiled_again_while_somebody_holds_it(
    terms: int, compiled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan of many pods asks for each of them several times, and assumes them."""
    monkeypatch.setattr(pod_templates, "TEMPLATE_BYTES", 0)
    made: list[str] = []
    compile_one = PodTemplateCache._compile

    def noted(self: PodTemplateCache, item: Pod, *rest: Any) -> PodTemplateInfo:
        made.append(item.metadata.name)
        return compile_one(self, item, *rest)

    monkeypatch.setattr(PodTemplateCache, "_compile", noted)
    state, wanted = ClusterState(), [pod_term("zone", {"app": str(number)}) for number in range(terms)]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted}}
    pods = [pod(name, spec={"affinity": affinity}) for name in "ab"]
    held = [state.info(item) for item in pods]
    assert [state.info(item).template.key for item in pods] == [info.template.key for info in held]
    for item in pods:
        state.assume(item, "n1")
    assert len(made) == compiled
    del held
    state.info(pods[0])
    assert len(made) == compiled + 1


def test_what_is_held_is_of_that_very_pod() -> None:
    cache, wanted = PodTemplateCache(), [pod_term("zone", {"app": str(number)}) for number in range(40)]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted}}
    before = cache.info(pod("p", cpu="1", spec={"affinity": affinity}))
    after = cache.info(pod("p", cpu="2", spec={"affinity": affinity}))
    assert (before.template.cpu, after.template.cpu) == (1000, 2000)

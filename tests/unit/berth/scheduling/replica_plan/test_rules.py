"""Rules of pod templates as rules of a problem in counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from berth.kube.objects import Pod
from berth.scheduling.configuration import SYSTEM_DEFAULT_CONSTRAINTS, DefaultConstraint
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.budget import finish
from berth.scheduling.replica_plan.pod_sets import Alike, alike
from berth.scheduling.replica_plan.rules import RuleReader
from berth.scheduling.replicas.problem import Rule
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread
from tests.support import builders
from tests.support.placement import Lab, member, zoned

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
A, B = {"app": "a"}, {"app": "b"}


def lab() -> Lab:
    """Three nodes in two zones and one without a zone, each with its name as a label."""
    names = {"n0": "z1", "n1": "z1", "n2": "z2"}
    nodes = [zoned(name, zone, labels={HOST: name}) for name, zone in names.items()]
    return Lab([*nodes, builders.node("n3", labels={HOST: "n3"})])


def pod_sets(lab: Lab, *pods: Pod) -> list[Alike]:
    lab.see(*pods)
    state = lab.cache.state
    everywhere = FilterResult(mask=state.alive.copy(), nodes=state.size)
    candidates = [Candidate(state.info(pod), everywhere, {}) for pod in pods]
    return finish(alike(candidates, state, lab.planner.view.current(lab.costs, lab.cache.bandwidth()), price=1.0))


def rules(lab: Lab, *pods: Pod) -> list[Rule]:
    return finish(RuleReader(pod_sets(lab, *pods), {}, lab.cache.state).read())


def own(lab: Lab, *pods: Pod) -> list[Rule]:
    """Rules without default spreading."""
    return [rule for rule in rules(lab, *pods) if not (isinstance(rule, Spread) and rule.max_skew in (3, 5))]


def a(name: str = "a0", **spec: Any) -> Pod:
    return member(name, "a", labels=A, spec=spec)


def b(name: str = "b0", **spec: Any) -> Pod:
    return member(name, "b", labels=B, spec=spec)


def term(kind: str, key: str, labels: dict[str, str], weight: int = 0) -> dict[str, Any]:
    one = builders.pod_term(key, labels)
    rule = {PREFERRED: [{"weight": weight, "podAffinityTerm": one}]} if weight else {REQUIRED: [one]}
    return {"affinity": {kind: rule}}


@pytest.mark.parametrize(
    ("kind", "weight", "made"),
    [
        pytest.param("podAntiAffinity", 0, AntiAffinity, id="required anti-affinity"),
        pytest.param("podAntiAffinity", 30, AntiAffinity, id="preferred anti-affinity"),
        pytest.param("podAffinity", 0, Affinity, id="required affinity"),
        pytest.param("podAffinity", 100, Affinity, id="preferred affinity"),
    ],
)
def test_a_term_names_who_has_it_and_whom_it_selects(kind: str, weight: int, made: type[Rule]) -> None:
    small = lab()
    small.see(member("old", "b", labels=B, on="n1"), member("other", "c", labels={"app": "c"}, on="n2"))
    (rule,) = own(small, a(**term(kind, ZONE, B, weight)), a("a1", **term(kind, ZONE, B, weight)), b())
    assert type(rule) is made
    assert isinstance(rule, AntiAffinity | Affinity)
    assert (rule.subjects, rule.selects, rule.weight) == ([0], [1], weight or None)
    assert rule.domain[0] == rule.domain[1] != rule.domain[2]
    assert rule.domain[3] == -1
    assert rule.placed is not None
    assert rule.placed.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("kind", "weight"), [("podAntiAffinity", 0), ("podAntiAffinity", 30), ("podAffinity", 100)], ids=str
)
def test_terms_of_placed_pods_count_towards_those_they_select(kind: str, weight: int) -> None:
    small = lab()
    small.see(member("old", "c", labels={"app": "c"}, on="n2", spec=term(kind, HOST, B, weight)))
    (rule,) = own(small, a(), b())
    assert isinstance(rule, AntiAffinity | Affinity)
    assert (rule.subjects, rule.selects, rule.weight) == ([], [1], weight or None)
    assert rule.placed_subjects is not None
    assert rule.placed_subjects.tolist() == [0, 0, 1, 0]
    assert own(small, a()) == []


def test_required_affinity_terms_of_a_pod_select_together() -> None:
    small = lab()
    both = {REQUIRED: [builders.pod_term(ZONE, {"app": "b"}), builders.pod_term(HOST, {"tier": "x"})]}
    near: dict[str, Any] = {"affinity": {"podAffinity": both}}
    small.see(member("on a node with one of the keys", "b", labels=B | {"tier": "x"}, on="n3"))
    found = own(small, a(**near), b(), member("bx", "b", labels=B | {"tier": "x"}))
    assert [(type(rule), list(rule.subjects), list(rule.selects)) for rule in found] == [(Affinity, [0], [2])] * 2
    assert found[0].domain.tolist() != found[1].domain.tolist()
    assert all(isinstance(rule, Affinity) and rule.placed is not None for rule in found)


def test_required_affinity_terms_by_one_key_are_one_rule() -> None:
    both = {REQUIRED: [builders.pod_term(ZONE, {"app": "b"}), builders.pod_term(ZONE, {"tier": "x"})]}
    small = lab()
    small.see(member("on a node without the key", "b", labels=B | {"tier": "x"}, on="n3"))
    (rule,) = own(small, a(affinity={"podAffinity": both}), member("bx", "b", labels=B | {"tier": "x"}))
    assert (list(rule.subjects), list(rule.selects)) == ([0], [1])
    assert isinstance(rule, Affinity)
    assert rule.placed is None


@pytest.mark.parametrize("kind", ["podAntiAffinity", "podAffinity"])
def test_whom_terms_of_placed_pods_select_among_placed_pods_does_not_matter(kind: str) -> None:
    small = lab()
    small.see(member("old", "c", labels=A, on="n0", spec=term(kind, ZONE, A, 7)))
    (rule,) = own(small, a())
    assert isinstance(rule, AntiAffinity | Affinity)
    assert rule.placed is None
    assert rule.placed_subjects is not None
    assert rule.placed_subjects.tolist() == [1, 0, 0, 0]


def test_placed_pods_that_have_one_near_make_no_rule() -> None:
    small = lab()
    near = term("podAffinity", ZONE, A, 7)
    small.see(member("c", "c", on="n0", spec=near))
    assert [list(rule.selects) for rule in own(small, a())] == [[0]]
    small.see(member("old", "a", labels=A, on="n1"))
    assert own(small, a()) == []


def test_terms_of_placed_pods_that_ask_for_more_than_a_label_make_no_rule_without_it() -> None:
    small = lab()
    selector = {"matchLabels": A, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": selector}]}}
    small.see(member("c", "c", on="n0", spec={"affinity": apart}))
    assert own(small, a()) == []


@pytest.mark.parametrize("kind", ["podAntiAffinity", "podAffinity"])
def test_a_term_that_placed_and_waiting_pods_state_twice_counts_twice_for_each(kind: str) -> None:
    spec = term(kind, ZONE, A, 7)
    spec["affinity"][kind][PREFERRED] *= 2
    small = lab()
    small.see(member("old", "b", labels=B, on="n1", spec=spec))
    found = own(small, a(), member("b0", "b", labels=B, spec=spec))
    assert [(list(rule.subjects), list(rule.selects)) for rule in found] == [([1], [0])] * 2
    counts = [rule.placed_subjects for rule in found if isinstance(rule, Affinity | AntiAffinity)]
    assert [count.tolist() for count in counts if count is not None] == [[0, 2, 0, 0]]


def test_terms_of_placed_pods_with_other_weights_are_rules_of_their_own() -> None:
    small = lab()
    small.see(*(member(f"c{n}", "c", on="n0", spec=term("podAntiAffinity", ZONE, A, n)) for n in (5, 9)))
    found = own(small, a())
    assert sorted(rule.weight or 0 for rule in found if isinstance(rule, AntiAffinity)) == [5, 9]


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        pytest.param(("", "TCP", 80), ("", "TCP", 80), True, id="same"),
        pytest.param(("", "TCP", 80), ("10.0.0.1", "TCP", 80), True, id="any address"),
        pytest.param(("10.0.0.2", "TCP", 80), ("10.0.0.1", "TCP", 80), False, id="other address"),
        pytest.param(("", "TCP", 80), ("", "UDP", 80), False, id="other protocol"),
    ],
)
def test_pods_with_one_host_port_keep_apart(
    one: tuple[str, str, int], other: tuple[str, str, int], clash: bool
) -> None:
    pods = member("a", "a", host_ports=[one]), member("b", "b", host_ports=[other])
    found = own(lab(), *pods)
    assert all(isinstance(rule, AntiAffinity) and rule.domain.tolist() == [0, 1, 2, 3] for rule in found)
    apart = {(s, o) for rule in found for s in rule.subjects for o in rule.selects}
    assert ((0, 1) in apart) is clash
    assert (0, 0) in apart


def test_a_port_that_two_containers_name_is_one() -> None:
    found = own(lab(), member("a", "a", host_ports=[("", "TCP", 80), ("", "TCP", 81), ("", "TCP", 80)]))
    assert [(list(rule.subjects), list(rule.selects)) for rule in found] == [([0], [0])]


def test_default_spreading_is_the_profiles() -> None:
    small = lab()
    pods = [a(f"a{number}") for number in range(6)]
    sets = pod_sets(small, *pods)

    def found(*defaults: DefaultConstraint) -> list[tuple[int, bool, list[int]]]:
        rules = finish(RuleReader(sets, {}, small.cache.state, defaults).read())
        return [(r.max_skew, r.hard, r.domain.tolist()) for r in rules if isinstance(r, Spread)]

    host, zone = (small.cache.state.domains(key).tolist() for key in (HOST, ZONE))
    assert found(*SYSTEM_DEFAULT_CONSTRAINTS) == [(3, False, host), (5, False, zone)]
    assert found(DefaultConstraint(max_skew=1, topology_key=ZONE)) == [(1, False, zone)]
    assert found() == []
    # Six replicas cannot be more than six too many.
    assert found(DefaultConstraint(max_skew=6, topology_key=ZONE)) == []


@pytest.mark.parametrize("when", ["DoNotSchedule", "ScheduleAnyway"])
def test_spread_constraints(when: str) -> None:
    small = lab()
    small.see(member("old", "a", labels=A, on="n2"), member("leaving", "a", labels=A, on="n1", deleting=True))
    constraint = builders.spread(ZONE, A, maxSkew=2, whenUnsatisfiable=when)
    if when == "DoNotSchedule":
        constraint["minDomains"] = 3
    found = own(small, a(topologySpreadConstraints=[constraint]), b())
    (rule,) = (rule for rule in found if isinstance(rule, Spread))
    assert (rule.subjects, rule.selects, rule.max_skew, rule.hard) == ([0], [0], 2, when == "DoNotSchedule")
    assert rule.min_domains == (3 if when == "DoNotSchedule" else 1)
    assert rule.placed is not None
    assert rule.placed.tolist() == [0, 0, 1, 0]
    assert rule.eligible is not None
    assert rule.eligible.tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("policies", "eligible"),
    [
        pytest.param({}, [True, False, False, False], id="affinity honoured by default, taints ignored"),
        pytest.param({"nodeAffinityPolicy": "Ignore"}, [True, True, True, False], id="affinity ignored"),
        pytest.param(
            {"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}, [True, True, False, False], id="taints"
        ),
    ],
)
def test_node_policies_say_which_nodes_count(policies: dict[str, str], eligible: list[bool]) -> None:
    small = lab()
    small.cache.update_node(zoned("n2", "z2", labels={HOST: "n2"}, taints=["dedicated=x:NoSchedule"]))
    constraint = builders.spread(ZONE, A, **policies)
    (rule,) = own(small, a(topologySpreadConstraints=[constraint], nodeSelector={HOST: "n0"}))
    assert isinstance(rule, Spread)
    assert rule.eligible is not None
    assert rule.eligible.tolist() == eligible


@pytest.mark.parametrize("when", ["DoNotSchedule", "ScheduleAnyway"])
def test_pods_of_a_workload_that_state_one_constraint_have_one_rule(when: str) -> None:
    spec = {"topologySpreadConstraints": [builders.spread(ZONE, A, whenUnsatisfiable=when)]}
    pods = [member(f"a{cpu}", "a", labels=A, cpu=cpu, spec=spec) for cpu in ("1", "2")]
    assert [(list(rule.subjects), list(rule.selects)) for rule in own(lab(), *pods)] == [([0, 1], [0, 1])]


@pytest.mark.parametrize("when", ["DoNotSchedule", "ScheduleAnyway"])
def test_a_constraint_that_asks_for_more_than_a_label_counts_those_that_have_it_all(when: str) -> None:
    expressions = [{"key": "tier", "operator": "Exists"}]
    selector = {"matchLabels": A, "matchExpressions": expressions}
    constraint = builders.spread(ZONE, labelSelector=selector, whenUnsatisfiable=when)
    found = own(lab(), a(topologySpreadConstraints=[constraint]), member("b0", "b", labels=A | {"tier": "x"}))
    assert [(list(rule.subjects), list(rule.selects)) for rule in found] == [([0], [1])]


def test_match_label_keys_tell_the_templates_of_a_rollout_apart() -> None:
    constraint = builders.spread(ZONE, A, matchLabelKeys=["hash"])
    pods = [
        member(f"a{n}", "a", labels=A | {"hash": n}, spec={"topologySpreadConstraints": [constraint]}) for n in "xy"
    ]
    assert [(list(rule.subjects), list(rule.selects)) for rule in own(lab(), *pods)] == [([0], [0]), ([1], [1])]


def test_a_soft_constraint_counts_once_for_each_workload_that_states_it() -> None:
    everybody = {"topologySpreadConstraints": [builders.spread(ZONE, {"x": "y"}, whenUnsatisfiable="ScheduleAnyway")]}
    pods = [member(f"{name}0", name, labels={"x": "y"}, spec=everybody) for name in "ab"]
    assert [(list(rule.subjects), list(rule.selects)) for rule in own(lab(), *pods)] == [([0], [0, 1]), ([1], [0, 1])]


def test_an_empty_spread_selector_counts_nobody() -> None:
    constraint = builders.spread(ZONE, labelSelector={})
    small = lab()
    pod = a(topologySpreadConstraints=[constraint])
    assert own(small, pod) == []
    (found,) = pod_sets(small, pod)
    assert found.mask.tolist()[:4] == [True, True, True, False]


def test_replicas_without_constraints_are_spread_by_default() -> None:
    small = lab()
    pods = [
        a("a0"),
        member("a-new", "a", labels=A, cpu="2"),
        b(topologySpreadConstraints=[builders.spread(ZONE, B)]),
    ]
    reader = RuleReader(pod_sets(small, *pods), {"a": {2: 4}}, small.cache.state)
    found = [rule for rule in finish(reader.read()) if isinstance(rule, Spread) and not rule.hard]
    assert [(rule.max_skew, list(rule.subjects), list(rule.selects)) for rule in found] == [
        (3, [0, 1], [0, 1]),
        (5, [0, 1], [0, 1]),
    ]
    for rule in found:
        assert rule.eligible is not None
        assert rule.eligible.tolist() == [True, True, True, False]
        assert rule.placed is not None
        assert np.flatnonzero(rule.placed).tolist() == [2]


@pytest.mark.parametrize(
    ("kind", "weight"), [pytest.param(REQUIRED, None, id="required"), pytest.param(PREFERRED, 7, id="preferred")]
)
def test_terms_of_placed_pods_that_select_the_same_are_one_rule(kind: str, weight: int | None) -> None:
    here = lab()

    def neighbour(number: int, key: str, labels: dict[str, str]) -> Pod:
        expressions = [{"key": f"other-{number}", "operator": "DoesNotExist"}]
        selector = {"matchLabels": labels, "matchExpressions": expressions}
        term = {"topologyKey": key, "labelSelector": selector}
        stated = term if weight is None else {"weight": weight, "podAffinityTerm": term}
        affinity = {"podAntiAffinity": {kind: [stated]}}
        return member(f"x{number}", "x", group="x", on=f"n{number % 2}", spec={"affinity": affinity})

    here.see(*(neighbour(number, HOST, A) for number in range(30)))
    here.see(*(neighbour(number, ZONE, A) for number in range(30, 40)))
    here.see(*(neighbour(number, HOST, B) for number in range(40, 50)))
    here.see(*(neighbour(number, HOST, {"app": "none"}) for number in range(50, 60)))
    found = [rule for rule in rules(here, a(), b()) if isinstance(rule, AntiAffinity)]
    assert [(list(rule.subjects), list(rule.selects), rule.weight) for rule in found] == [
        ([], [0], weight),
        ([], [0], weight),
        ([], [1], weight),
    ]
    counts = [rule.placed_subjects.tolist() for rule in found if rule.placed_subjects is not None]
    assert sorted(counts) == [[5, 5, 0, 0], [5, 5, 0, 0], [15, 15, 0, 0]]


@pytest.mark.parametrize("kind", ["podAntiAffinity", "podAffinity"])
def test_a_replaced_pod_that_ends_before_its_rule_is_read_is_not_taken_off_twice(kind: str) -> None:
    small = lab()
    old = member("old", "b", labels=B, on="n1", spec=term(kind, ZONE, B, 30))
    small.see(old)
    record = small.cache.state.record(old.metadata.uid)
    assert record is not None
    sets = pod_sets(small, b(**term(kind, ZONE, B, 30)))
    small.cache.delete_pod(old)
    for rule in finish(RuleReader(sets, {}, small.cache.state, (), [record]).read()):
        assert isinstance(rule, Affinity | AntiAffinity)
        assert rule.placed is None
        assert rule.placed_subjects is None


@pytest.mark.parametrize(
    ("old", "counted"),
    [
        pytest.param(member("old", "a", labels=A, on="n1"), True, id="one"),
        pytest.param(member("old", "a", labels=A, on="n1", deleting=True), False, id="that is being deleted"),
        pytest.param(member("old", "a", labels=B, on="n1"), False, id="that the constraint does not mean"),
        pytest.param(member("old", "a", labels=A, on="n1", namespace="other"), False, id="of another namespace"),
    ],
)
def test_a_replaced_pod_is_taken_off_where_the_constraint_counts_it(old: Pod, counted: bool) -> None:
    small = lab()
    small.see(old, *(member(f"stays{n}", "a", labels=A, on="n1") for n in range(2)))
    record = small.cache.state.record(old.metadata.uid)
    assert record is not None
    soft, hard = builders.spread(ZONE, A, whenUnsatisfiable="ScheduleAnyway"), builders.spread(HOST, A)
    sets = pod_sets(small, a(topologySpreadConstraints=[soft, hard]))
    found = finish(RuleReader(sets, {}, small.cache.state, (), [record]).read())
    counts = {rule.hard: rule.placed.tolist() for rule in found if isinstance(rule, Spread) and rule.placed is not None}
    assert counts == {False: [0, 2, 0, 0], True: [0, 2 + counted, 0, 0]}


def test_a_constraint_that_a_pod_states_twice_is_one() -> None:
    (rule,) = own(lab(), a(topologySpreadConstraints=[builders.spread(ZONE, A)] * 2))
    assert list(rule.subjects) == [0]


@pytest.mark.parametrize("when", ["DoNotSchedule", "ScheduleAnyway"])
def test_constraints_of_two_namespaces_count_apart(when: str) -> None:
    spec = {"topologySpreadConstraints": [builders.spread(ZONE, A, whenUnsatisfiable=when)]}
    pods = [member("a0", "a", labels=A, spec=spec, namespace=name) for name in ("one", "other")]
    spreads = [rule for rule in own(lab(), *pods) if isinstance(rule, Spread)]
    assert [(list(rule.subjects), list(rule.selects)) for rule in spreads] == [([0], [0]), ([1], [1])]


def test_default_spreading_counts_nodes_that_the_pods_select_and_replicas_with_constraints() -> None:
    selected, spread = {"nodeSelector": {ZONE: "z1"}}, {"topologySpreadConstraints": [builders.spread(HOST, B)]}
    pods = [a(f"a{n}", **selected) for n in range(2)] + [a(f"s{n}", **spread) for n in range(2)]
    found = [rule for rule in rules(lab(), *pods) if isinstance(rule, Spread) and not rule.hard]
    assert [(rule.max_skew, list(rule.subjects), list(rule.selects)) for rule in found] == [(3, [0], [0, 1])]
    assert found[0].eligible is not None
    assert found[0].eligible.tolist() == [True, True, False, False]


@pytest.mark.parametrize("when", ["DoNotSchedule", "ScheduleAnyway"])
def test_replicas_with_a_constraint_are_not_spread_by_default(when: str) -> None:
    spec = {"topologySpreadConstraints": [builders.spread(ZONE, A, maxSkew=9, whenUnsatisfiable=when)]}
    found = rules(lab(), *(a(f"a{number}", **spec) for number in range(6)))
    assert [rule.max_skew for rule in found if isinstance(rule, Spread)] == [9]

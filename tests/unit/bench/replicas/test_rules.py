"""Which placements break a hard rule, and by how much they go against soft ones."""

from __future__ import annotations

from typing import Any

import pytest

from bench.replicas.cluster import read_cluster
from bench.replicas.rules import requests, soft_rules, violations
from tests.support.replicas import GROUP, HOST, SMALL, ZONE, Manifest, bound, group, node, placed, pod, service

EDGE = group(("web", "db"))


def broken(*manifests: Manifest) -> list[tuple[str, str]]:
    return [(found.rule, found.subject) for found in violations(read_cluster([*SMALL, *manifests]))]


def term(key: str, app: str | None, **more: Any) -> Manifest:
    selector = {} if app is None else {"matchLabels": {"app": app}}
    return {"topologyKey": key, "labelSelector": selector, **more}


def either(*apps: str) -> Manifest:
    expression = {"key": "app", "operator": "In", "values": list(apps)}
    return {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [expression]}}


def required(kind: str, *terms: Manifest) -> Manifest:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def preferred(kind: str, weight: int, one: Manifest) -> Manifest:
    found = [{"weight": weight, "podAffinityTerm": one}]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": found}}}


def spread(key: str = ZONE, skew: int = 1, when: str = "DoNotSchedule", **more: Any) -> Manifest:
    one = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": when, "labelSelector": {}, **more}
    return {"topologySpreadConstraints": [{**one, "labelSelector": {"matchLabels": {"app": "web"}}}]}


def port(number: int = 80, **more: Any) -> Manifest:
    return {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": number, **more}]}]}


class TestResources:
    def test_what_a_pod_takes(self) -> None:
        containers = [{"resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": 1, "memory": "1Gi"}}}] * 2
        init = [{"resources": {"requests": {"cpu": "3", "memory": "1Mi"}}}]
        manifest = pod("web", "a1-1", containers=containers, initContainers=init, overhead={"memory": "1Gi"})
        found = requests(bound(read_cluster([*SMALL, manifest]))["web-1"])
        assert found == {"pods": 1.0, "cpu": 3.0, "memory": 3 * 2.0**30}

    @pytest.mark.parametrize(
        ("cpu", "expected"),
        [
            pytest.param("1", [], id="full"),
            pytest.param("1001m", [("resources", "a1-1")], id="over"),
        ],
    )
    def test_room(self, cpu: str, expected: list[tuple[str, str]]) -> None:
        assert broken(pod("web", "a1-1", cpu="3"), pod("db", "a1-1", cpu=cpu)) == expected

    def test_an_amount_that_the_node_does_not_have(self) -> None:
        gpu = [{"resources": {"requests": {"example.com/gpu": "1"}}}]
        assert broken(pod("web", "a1-1", containers=gpu)) == [("resources", "a1-1")]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"nodeSelector": {ZONE: "a1-"}}, [], id="selector"),
        pytest.param({"nodeSelector": {ZONE: "b1-"}}, [("nodeAffinity", "web-1")], id="another-zone"),
        pytest.param({"tolerations": [{"operator": "Exists"}]}, [], id="untainted"),
    ],
)
def test_nodes(spec: Manifest, expected: list[tuple[str, str]]) -> None:
    assert broken(pod("web", "a1-1", **spec)) == expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(None, [("taints", "web-1")], id="none"),
        pytest.param({"operator": "Exists"}, [], id="all"),
        pytest.param({"key": "gpu", "operator": "Exists"}, [], id="key"),
        pytest.param({"key": "gpu", "value": "yes"}, [], id="value"),
        pytest.param({"key": "gpu", "value": "no"}, [("taints", "web-1")], id="another-value"),
        pytest.param({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, [("taints", "web-1")], id="effect"),
    ],
)
def test_taints(toleration: Manifest | None, expected: list[tuple[str, str]]) -> None:
    tainted = node("t", "a1-")
    tainted["spec"] = {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
    spec: dict[str, Any] = {"tolerations": [toleration]} if toleration else {}
    assert broken(tainted, pod("web", "t", **spec)) == expected


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        pytest.param({}, {}, True, id="same"),
        pytest.param({}, {"number": 81}, False, id="another-port"),
        pytest.param({}, {"protocol": "UDP"}, False, id="another-protocol"),
        pytest.param({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, False, id="addresses"),
        pytest.param({"hostIP": "10.0.0.1"}, {}, True, id="any-address"),
    ],
)
def test_host_ports(one: Manifest, other: Manifest, clash: bool) -> None:
    assert broken(pod("web", "a1-1", **port(**one)), pod("db", "a1-1", **port(**other))) == (
        [("hostPorts", "web-1")] if clash else []
    )
    assert broken(pod("web", "a1-1", **port(**one)), pod("db", "a1-2", **port(**other))) == []


class TestAntiAffinity:
    @pytest.mark.parametrize(
        ("nodes", "key", "pairs"),
        [
            pytest.param(["a1-1", "a1-2"], HOST, 0, id="hosts"),
            pytest.param(["a1-1", "a1-1"], HOST, 2, id="one-host"),
            pytest.param(["a1-1", "a1-2"], ZONE, 2, id="one-zone"),
            pytest.param(["a1-1", "a2-1", "b1-1"], ZONE, 0, id="zones"),
            pytest.param(["a1-1", "a1-1"], "rack", 0, id="no-such-label"),
        ],
    )
    def test_among_replicas(self, nodes: list[str], key: str, pairs: int) -> None:
        spec = required("podAntiAffinity", term(key, "web"))
        assert [rule for rule, _ in broken(*placed(spec, web=nodes))] == ["antiAffinity"] * pairs

    def test_it_holds_for_pods_that_came_later(self) -> None:
        guard = pod("guard", "a1-1", group="", **required("podAntiAffinity", term(HOST, "web")))
        assert broken(guard, pod("web", "a1-1")) == [("antiAffinity", "guard-1")]

    @pytest.mark.parametrize(
        ("more", "meant"),
        [
            pytest.param({}, False, id="own-namespace"),
            pytest.param({"namespaces": ["far"]}, True, id="named"),
            pytest.param({"namespaceSelector": {}}, True, id="all-namespaces"),
            pytest.param({"namespaceSelector": {"matchLabels": {"team": "x"}}}, True, id="selected"),
            pytest.param({"namespaceSelector": {"matchLabels": {"team": "y"}}}, False, id="not-selected"),
        ],
    )
    def test_namespaces(self, more: Manifest, meant: bool) -> None:
        other = pod("web", "a1-1", group="")
        other["metadata"]["namespace"] = "far"
        far = {"kind": "Namespace", "metadata": {"name": "far", "labels": {"team": "x"}}}
        guard = pod("guard", "a1-1", **required("podAntiAffinity", term(HOST, "web", **more)))
        assert bool(broken(far, other, guard)) is meant

    @pytest.mark.parametrize(("field", "clash"), [("matchLabelKeys", False), ("mismatchLabelKeys", True)])
    def test_label_keys(self, field: str, clash: bool) -> None:
        old, new = placed(required("podAntiAffinity", term(HOST, "web", **{field: ["v"]})), web=["a1-1", "a1-1"])
        old["metadata"]["labels"]["v"], new["metadata"]["labels"]["v"] = "1", "2"
        assert bool(broken(old, new)) is clash


class TestAffinity:
    NEAR = required("podAffinity", term(ZONE, "db"))
    OWN = required("podAffinity", term(ZONE, "web"))
    BOTH = required("podAffinity", either("web", "db"))

    @pytest.mark.parametrize(
        ("pods", "subjects"),
        [
            pytest.param([pod("web", "a1-1", **NEAR), pod("db", "a1-2")], [], id="there"),
            pytest.param([pod("web", "a1-1", **NEAR), pod("db", "a2-1")], ["web-1"], id="elsewhere"),
            pytest.param([pod("web", "a1-1", **NEAR)], ["web-1"], id="nobody"),
            pytest.param(placed(OWN, web=["a1-1", "a1-2"]), [], id="the-first-of-its-kind"),
            pytest.param(placed(OWN, web=["a1-1", "a2-1"]), ["web-2"], id="the-second-must-follow"),
            pytest.param(
                [*placed(OWN, web=["a1-1", "a2-1"]), pod("web", "a2-2", 3)],
                [],
                id="one-was-there-without-a-rule",
            ),
            pytest.param(
                [
                    pod("web", "a1-1", **required("podAffinity", term(ZONE, "db"))),
                    pod("db", "a1-1", **required("podAffinity", term(ZONE, "web"))),
                ],
                ["web-1", "db-1"],
                id="each-waits-for-the-other",
            ),
            pytest.param(
                [pod("web", "a1-1", **required("podAffinity", term(ZONE, "db"), term(ZONE, "ad"))), pod("db", "a1-1")],
                ["web-1"],
                id="all-terms-must-mean-the-same-pod",
            ),
            pytest.param([pod("web", "a1-1", **BOTH), pod("db", "a2-1")], [], id="it-came-before-the-others"),
            pytest.param(
                [*placed(BOTH, web=["a1-1", "a2-1"]), pod("db", "b1-1")],
                ["web-2"],
                id="one-alone-came-before-the-others",
            ),
            pytest.param(placed(required("podAffinity", term("rack", "web")), web=["a1-1"]), ["web-1"], id="no-label"),
        ],
    )
    def test_somebody_must_be_there_before(self, pods: list[Manifest], subjects: list[str]) -> None:
        assert broken(*pods) == [("affinity", name) for name in subjects]

    def test_who_was_there_before_cannot_have_come_after(self) -> None:
        cluster = read_cluster([*SMALL, pod("web", "a1-1", **self.BOTH), pod("db", "a2-1")])
        assert violations(cluster) == []
        (found,) = violations(cluster, [bound(cluster)["db-1"]])
        assert (found.rule, found.subject) == ("affinity", "web-1")


class TestSpread:
    @pytest.mark.parametrize(
        ("nodes", "constraint", "count"),
        [
            pytest.param(["a1-1", "a2-1", "b1-1"], {}, 0, id="even"),
            pytest.param(["a1-1", "a2-1"], {}, 0, id="fewer-than-domains"),
            pytest.param(["a1-1", "a1-2"], {}, 2, id="askew"),
            pytest.param(["a1-1", "a1-2"], {"skew": 2}, 0, id="more-skew"),
            pytest.param(["a1-1", "a1-1", "a2-1", "a2-1", "b1-1"], {}, 0, id="one-more-here-than-there"),
            pytest.param(["a1-1", "a1-2"], {"key": HOST}, 0, id="hosts"),
            pytest.param(["a1-1"] * 2 + ["a2-1"] * 2 + ["b1-1"], {"minDomains": 4}, 4, id="too-few-domains"),
            pytest.param(["a1-1", "a2-1", "b1-1"], {"minDomains": 4}, 0, id="one-each"),
            pytest.param(["a1-1"], {"key": "rack"}, 1, id="no-label"),
        ],
    )
    def test_skew(self, nodes: list[str], constraint: Manifest, count: int) -> None:
        found = broken(*placed(spread(**constraint), web=nodes))
        assert [rule for rule, _ in found] == ["topologySpread"] * count

    @pytest.mark.parametrize(
        ("policy", "askew"),
        [pytest.param({}, False, id="honor"), pytest.param({"nodeAffinityPolicy": "Ignore"}, True, id="ignore")],
    )
    def test_domains_that_the_selector_rules_out(self, policy: Manifest, askew: bool) -> None:
        spec = spread(**policy) | {"nodeSelector": {ZONE: "a1-"}}
        assert bool(broken(*placed(spec, web=["a1-1", "a1-2"]))) is askew

    @pytest.mark.parametrize(
        ("policy", "askew"),
        [pytest.param({}, True, id="ignore"), pytest.param({"nodeTaintsPolicy": "Honor"}, False, id="honor")],
    )
    def test_domains_behind_a_taint(self, policy: Manifest, askew: bool) -> None:
        tainted = node("t", "t", "a")
        tainted["spec"] = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
        pods = placed(spread(**policy), web=["a1-1", "a1-2", "a2-1", "a2-2", "b1-1", "b1-1"])
        assert bool(broken(tainted, *pods)) is askew


@pytest.mark.parametrize(
    ("db", "services", "limit", "pairs"),
    [
        pytest.param(["a1-1", "b1-1"], [], 20, 1, id="reached"),
        pytest.param(["a1-1", "b1-1"], [service("db", trafficDistribution="PreferSameZone")], 20, 0, id="not-reached"),
        pytest.param(["a1-2"], [], 0, 0, id="same-zone-always-satisfies"),
        pytest.param(["a2-1"], [], 5, 0, id="at-the-limit"),
        pytest.param(
            ["a2-1"], [service("db", internalTrafficPolicy="Local")], 0, 0, id="calls-that-fail-have-no-distance"
        ),
    ],
)
def test_network_limits(db: list[str], services: list[Manifest], limit: int, pairs: int) -> None:
    found = broken(group(("web", "db"), limit=limit), *services, *placed(web=["a1-1"], db=db))
    assert found == [("maxNetworkCost", "web-1")] * pairs


def test_limits_are_not_enforced_while_no_cost_is_known() -> None:
    nodes = [node("n1", "z1"), node("n2", "z2")]
    cluster = read_cluster([*nodes, group(("web", "db"), limit=1), *placed(web=["n1"], db=["n2"])])
    assert violations(cluster) == []


class TestSoftRules:
    @pytest.mark.parametrize(
        ("spec", "nodes", "amounts"),
        [
            pytest.param(
                preferred("podAntiAffinity", 100, term(HOST, "web")), ["a1-1"] * 3, (6.0, 0.0, 0.0), id="apart"
            ),
            pytest.param(
                preferred("podAntiAffinity", 50, term(HOST, "web")), ["a1-1"] * 2 + ["a1-2"], (1.0, 0.0, 0.0), id="less"
            ),
            pytest.param(
                preferred("podAffinity", 100, term(ZONE, "web")), ["a1-1", "a2-1"], (0.0, 2.0, 0.0), id="near"
            ),
            pytest.param(spread(when="ScheduleAnyway"), ["a1-1"] * 3, (0.0, 0.0, 2.0), id="skew"),
            pytest.param(spread(when="ScheduleAnyway"), ["a1-1", "a1-1", "a2-1"], (0.0, 0.0, 1.0), id="less-skew"),
            pytest.param({}, ["a1-1"] * 3, (0.0, 0.0, 0.0), id="default-spread-lets-three-a-host"),
            pytest.param({}, ["a1-1"] * 6, (0.0, 0.0, 4.0), id="default-spread"),
            pytest.param(spread(skew=9), ["a1-1"] * 6, (0.0, 0.0, 0.0), id="none-by-default-with-constraints"),
        ],
    )
    def test_amounts(self, spec: Manifest, nodes: list[str], amounts: tuple[float, ...]) -> None:
        found = soft_rules(read_cluster([*SMALL, EDGE, *placed(spec, web=nodes)]), GROUP)
        assert (found.anti_affinity, found.affinity, found.skew) == amounts

    def test_terms_of_others_count_where_they_mean_the_group(self) -> None:
        guard = pod("guard", "a1-1", group="", **preferred("podAntiAffinity", 100, term(HOST, "web")))
        fan = pod("fan", "b1-1", group="", **preferred("podAffinity", 50, term(ZONE, "web")))
        lonely = pod("lonely", "b1-1", 2, group="", **preferred("podAffinity", 50, term(ZONE, "nobody")))
        found = soft_rules(read_cluster([*SMALL, EDGE, guard, fan, lonely, *placed(web=["a1-1", "a1-2"])]), GROUP)
        assert (found.anti_affinity, found.affinity) == (1.0, 0.5)

    def test_a_node_without_the_label_is_near_nobody(self) -> None:
        spec = preferred("podAffinity", 100, term("rack", "web"))
        found = soft_rules(read_cluster([*SMALL, EDGE, *placed(spec, web=["a1-1", "a1-1"])]), GROUP)
        assert found.affinity == 2.0

    def test_default_spreading_can_be_switched_off(self) -> None:
        cluster = read_cluster([*SMALL, EDGE, *placed(web=["a1-1"] * 6)])
        assert soft_rules(cluster, GROUP, default_spread=()).skew == 0

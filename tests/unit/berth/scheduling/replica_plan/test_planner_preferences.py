"""What a node costs whatever others do, in plans in counts and for pods that are placed alone."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import Node, Pod, Taint
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Decision
from berth.scheduling.gang.strategies import DEFAULT, REPLICAS
from tests.support import builders
from tests.support.placement import Lab, chain, group_object, member, where, zoned

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ZONE = "topology.kubernetes.io/zone"
SSD = {"weight": 60, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
PREFERS = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [SSD]}}}
SOFT = [Taint(key="spot", effect="PreferNoSchedule"), Taint(key="old", effect="PreferNoSchedule")]
TOLERATES = {"tolerations": [{"key": "spot", "operator": "Exists"}]}
PROFILE = Profile.model_validate({"gang": {"strategy": REPLICAS}})


def nodes() -> list[Node]:
    """Three nodes of one zone: plain, with a fast disk, and with two taints."""
    tainted = zoned("tainted")
    tainted.spec.taints = SOFT
    return [tainted, zoned("plain"), zoned("fast", labels={"disk": "ssd"})]


def placed(profile: Profile, *pods: Pod) -> list[Decision]:
    lab = Lab(nodes(), profile)
    outcome = lab.place(lab.group(group_object("shop", *chain("a", "b"))), *pods)
    assert outcome.complete
    return list(outcome.decisions)


@pytest.mark.parametrize("names", [["a"], ["a", "b"]], ids=["alone", "jointly"])
@pytest.mark.parametrize(
    ("spec", "node", "terms"),
    [
        pytest.param(PREFERS, "fast", {}, id="preferred node affinity"),
        pytest.param({"nodeName": ""}, "plain", {}, id="soft taints"),
        pytest.param(
            {**PREFERS, "nodeSelector": {"disk": "none"}}, "none", {"NodeAffinity": 3.0}, id="unmet preference"
        ),
        pytest.param(
            {"nodeSelector": {"kubernetes.io/hostname": "tainted"}},
            "tainted",
            {"TaintToleration": 10.0},
            id="two taints",
        ),
        pytest.param(
            {**TOLERATES, "nodeSelector": {"kubernetes.io/hostname": "tainted"}},
            "tainted",
            {"TaintToleration": 5.0},
            id="one tolerated",
        ),
    ],
)
def test_preferences_have_a_price(names: list[str], spec: dict[str, Any], node: str, terms: dict[str, float]) -> None:
    lab = Lab([*nodes(), zoned("none", labels={"disk": "none"})], PROFILE)
    shop = lab.group(group_object("shop", *chain("a", "b")))
    outcome = lab.place(shop, *(member(name, name, cpu="100m", spec=spec) for name in names))
    assert set(where(outcome).values()) == {node}
    for decision in outcome.decisions:
        assert {
            name: cost for name, cost in decision.terms.items() if name in ("NodeAffinity", "TaintToleration") and cost
        } == terms


def test_calls_may_be_worth_more() -> None:
    """Three calls that leave a zone at 5 each are dearer than a preference of 3."""
    lab = Lab([zoned("near", "z1"), zoned("fast", "z3", "r2", labels={"disk": "ssd"})], PROFILE)
    shop = lab.group(group_object("shop", *chain("a", "b")))
    lab.see(member("b", "b", on="near"))
    assert where(lab.place(shop, member("a", "a", spec=PREFERS))) == {"a": "near"}


def test_other_strategies_have_none() -> None:
    profile = Profile.model_validate({"gang": {"strategy": DEFAULT}})
    decisions = placed(profile, member("a", "a", spec=PREFERS), member("b", "b", spec=PREFERS))
    assert all("NodeAffinity" not in decision.terms for decision in decisions)


def dear(*names: str, zone: str, price: str) -> list[Node]:
    """Nodes with a price per core."""
    found = [zoned(name, zone, pods=1000) for name in names]
    for node in found:
        node.metadata.annotations["berth.dev/price-cpu"] = price
    return found


def crowd(number: int) -> list[Pod]:
    """Placed pods of others in z2."""
    return [builders.pod(f"batch{n}", on="m", cpu="1m", labels={"app": "batch"}) for n in range(number)]


AWAY = {"weight": 100, "podAffinityTerm": builders.pod_term(ZONE, {"app": "batch"})}
NEAR = {"weight": 100, "podAffinityTerm": builders.pod_term(ZONE, {"app": "none"})}


@pytest.mark.parametrize("already", [False, True], ids=["jointly", "alone"])
@pytest.mark.parametrize(
    ("price", "others", "spec"),
    [
        pytest.param("5000", 0, {}, id="a price"),
        pytest.param("1e12", 0, {}, id="a price beyond all others"),
        pytest.param("0", 400, {"podAntiAffinity": {PREFERRED: [AWAY]}}, id="preferred anti-affinity to many"),
        pytest.param(
            "5000", 400, {"podAntiAffinity": {PREFERRED: [AWAY]}, "podAffinity": {PREFERRED: [NEAR]}}, id="all"
        ),
    ],
)
@pytest.mark.parametrize("spread", ["node", "zone"])
def test_what_must_be_survived_is_survived_at_any_price(
    spread: str, price: str, others: int, spec: dict[str, Any], already: bool
) -> None:
    profile = Profile.model_validate({"spread": spread})
    lab = Lab([zoned("n", "z1"), *dear("m", zone="z2", price=price)], profile)
    shop = lab.group(group_object("shop", *chain("a", "b")))
    lab.see(*crowd(others))
    first, later = (member(name, "a", cpu="1", spec={"affinity": spec}) for name in ("a0", "a1"))
    if already:
        lab.see(member("a-old", "a", cpu="1", on="n", spec={"affinity": spec}))
        assert where(lab.place(shop, later)) == {"a1": "m"}
    else:
        assert set(where(lab.place(shop, first, later)).values()) == {"n", "m"}


@pytest.mark.parametrize("spread", ["soft", "none"])
def test_what_need_not_be_survived_is_not_paid_for(spread: str) -> None:
    lab = Lab([zoned("n", "z1"), *dear("m", zone="z2", price="20")], Profile.model_validate({"spread": spread}))
    shop = lab.group(group_object("shop", *chain("a", "b")))
    assert set(where(lab.place(shop, member("a0", "a", cpu="1"), member("a1", "a", cpu="1"))).values()) == {"n"}

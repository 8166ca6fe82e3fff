"""What a node costs whatever others do, in plans in counts and for pods that are placed alone."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import Node, Pod, Taint
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Decision
from berth.scheduling.gang.strategies import DEFAULT, REPLICAS
from tests.support.placement import Lab, chain, group_object, member, where, zoned

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

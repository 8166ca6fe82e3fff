"""A new score is one file of at most 60 lines and one line of registration; from then on it takes part everywhere."""

from __future__ import annotations

import importlib.util
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from berth.cli.explain.pod import pod_document
from berth.cli.explain.tables import pod_page
from berth.kube.objects import Pod
from berth.scheduling.framework.plugin import Plugin
from berth.scheduling.plugins import PLUGINS
from tests.support import plans
from tests.support.placement import Lab, chain, group_object, lone, member, where, zoned

FILE = Path(__file__).parents[3] / "data" / "plugins" / "battery.py"
POWER = "example.com/power"
TERM = "Battery"
PAIR = plans.appgroup("shop", {"front": ["back"], "back": []})


def nodes() -> list[Any]:
    """Two nodes of one zone that differ in nothing but their power; the wrong one comes first."""
    return [zoned("a", labels={POWER: "battery"}), zoned("b", labels={POWER: "mains"})]


def manifests() -> list[Any]:
    made = [plans.node("a", zone="z"), plans.node("b", zone="z")]
    for manifest, power in zip(made, ("battery", "mains"), strict=True):
        manifest["metadata"]["labels"][POWER] = power
    return made


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("battery", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    plugins: list[type[Plugin]] = PLUGINS.copy()
    monkeypatch.setattr("berth.scheduling.planner.PLUGINS", plugins)
    plugins.append(module.Battery)  # the line of registration


def test_its_file_is_short() -> None:
    assert len(FILE.read_text().splitlines()) <= 60


def test_without_it_the_first_node_is_taken() -> None:
    assert where(Lab(nodes()).place_alone(lone("p"))) == {"p": "a"}


@pytest.mark.usefixtures("registered")
class TestRegistered:
    def test_a_pod_alone(self) -> None:
        (decision,) = Lab(nodes()).place_alone(lone("p")).decisions
        assert (decision.node, decision.terms[TERM]) == ("b", 400.0)
        assert TERM not in decision.runner_ups[0].terms

    @pytest.mark.parametrize("strategy", ["berth", "phare"])
    def test_a_joint_plan(self, strategy: str) -> None:
        lab = Lab(nodes())
        lab.profile = lab.profile.model_copy(
            update={"gang": lab.profile.gang.model_copy(update={"strategy": strategy})}
        )
        lab.__post_init__()
        shop = lab.group(group_object("shop", *chain("x", "y")))
        outcome = lab.place(shop, member("x1", "x"), member("y1", "y"))
        assert where(outcome) == {"x1": "b", "y1": "b"}
        for decision in outcome.decisions:
            assert decision.terms[TERM] == 0.0
            assert decision.runner_ups[0].terms[TERM] == 3.0

    def test_plan_annotation_and_explanation(self) -> None:
        front, back = (plans.pod(name, group="shop", workload=name) for name in ("front", "back"))
        document = plans.made(*manifests(), PAIR, front, back, plans.pod("single"))
        assert plans.where(document) == {"front": "b", "back": "b", "single": "b"}
        decisions = {item["name"]: item["decision"] for item in document["pods"]}
        assert decisions["single"]["terms"][TERM] == 400.0
        assert decisions["front"]["runnerUps"][0]["terms"][TERM] == 3.0
        for name, decision in decisions.items():
            manifest = plans.pod(name, nodeName="b")
            manifest["metadata"]["annotations"] = {"berth.dev/decision": msgspec.json.encode(decision).decode()}
            explained = pod_document(
                msgspec.convert(manifest, Pod), [], schedulers=["berth-scheduler"], now=datetime.now(UTC)
            )
            assert TERM.upper() in pod_page(explained, width=110)

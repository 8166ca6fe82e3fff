"""The configuration file: defaults, and errors that name the field and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.scheduling.configuration import (
    AfterWait,
    ConfigurationError,
    Link,
    ObjectiveWeights,
    PlacementConfiguration,
    Profile,
    parse_configuration,
)
from berth.scheduling.gang.link_budgets import links_of
from berth.scheduling.gang.problem import Weights
from berth.scheduling.interference.policy import InterferencePolicy
from controllers.placement.controller import load_configuration


def profile(**fields: Any) -> dict[str, Any]:
    return {"profiles": [fields]}


def link(**fields: Any) -> dict[str, Any]:
    return profile(links=[{"name": "trunk", "capacity": "10G", "nodes": ["n1"], **fields}])


class TestDefaults:
    @pytest.mark.parametrize("document", [None, {}, {"kind": "PlacementConfiguration"}], ids=["empty", "map", "kind"])
    def test_nothing_configured(self, document: Any) -> None:
        assert parse_configuration(document, source="f") == PlacementConfiguration()

    def test_values(self) -> None:
        (only,) = PlacementConfiguration().profiles
        assert only.scheduler_name == "berth-scheduler"
        assert only.weight_sets == ["Dijkstra", "NetperfCosts", "UserDefined"]
        assert (only.gang.wait_seconds, only.gang.after_wait) == (30.0, AfterWait.PLACE_WHAT_FITS)
        assert only.gang.planning_seconds == 2.0
        assert (only.usage_threshold, only.prices, only.links) == (1.0, {}, [])

    def test_profile_by_scheduler_name(self) -> None:
        made = parse_configuration({"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]}, source="f")
        found = made.profile_for("b")
        assert found is not None
        assert found.scheduler_name == "b"
        assert made.profile_for("default-scheduler") is None


class TestErrors:
    @pytest.mark.parametrize(
        ("document", "field", "remedy"),
        [
            pytest.param({"profil": []}, "profil:", "write 'profiles'", id="unknown-at-the-top"),
            pytest.param(
                profile(gang={"waitSecond": 3}), "profiles[0].gang.waitSecond:", "write 'waitSeconds'", id="misspelt"
            ),
            pytest.param(
                profile(gang={"colour": 3}),
                "profiles[0].gang.colour:",
                "use one of afterWait, alone, planningSeconds",
                id="unknown",
            ),
            pytest.param(
                link(speed="1G"), "profiles[0].links[0].speed:", "use one of capacity", id="unknown-in-a-list"
            ),
            pytest.param(
                profile(gang={"strategy": "best"}), "profiles[0].gang:", "choose from berth,", id="unknown-strategy"
            ),
            pytest.param(
                {"profiles": [{}, {}]}, "'berth-scheduler' has 2 profiles", "keep one", id="duplicate-scheduler-name"
            ),
            pytest.param({"profiles": []}, "profiles:", "reference/placement-configuration.md", id="no-profile"),
            pytest.param(profile(usageThreshold=75), "usageThreshold:", "lower the value", id="threshold-in-percent"),
            pytest.param(profile(usageThreshold=0), "usageThreshold:", "greater than 0", id="threshold-zero"),
            pytest.param(profile(prices={"cpu": -1}), "prices.cpu:", "raise the value", id="negative-price"),
            pytest.param(profile(prices={"cpu": float("nan")}), "prices.cpu:", "finite", id="nan-price"),
            pytest.param(profile(gang={"waitSeconds": float("inf")}), "waitSeconds:", "finite", id="infinite-wait"),
            pytest.param(profile(gang={"afterWait": "Never"}), "afterWait:", "names listed", id="after-wait"),
            pytest.param(profile(schedulerName=""), "schedulerName:", "1 character", id="empty-scheduler-name"),
            pytest.param(link(capacity="10Q"), "links[0].capacity:", "write bit/s such as 10G", id="capacity-unit"),
            pytest.param(link(capacity="fast"), "links[0].capacity:", "write bit/s such as 10G", id="capacity-word"),
            pytest.param(link(capacity=None), "links[0].capacity:", "write bit/s such as 10G", id="capacity-null"),
            pytest.param(link(capacity=[1]), "links[0].capacity:", "write bit/s such as 10G", id="capacity-list"),
            pytest.param(link(capacity="0"), "links[0].capacity:", "leave the link out", id="capacity-zero"),
            pytest.param(link(capacity="-1G"), "links[0].capacity:", "leave the link out", id="capacity-negative"),
            pytest.param(link(nodes=[]), "links[0]:", "add one of them", id="link-that-nobody-uses"),
            pytest.param(link(zones=[["a"]]), "links[0].zones[0]", "", id="zones-are-pairs"),
            pytest.param(
                profile(links=[{"name": "t", "capacity": 1, "nodes": ["n"]}] * 2),
                "link 't' is listed 2 times",
                "own name",
                id="duplicate-link",
            ),
            pytest.param({"kind": "Profile"}, "kind:", "names listed", id="other-kind"),
            pytest.param({"bindingsInFlight": 0}, "bindingsInFlight:", "raise the value", id="no-bindings"),
            pytest.param([1], "(object)", "write a map of fields", id="a-list"),
            pytest.param("text", "(object)", "write a map of fields", id="text"),
        ],
    )
    def test_named_with_its_remedy(self, document: Any, field: str, remedy: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            parse_configuration(document, source="conf.yaml")
        message = str(caught.value)
        assert message.startswith("conf.yaml: PlacementConfiguration: ")
        assert field in message
        assert remedy in message
        assert "kubectl explain" not in message

    def test_all_problems_are_listed(self) -> None:
        with pytest.raises(ConfigurationError) as caught:
            parse_configuration(profile(usageThreshold=2, prices={"cpu": -1}), source="f")
        assert str(caught.value).count("profiles[0]") == 2


class TestFiles:
    def test_none_means_defaults(self) -> None:
        assert load_configuration(None) == PlacementConfiguration()

    def test_yaml(self, tmp_path: Path) -> None:
        path = tmp_path / "conf.yaml"
        path.write_text("profiles:\n- schedulerName: mine\n  links:\n  - {name: t, capacity: 10G, zones: [[a, b]]}\n")
        (only,) = load_configuration(path).profiles
        assert (only.scheduler_name, only.links[0].zones) == ("mine", [("a", "b")])

    def test_bad_yaml(self, tmp_path: Path) -> None:
        path = tmp_path / "conf.yaml"
        path.write_text("profiles: [")
        with pytest.raises(ConfigurationError, match=r"conf\.yaml:1: not valid YAML"):
            load_configuration(path)

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(OSError, match=r"absent\.yaml"):
            load_configuration(tmp_path / "absent.yaml")


@pytest.mark.parametrize(("capacity", "bits"), [("10G", 1e10), (5_000_000, 5e6), ("1500M", 1.5e9), ("1e9", 1e9)])
def test_every_accepted_capacity_can_be_planned_with(capacity: Any, bits: float) -> None:
    made = Profile.model_validate({"links": [{"name": "t", "capacity": capacity, "nodes": ["n"]}]})
    links = links_of(made, {}, [], {})
    assert links is not None
    assert links.capacity.tolist() == [bits]
    assert isinstance(made.links[0], Link)


def test_the_shipped_weights_are_those_of_the_engine_and_its_benchmarks() -> None:
    shipped, engine = ObjectiveWeights(), Weights()
    assert {name: getattr(shipped, name) for name in ("network", "price", "bandwidth", "waste", "balance")} == {
        name: getattr(engine, name) for name in ("network", "price", "bandwidth", "waste", "balance")
    }


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        pytest.param("{}", InterferencePolicy.OFF, id="by default"),
        pytest.param("{interference: Off}", InterferencePolicy.OFF, id="a word that YAML reads as false"),
        pytest.param("{interference: 'Off'}", InterferencePolicy.OFF, id="quoted"),
        *(pytest.param(f"{{interference: {each.value!r}}}", each, id=each) for each in InterferencePolicy),
    ],
)
def test_sockets_are_chosen_by_name_alone(text: str, policy: InterferencePolicy) -> None:
    configuration = parse_configuration(yaml.safe_load(f"profiles: [{text}]"), source="c.yaml")
    assert configuration.interference_policies == {"berth-scheduler": policy}


def test_no_other_word_chooses_sockets() -> None:
    with pytest.raises(ConfigurationError, match=r"profiles\[0\]\.interference"):
        parse_configuration({"profiles": [{"interference": True}]}, source="c.yaml")

"""What the conditions say: reason, what is missing by name, what to do; and that nothing new is no change."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from berth.api.conditions import Condition, ConditionStatus, is_true
from berth.api.networktopology import NetworkTopologyStatus
from controllers.networktopology.compute import compute
from controllers.networktopology.places import Places
from controllers.networktopology.sources import configmap
from controllers.networktopology.sources.base import Reading, SourceState
from controllers.networktopology.status import Finding, findings, name_pairs, name_some, next_status
from tests.support.topologies import NO_SOURCE, Stated, measured, places, stated

TWO_ZONES = places(n1="r/A", n2="r/B")
NAME = "ConfigMap shop/netperf"
PREFIX = configmap.KEY_PREFIX
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 31, 13, tzinfo=UTC)


def conditions(
    reading: Reading = NO_SOURCE, where: Places = TWO_ZONES, zones: Stated | None = None
) -> dict[str, Finding]:
    computation = compute(stated(zones=zones), reading, where)
    return {finding.type: finding for finding in findings(reading, computation, where)}


BOTH: Stated = {"A>B": 5, "B>A": 6}


class TestSourceAvailable:
    @pytest.mark.parametrize(
        ("reading", "zones", "holds", "reason", "says"),
        [
            pytest.param(NO_SOURCE, BOTH, True, "UserDefined", ["No ConfigMap is named", "2 costs"], id="stated only"),
            pytest.param(NO_SOURCE, None, False, "NoSource", ["name a ConfigMap or state costs"], id="nothing at all"),
            pytest.param(
                Reading(SourceState.MISSING, NAME),
                BOTH,
                False,
                "ConfigMapNotFound",
                [NAME, "create it", "correct spec.configmapName", "until then costs come from UserDefined"],
                id="missing, with stated costs",
            ),
            pytest.param(
                Reading(SourceState.MISSING, NAME),
                None,
                False,
                "ConfigMapNotFound",
                ["until then there are no costs"],
                id="missing, without stated costs",
            ),
            pytest.param(
                Reading(SourceState.EMPTY, NAME),
                None,
                False,
                "NoUsableMeasurements",
                [NAME, "netperf.p90.latency.milliseconds.origin.<node>.destination.<node>"],
                id="empty",
            ),
            pytest.param(
                Reading(SourceState.FAILED, NAME, detail="configmaps is forbidden; allow it"),
                None,
                False,
                "ConfigMapUnreadable",
                [NAME, "forbidden; allow it", "stay as they are"],
                id="not allowed",
            ),
            pytest.param(measured(n1_n2=3), None, True, "MeasurementsRead", [NAME, "1 measurement."], id="read"),
        ],
    )
    def test_states(self, reading: Reading, zones: Stated | None, holds: bool, reason: str, says: list[str]) -> None:
        found = conditions(reading, zones=zones)["SourceAvailable"]
        assert (found.holds, found.reason) == (holds, reason)
        for part in says:
            assert part in found.message

    @pytest.mark.parametrize("good", [True, False], ids=["beside good ones", "alone"])
    def test_unusable_entries_are_named_with_what_to_do(self, good: bool) -> None:
        data = {f"{PREFIX}n1.destination.n2": "fast", f"{PREFIX}gone.destination.n1": "4"}
        if good:
            data[f"{PREFIX}n2.destination.n1"] = "4"
        found = conditions(configmap.parse(data, name=NAME, nodes={"n1", "n2"}))["SourceAvailable"]
        assert found.reason == ("SomeMeasurementsUnusable" if good else "NoUsableMeasurements")
        assert found.holds == good
        assert f"{PREFIX}n1.destination.n2 is 'fast'" in found.message
        assert 'whole number of milliseconds such as "12"' in found.message
        assert f"remove the key or correct the name): {PREFIX}gone.destination.n1" in found.message

    def test_thousands_of_bad_values_stay_readable(self) -> None:
        data = {f"{PREFIX}n{number:04}.destination.n1": "?" for number in range(5000)}
        found = conditions(configmap.parse(data, name=NAME, nodes=set()))["SourceAvailable"]
        assert "n0009.destination.n1 is '?' and 4990 more" in found.message
        assert "n0010" not in found.message


class TestWeightsComputed:
    def test_says_what_was_computed_from_what(self) -> None:
        found = conditions(measured(n1_n2=3))["WeightsComputed"]
        assert (found.holds, found.reason) == (True, "Computed")
        assert found.message == f"Dijkstra and NetperfCosts from {NAME}: 0 region costs, 1 zone cost."

    @pytest.mark.parametrize(
        ("reading", "where", "reason"),
        [
            pytest.param(NO_SOURCE, TWO_ZONES, "NoSource", id="no source"),
            pytest.param(measured(n1_n2=3), places(n1="/", n2="/"), "NoPlacesConnected", id="no labels"),
            pytest.param(measured(n1_n1=3), TWO_ZONES, "NoPlacesConnected", id="measured inside a zone only"),
        ],
    )
    def test_says_why_nothing_was_computed(self, reading: Reading, where: Places, reason: str) -> None:
        found = conditions(reading, where)["WeightsComputed"]
        assert (found.holds, found.reason) == (False, reason)


class TestComplete:
    def test_nothing_is_missing(self) -> None:
        found = conditions(zones=BOTH)["Complete"]
        assert (found.holds, found.reason) == (True, "AllPairsKnown")
        assert "0 region pairs and 2 zone pairs" in found.message

    @pytest.mark.parametrize(
        ("zones", "missing"),
        [
            pytest.param({"A>B": 5}, "No path between zones: B to A;", id="one direction"),
            pytest.param({}, "No path between zones: A and B;", id="both directions, named once"),
        ],
    )
    def test_missing_pairs_are_named(self, zones: Stated, missing: str) -> None:
        found = conditions(zones=zones)["Complete"]
        assert (found.holds, found.reason) == (False, "MissingCosts")
        assert missing in found.message

    def test_missing_regions_are_named(self) -> None:
        found = conditions(where=places(n1="west/A", n2="east/B"))["Complete"]
        assert "No path between regions: east and west;" in found.message

    @pytest.mark.parametrize(
        ("reading", "remedy"),
        [
            pytest.param(NO_SOURCE, "state their costs in UserDefined", id="stated"),
            pytest.param(measured(n1_n2=3), f"publish measurements between their nodes in {NAME}", id="measured"),
        ],
    )
    def test_the_remedy_belongs_to_the_source(self, reading: Reading, remedy: str) -> None:
        assert remedy in conditions(reading)["Complete"].message

    @pytest.mark.parametrize(
        ("where", "reason", "says"),
        [
            pytest.param(
                places(n1="r/A", n2="r/", n3="/A"),
                "NodesNotLabelled",
                "Nodes without a region or zone label: n2, n3; label them with topology.kubernetes.io/region",
                id="labels",
            ),
            pytest.param(
                places(n1="r/A", n2="r/A", n3="s/A"),
                "MissingCosts",
                "Zones with nodes in several regions: A (r, s); give every zone a name of its own",
                id="a zone in two regions",
            ),
        ],
    )
    def test_labels_that_are_wrong(self, where: Places, reason: str, says: str) -> None:
        found = conditions(where=where)["Complete"]
        assert (found.holds, found.reason) == (False, reason)
        assert says in found.message

    def test_an_empty_cluster_lacks_nothing(self) -> None:
        assert conditions(where=Places())["Complete"].holds


@pytest.mark.parametrize(
    ("count", "text"),
    [
        pytest.param(0, "", id="none"),
        pytest.param(2, "0, 1", id="two"),
        pytest.param(10, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9", id="as many as are named"),
        pytest.param(12, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more", id="more"),
    ],
)
def test_name_some(count: int, text: str) -> None:
    assert name_some([str(number) for number in range(count)]) == text


def test_name_pairs() -> None:
    assert name_pairs([("b", "a"), ("a", "b"), ("c", "a")]) == "a and b, c to a"


class TestNextStatus:
    FOUND = (
        Finding("SourceAvailable", True, "MeasurementsRead", "m"),
        Finding("WeightsComputed", True, "Computed", "m"),
        Finding("Complete", False, "MissingCosts", "m"),
    )

    def status(
        self, current: NetworkTopologyStatus | None = None, *, found: tuple[Finding, ...] = FOUND, now: datetime = NOW
    ) -> NetworkTopologyStatus:
        return next_status(
            current or NetworkTopologyStatus(),
            found,
            generation=4,
            places=TWO_ZONES,
            names=["UserDefined", "Dijkstra"],
            calculated=NOW,
            measured=None,
            now=now,
        )

    def test_fields(self) -> None:
        status = self.status()
        assert status.to_api() | {"conditions": []} == {
            "observedGeneration": 4,
            "nodeCount": 2,
            "regions": 1,
            "zones": 2,
            "weightSets": "UserDefined, Dijkstra",
            "weightCalculationTime": "2026-01-31T12:00:00Z",
            "conditions": [],
        }
        assert [item.type for item in status.conditions] == ["SourceAvailable", "WeightsComputed", "Complete"]
        assert is_true(status.conditions, "WeightsComputed")
        assert not is_true(status.conditions, "Complete")
        assert {item.observed_generation for item in status.conditions} == {4}

    def test_the_same_findings_later_change_nothing(self) -> None:
        first = self.status()
        assert self.status(first, now=LATER).to_api() == first.to_api()

    def test_only_a_condition_that_turned_gets_a_new_time(self) -> None:
        turned = (*self.FOUND[:2], Finding("Complete", True, "AllPairsKnown", "m"))
        status = self.status(self.status(), found=turned, now=LATER)
        assert [item.last_transition_time for item in status.conditions] == [NOW, NOW, LATER]

    def test_conditions_of_others_stay(self) -> None:
        theirs = Condition(
            type="Audited",
            status=ConditionStatus.TRUE,
            observed_generation=1,
            last_transition_time=NOW,
            reason="Yes",
            message="",
        )
        assert self.status(NetworkTopologyStatus(conditions=(theirs,))).conditions[0] == theirs

"""The status around the conditions; and that nothing new is no change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from berth.api.conditions import Condition, ConditionStatus, ConditionUpdate
from berth.api.networktopology import NetworkTopologyStatus
from controllers.networktopology.places import Places
from controllers.networktopology.status import next_status
from tests.support.topologies import places

TWO_ZONES = places(n1="r/A", n2="r/B")
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 31, 13, tzinfo=UTC)


class TestNextStatus:
    UPDATES = (
        ConditionUpdate("SourceAvailable", True, "MeasurementsRead", "m"),
        ConditionUpdate("WeightsComputed", True, "Computed", "m"),
        ConditionUpdate("Complete", False, "MissingCosts", "m"),
    )

    def status(
        self,
        current: NetworkTopologyStatus | None = None,
        *,
        updates: tuple[ConditionUpdate, ...] = UPDATES,
        now: datetime = NOW,
        names: Sequence[str] = ("UserDefined", "Dijkstra"),
        where: Places = TWO_ZONES,
    ) -> NetworkTopologyStatus:
        return next_status(
            current or NetworkTopologyStatus(),
            updates,
            generation=4,
            places=where,
            names=names,
            calculated=NOW,
            measured=None,
            source="userdefined",
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
            "source": "userdefined",
            "conditions": [],
        }
        racks = places(n1="r/A/s1", n2="r/A/s2")
        assert self.status(where=racks).to_api()["segments"] == 2
        assert [item.type for item in status.conditions] == ["SourceAvailable", "WeightsComputed", "Complete"]
        assert [item.status.value for item in status.conditions] == ["True", "True", "False"]
        assert {item.observed_generation for item in status.conditions} == {4}

    @pytest.mark.parametrize(
        ("names", "shown"),
        [
            pytest.param(["n" * 64], "n" * 60 + "…", id="a long name"),
            pytest.param(
                [f"s{number}" for number in range(12)], "s0, s1, s2, s3, s4, s5, s6, s7, s8, s9 and 2 more", id="many"
            ),
        ],
    )
    def test_the_column_of_weight_sets_stays_short(self, names: list[str], shown: str) -> None:
        assert self.status(names=names).weight_sets == shown

    def test_the_same_conditions_later_change_nothing(self) -> None:
        first = self.status()
        assert self.status(first, now=LATER).to_api() == first.to_api()

    def test_only_a_condition_that_turned_gets_a_new_time(self) -> None:
        turned = (*self.UPDATES[:2], ConditionUpdate("Complete", True, "AllPairsKnown", "m"))
        status = self.status(self.status(), updates=turned, now=LATER)
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

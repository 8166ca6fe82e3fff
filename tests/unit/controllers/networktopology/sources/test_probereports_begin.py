"""When costs begin to come from ProbeReports: not with the first one, and never to and fro."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from berth.api.networktopology import ANNOTATION_SOURCE, NetworkTopology
from berth.kube.probe_reports import Report
from controllers.networktopology.sources.base import Published, SourceState
from controllers.networktopology.sources.probereports import ProbeReports
from tests.support.topologies import places, probe_report, probed_peer, raw_topology

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
PLACES = places(n1="r/A", n2="r/B", n3="s/C", n4="s/C")
OLD = timedelta(hours=1)


def reports(*nodes: str, age: timedelta = timedelta()) -> list[Report]:
    """Reports of these nodes about all others."""
    return [
        msgspec.convert(
            probe_report(node, *(probed_peer(peer, 850, time=NOW - age) for peer in PLACES.nodes if peer != node)),
            Report,
        )
        for node in nodes
    ]


def state(found: list[Report], *, source: str = "", choice: str = "") -> SourceState:
    """The state of the source for a NetworkTopology with this source in its status, and this choice."""
    raw: dict[str, Any] = raw_topology(annotations={ANNOTATION_SOURCE: choice} if choice else {})
    raw["status"] = {"source": source} if source else {}
    return ProbeReports.reading(NetworkTopology.parse(raw), PLACES, Published(reports=found, now=NOW)).state


@pytest.mark.parametrize(
    ("nodes", "source", "choice", "expected"),
    [
        pytest.param(["n1"], "", "", SourceState.TOO_FEW, id="the first report, of a new NetworkTopology"),
        pytest.param(["n1"], "userdefined", "", SourceState.TOO_FEW, id="stated costs stay"),
        pytest.param(["n1"], "prometheus", "", SourceState.TOO_FEW, id="costs of Prometheus stay"),
        pytest.param(["n1"], "", "probereports", SourceState.READ, id="chosen: at once"),
        pytest.param(["n1"], "probereports", "", SourceState.READ, id="in use: whoever is left"),
        pytest.param(["n3", "n4"], "", "", SourceState.TOO_FEW, id="two nodes of one zone"),
        pytest.param(["n1", "n2", "n3"], "", "", SourceState.READ, id="all zones measured, one node to come"),
        pytest.param(["n1", "n2", "n3", "n4"], "userdefined", "", SourceState.READ, id="all nodes"),
    ],
)
def test_how_costs_begin_to_come_from_reports(
    nodes: list[str], source: str, choice: str, expected: SourceState
) -> None:
    assert state(reports(*nodes), source=source, choice=choice) is expected


@pytest.mark.parametrize("source", ["", "probereports"], ids=["not in use", "in use"])
def test_old_reports_do_not_help_the_first_new_one(source: str) -> None:
    """Agents come back after weeks: their last reports are still there."""
    mixed = [*reports("n2", "n3", "n4", age=OLD), *reports("n1")]
    assert state(mixed, source=source) is (SourceState.READ if source else SourceState.TOO_FEW)
    assert state(reports(*PLACES.nodes, age=OLD), source=source) is SourceState.EMPTY

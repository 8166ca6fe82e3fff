"""The ProbeReport: what it can state."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from berth.api.probereport import MAX_PEERS, BandwidthReport, PeerReport, ProbeReport

PEER: dict[str, Any] = {"node": "n2", "lossPerMille": 0, "samples": 5, "lastProbeTime": "2026-01-31T12:00:00Z"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"p90Microseconds": -1}, id="negative"),
        pytest.param({"p90Microseconds": 0}, id="0 is no round trip"),
        pytest.param({"p90Microseconds": "NaN"}, id="no number"),
        pytest.param({"p90Microseconds": 10**12}, id="longer than any probe waits"),
        pytest.param({"lossPerMille": 1001}, id="more lost than sent"),
        pytest.param({"node": ""}, id="nobody"),
        pytest.param({"node": "n" * 254}, id="no name of a node"),
        pytest.param({"samples": -1}, id="negative count"),
        pytest.param({"lastProbeTime": "yesterday"}, id="no time"),
    ],
)
def test_what_no_agent_says_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PeerReport.model_validate(PEER | change)


LINK: dict[str, Any] = {"interface": "eth0", "capacityBitsPerSecond": 10**10, "samples": 60}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"interface": ""}, id="no interface"),
        pytest.param({"capacityBitsPerSecond": 0}, id="0 is no capacity"),
        pytest.param({"meanBitsPerSecond": -1}, id="negative"),
        pytest.param({"deviationBitsPerSecond": "NaN"}, id="no number"),
        pytest.param({"meanBitsPerSecond": 10**19}, id="more than 64 bits"),
    ],
)
def test_a_link_that_no_agent_has_is_refused(change: dict[str, Any]) -> None:
    assert BandwidthReport.model_validate(LINK).mean_bits_per_second is None
    with pytest.raises(ValidationError):
        BandwidthReport.model_validate(LINK | change)


def test_the_number_of_peers_is_bounded() -> None:
    peers = [PEER | {"node": f"n{number}"} for number in range(MAX_PEERS + 1)]
    document = {"metadata": {"name": "n1"}, "status": {"peers": peers}}
    with pytest.raises(ValidationError):
        ProbeReport.model_validate(document)


def test_a_report_that_says_nothing_yet() -> None:
    report = ProbeReport.parse({"metadata": {"name": "n1"}})
    assert (report.status.time, report.status.peers) == (None, ())

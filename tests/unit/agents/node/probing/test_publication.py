"""When a report is written: real changes, at most every half minute, and a sign of life."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agents.node.probing.publication import HEARTBEAT_SECONDS, WRITE_SECONDS, Publication, changed
from agents.node.probing.window import WINDOW_SECONDS
from berth.api.probereport import BandwidthReport, PeerReport, ProbeReportStatus

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def peer(
    node: str = "n1",
    p90: int | None = 10_000,
    loss: int = 0,
    zone: str = "b",
    p50: int = 1,
    method: str = "TCP",
    samples: int = 9,
) -> PeerReport:
    return PeerReport(
        node=node,
        zone=zone,
        method=method,
        p50_microseconds=p50,
        p90_microseconds=p90,
        loss_per_mille=loss,
        samples=samples,
        last_probe_time=NOW,
    )


def status(*peers: PeerReport, zone: str = "a", dropped: int = 0) -> ProbeReportStatus:
    return ProbeReportStatus(time=NOW, zone=zone, rounds_dropped=dropped, peers=peers)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(status(peer()), status(peer()), False, id="the same"),
        pytest.param(status(peer()), status(peer(p90=10_900)), False, id="9 in a hundred"),
        pytest.param(status(peer()), status(peer(p90=11_100)), True, id="11 in a hundred"),
        pytest.param(status(peer()), status(peer(p90=8_900)), True, id="shorter"),
        pytest.param(status(peer(p90=50)), status(peer(p90=140)), False, id="much, of nearly nothing"),
        pytest.param(status(peer(p90=50)), status(peer(p90=151)), True, id="a tenth of a millisecond"),
        pytest.param(status(peer()), status(peer(p50=5000)), False, id="the median alone"),
        pytest.param(status(peer()), status(peer(loss=28)), False, id="one echo lost"),
        pytest.param(status(peer()), status(peer(loss=56)), True, id="two echoes lost"),
        pytest.param(status(peer(method="ICMP")), status(peer()), True, id="its responder answers now"),
        pytest.param(status(peer()), status(peer(p90=None)), True, id="silent"),
        pytest.param(status(peer(p90=None)), status(peer()), True, id="answers again"),
        pytest.param(status(peer(p90=None)), status(peer(p90=None)), False, id="silent as before"),
        pytest.param(status(peer()), status(peer(), peer("n2")), True, id="one peer more"),
        pytest.param(status(peer()), status(peer("n2")), True, id="another peer"),
        pytest.param(status(peer()), status(peer(zone="c")), True, id="a peer's zone"),
        pytest.param(status(peer()), status(peer(), zone="c"), True, id="the own zone"),
        pytest.param(status(peer()), status(peer(), dropped=5), False, id="rounds dropped"),
    ],
)
def test_changed(before: ProbeReportStatus, after: ProbeReportStatus, expected: bool) -> None:
    assert changed(before, after) is expected


def published(found: ProbeReportStatus, at: float) -> Publication:
    publication = Publication()
    publication.tried(at)
    publication.written(found)
    return publication


def test_the_first_report_is_written_at_once_if_it_says_anything() -> None:
    assert Publication().due(status(peer()), 0.0)
    assert not Publication().due(status(), 0.0)


@pytest.mark.parametrize(
    "publication", [Publication(), published(status(peer()), 0.0)], ids=["the first", "after a sleep"]
)
def test_none_is_written_while_nothing_can_be_said_of_any_peer(publication: Publication) -> None:
    """One of the link alone would keep what is said of peers, a moment later, waiting."""
    found = status().model_copy(update={"bandwidth": link()})
    assert publication.due(found, 2 * HEARTBEAT_SECONDS)
    assert not publication.due(found, 2 * HEARTBEAT_SECONDS, settling=True)


@pytest.mark.parametrize(
    ("seconds", "after", "expected"),
    [
        pytest.param(WRITE_SECONDS - 1, status(peer(p90=1)), False, id="change, too soon"),
        pytest.param(WRITE_SECONDS, status(peer(p90=1)), True, id="change"),
        pytest.param(WRITE_SECONDS, status(), True, id="all peers gone"),
        pytest.param(HEARTBEAT_SECONDS - 1, status(peer()), False, id="no change"),
        pytest.param(HEARTBEAT_SECONDS, status(peer()), True, id="sign of life"),
    ],
)
def test_later_ones(seconds: float, after: ProbeReportStatus, expected: bool) -> None:
    assert published(status(peer()), at=100.0).due(after, 100.0 + seconds) is expected


def test_a_write_that_failed_is_repeated_though_nothing_changed_but_not_sooner() -> None:
    publication = published(status(peer()), at=0.0)
    publication.tried(400.0)
    assert not publication.due(status(peer()), 400.0 + WRITE_SECONDS - 1)
    assert publication.due(status(peer()), 400.0 + WRITE_SECONDS)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(3, 54, True, id="the window has filled"),
        pytest.param(0, 1, True, id="the first"),
        pytest.param(36, 54, False, id="half as many again"),
        pytest.param(54, 50, False, id="fewer"),
    ],
)
def test_what_few_samples_said_is_said_again_once_a_window_is_full(before: int, after: int, expected: bool) -> None:
    publication = Publication()
    publication.tried(0.0)
    publication.written(status(peer(samples=before)))
    assert not publication.due(status(peer(samples=after)), WINDOW_SECONDS - 1)
    assert publication.due(status(peer(samples=after)), WINDOW_SECONDS) is expected


def link(
    mean: int | None = 0, deviation: int | None = 0, capacity: int | None = 10**9, interface: str = "eth0"
) -> BandwidthReport:
    return BandwidthReport(
        interface=interface,
        capacity_bits_per_second=capacity,
        mean_bits_per_second=mean,
        deviation_bits_per_second=deviation,
        samples=0 if mean is None else 1,
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, None, False, id="no link"),
        pytest.param(None, link(), True, id="found"),
        pytest.param(link(), None, True, id="gone"),
        pytest.param(link(), link(mean=10**8), False, id="a tenth of it"),
        pytest.param(link(), link(mean=10**8 + 1), True, id="more used"),
        pytest.param(link(), link(deviation=10**8 + 1), True, id="used by fits and starts"),
        pytest.param(link(None, None), link(), True, id="the first sample"),
        pytest.param(link(), link(capacity=10**10), True, id="another speed"),
        pytest.param(link(), link(interface="eth1"), True, id="another link"),
        pytest.param(link(1000, 10, None), link(9_000_000, 10, None), False, id="unknown speed, a trickle"),
        pytest.param(link(10**9, 10, None), link(2 * 10**9, 10, None), True, id="unknown speed, twice as much"),
    ],
)
def test_what_is_new_of_the_link(before: BandwidthReport | None, after: BandwidthReport | None, expected: bool) -> None:
    old, new = (status(peer()).model_copy(update={"bandwidth": found}) for found in (before, after))
    assert changed(old, new) is expected


def test_a_node_without_peers_reports_its_link() -> None:
    assert Publication().due(status().model_copy(update={"bandwidth": link()}), 0.0)
    assert not Publication().due(status().model_copy(update={"bandwidth": link(None, None)}), 0.0)

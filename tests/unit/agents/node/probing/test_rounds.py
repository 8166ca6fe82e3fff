"""One round with real responders on loopback."""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest

from agents.node.probing.icmp import Icmp
from agents.node.probing.pacing import Pacer
from agents.node.probing.rounds import ICMP_PROBES, TCP_PROBES, Prober, Target, longest_round, paced_seconds
from agents.node.probing.window import Method
from tests.support.probing import brief_server, free_port, running_responder

RATE = 10_000.0


@pytest.fixture
def _no_icmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Icmp, "_try", lambda *_, **__: False)


def test_every_target_by_both_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Icmp, "_try", lambda *_, **__: True)
    monkeypatch.setattr(Icmp, "probe", lambda _icmp, address: {"127.0.0.2": 70, "127.0.0.3": None}[address])
    with running_responder("127.0.0.2") as peer:
        targets = [
            Target("a", "127.0.0.2", peer.port),
            Target("b", "127.0.0.3", free_port()),
            Target("c", "127.0.0.2", 0),
        ]
        with contextlib.closing(Prober(Target("", "127.0.0.2", peer.port), rate=RATE)) as prober:
            found = prober.run(targets)
    kinds = {name: Counter(sample.method for sample in samples) for name, samples in found.samples.items()}
    assert kinds == {
        "a": {Method.TCP: TCP_PROBES, Method.ICMP: ICMP_PROBES},
        "b": {Method.TCP: 1, Method.ICMP: ICMP_PROBES},
        "c": {Method.ICMP: ICMP_PROBES},
    }
    assert all(sample.microseconds is None for sample in found.samples["b"])
    assert all(sample.microseconds == 70 for sample in found.samples["c"])
    assert len(found.self_probes) == 2 * TCP_PROBES


@pytest.mark.parametrize(
    ("peers", "rate", "paced", "longest"),
    [
        pytest.param(0, 2.0, 3.0, 6.0, id="nobody but itself"),
        pytest.param(10, 20.0, 2.8, 26.6, id="usual"),
        pytest.param(11, 20.0, 3.05, 38.0, id="one more than threads have together"),
        pytest.param(100, 8.5, 59.53, 315.53, id="most"),
    ],
)
def test_how_long_a_round_takes(peers: int, rate: float, paced: float, longest: float) -> None:
    assert paced_seconds(peers, rate) == pytest.approx(paced, abs=0.01)
    assert longest_round(peers, rate) == pytest.approx(longest, abs=0.01)


@pytest.mark.usefixtures("_no_icmp")
def test_a_connection_that_is_made_anew_is_one_more_probe_of_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer whose responder ends each connection would be probed at up to twice the rate."""
    turns: list[None] = []
    monkeypatch.setattr(Pacer, "wait", lambda _: turns.append(None))
    with brief_server() as (port, taken), contextlib.closing(Prober(Target("", "", 0), rate=RATE)) as prober:
        for _ in range(3):
            prober.run([Target("a", "127.0.0.1", port)])
    assert len(taken) > 1
    assert len(turns) == 3 * TCP_PROBES + len(taken) - 1


@pytest.mark.usefixtures("_no_icmp")
def test_samples_of_a_peer_are_in_the_order_of_time() -> None:
    with running_responder() as peer, contextlib.closing(Prober(Target("", "", 0), rate=RATE)) as prober:
        rounds = [prober.run([Target("a", "127.0.0.1", peer.port)]) for _ in range(2)]
    times = [sample.time for measured in rounds for sample in measured.samples["a"]]
    assert times == sorted(times)
    assert len(times) == 2 * TCP_PROBES


@pytest.mark.usefixtures("_no_icmp")
def test_without_a_responder_of_its_own_there_are_no_self_probes() -> None:
    with contextlib.closing(Prober(Target("", "127.0.0.1", 0), rate=RATE)) as prober:
        assert prober.run([]).self_probes == ()


@pytest.mark.usefixtures("_no_icmp")
def test_each_target_is_told_when_it_is_done() -> None:
    told: list[Target] = []
    targets = [Target(f"n{n}", "127.0.0.1", free_port()) for n in range(12)]
    with contextlib.closing(Prober(Target("", "", 0), rate=RATE)) as prober:
        prober.run(targets, told.append)
    assert sorted(told) == sorted(targets)


@pytest.mark.usefixtures("_no_icmp")
def test_a_target_that_moves_is_probed_where_it_is() -> None:
    with (
        running_responder("127.0.0.2") as old,
        running_responder("127.0.0.3") as new,
        contextlib.closing(Prober(Target("", "", 0), rate=RATE)) as prober,
    ):
        prober.run([Target("a", "127.0.0.2", old.port)])
        moved = prober.run([Target("a", "127.0.0.3", new.port)])
    assert moved.samples["a"][0].microseconds is not None

"""The page of a LatencyPolicy keeps words whole that say what was moved and what it gained, however wide it is."""

from __future__ import annotations

from typing import Any

import pytest

from berth.cli.explain.latency_policy_page import policy_page

CLOUD = ("ip-10-0-12-34.eu-west-1.compute.internal", "gke-prod-pool-1-8f2c1d3e-x7k2")


def explained(nodes: tuple[str, str], pod: str, **users: int) -> dict[str, Any]:
    far, near = nodes
    measured = {"source": "Meter", "samples": 15, "ageSeconds": 27.4} | users
    beyond = measured | {"state": "Invalid", "p50Milliseconds": 180.3, "p90Milliseconds": 181.4}
    within = measured | {"state": "SoftValid", "p50Milliseconds": 20.2, "p90Milliseconds": 21.5}
    move = {"pod": pod, "sourceNode": far, "targetNode": near, "reason": "BeyondHardLimit", "outcome": "Confirmed"}
    gain = {"beforeMilliseconds": 180.6, "expectedMilliseconds": 20.7, "afterMilliseconds": 20.8}
    return {
        "namespace": "shop",
        "name": "web",
        "target": "Deployment web",
        "objective": "Constraints",
        "decisions": "Measured",
        "search": None,
        "hardMaxLatency": 100,
        "softMaxLatency": 60,
        "dryRun": False,
        "users": "PerUser" if users else "Single",
        "conditions": [],
        "unread": [],
        "nodes": [
            {"name": far, "pods": [], "why": "beyond the hard limit of 100 ms, beyond the soft limit of 60 ms"}
            | beyond,
            {"name": near, "pods": [pod], "why": "within the hard limit of 100 ms"} | within,
            {"name": "spare", "state": "Unknown", "pods": [], "why": "nobody has measured it"} | users,
        ],
        "moves": [move | gain | users | {"ageSeconds": 65.0, "gainMilliseconds": 159.8}],
    }


@pytest.mark.parametrize("width", [72, 80, 99, 100, 110, 120, 200])
@pytest.mark.parametrize("users", [pytest.param({}, id="as one"), pytest.param({"users": 12}, id="each")])
@pytest.mark.parametrize(
    ("nodes", "pod"),
    [
        pytest.param(("node-1", "node-2"), "web-ffc79bc9-885h9", id="short names"),
        pytest.param(CLOUD, "checkout-service-7d654b46b-hxrmm", id="long names"),
    ],
)
def test_no_word_is_broken_and_none_left_out(
    width: int, users: dict[str, int], nodes: tuple[str, str], pod: str
) -> None:
    text = policy_page(explained(nodes, pod, **users), width=width)
    assert max(map(len, text.splitlines())) <= width
    words = text.replace(",", " ").replace(";", " ").replace(":", " ").split()
    figures = ["180.3", "181.4", "20.2", "21.5", "180.6", "20.7", "20.8", "159.8", "27s", "1m5s"]
    states = ["Invalid", "SoftValid", "Unknown", "BeyondHardLimit", "Confirmed", "Meter"]
    named = [*nodes, *nodes, pod, "spare", *(["12"] * 4 if users else [])]
    missing = [
        word for word in (*figures, *states, *named) if words.count(word) < [*figures, *states, *named].count(word)
    ]
    assert not missing
    assert "…" not in text


def test_on_a_wide_terminal_there_are_columns() -> None:
    lines = policy_page(explained(("node-1", "node-2"), "web-ffc79bc9-885h9"), width=120).splitlines()
    assert [line.split()[-1] for line in lines if line.split()[:1] in (["NODE"], ["AGE"])] == ["WHY", "GAIN"]

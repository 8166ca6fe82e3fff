"""A LatencyPolicy explained: every node with its state and why, and every move with what it gained."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.latencypolicy import NodeState
from berth.cli.explain.latency_policy import policy_document
from berth.cli.explain.latency_policy_page import policy_page
from berth.kube.objects import CustomObject, OwnerReference, Pod
from tests.support import builders
from tests.support.latency import NOW

TIME = "2026-01-31T11:59:30Z"


def known(node: str, milliseconds: float | None, state: NodeState = NodeState.UNKNOWN, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"node": node, "state": state.value}
    if milliseconds is not None:
        value = round(milliseconds * 1000)
        found |= {"p50Microseconds": value, "p90Microseconds": value, "source": "Probe", "samples": 3, "time": TIME}
    return found | fields


def policy(
    *nodes: dict[str, Any],
    moves: Any = (),
    associations: Any = (),
    annotated: Any = None,
    search: Any = None,
    **spec: Any,
) -> CustomObject:
    limits = {"hardMaxLatency": 80, "softMaxLatency": 30}
    return CustomObject.of(
        {
            "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
            "spec": {"targetRef": {"name": "web"}} | limits | spec,
            "status": {
                "nodes": list(nodes),
                "moves": list(moves),
                "associations": associations,
                "annotatedLimits": annotated,
                "search": search,
            },
        }
    )


def web_pod(name: str, node: str) -> Pod:
    pod = builders.pod(name, namespace="shop", on=node, labels={"pod-template-hash": "5d"})
    pod.metadata.owner_references = [OwnerReference("ReplicaSet", "web-5d", "rs", controller=True)]
    return pod


def explained(obj: CustomObject, *pods: Pod, nodes: Any = (), unread: Any = ()) -> dict[str, Any]:
    return policy_document(obj, pods=pods, nodes=nodes, unread=unread, now=NOW)


@pytest.mark.parametrize(
    ("node", "spec", "why"),
    [
        pytest.param(known("a", None), {}, "nobody has measured it", id="not measured"),
        pytest.param(known("a", 20), {"minSamples": 5}, "measured 3 of 5 times", id="not often enough"),
        pytest.param(
            known("a", 90, NodeState.INVALID),
            {},
            "beyond the hard limit of 80 ms, beyond the soft limit of 30 ms",
            id="invalid",
        ),
        pytest.param(
            known("a", 50, NodeState.HARD_VALID),
            {},
            "within the hard limit of 80 ms, beyond the soft limit of 30 ms",
            id="hard-valid",
        ),
        pytest.param(
            known("a", 20, NodeState.SOFT_VALID),
            {},
            "within the hard limit of 80 ms, within the soft limit of 30 ms",
            id="soft-valid",
        ),
        pytest.param(
            known("a", 31, NodeState.SOFT_VALID),
            {},
            "within the hard limit of 80 ms, beyond the soft limit of 30 ms, by less than measurements may be wrong: "
            "its state is as it was",
            id="beyond by a little",
        ),
        pytest.param(
            known("a", 20, NodeState.SOFT_VALID),
            {"softMaxLatency": 80},
            "within the hard limit of 80 ms",
            id="one limit",
        ),
        pytest.param(
            known("a", None, rejections=2, rejectedUntil="2026-01-31T12:20:00Z"),
            {},
            "nobody has measured it; left alone until 2026-01-31T12:20:00Z: 2 of the moves there did not give what was "
            "expected",
            id="left alone",
        ),
        pytest.param(
            known("a", None, rejections=2, rejectedUntil="2026-01-31T11:00:00Z"),
            {},
            "nobody has measured it",
            id="no longer left alone",
        ),
    ],
)
def test_why_a_node_is_what_it_is(node: dict[str, Any], spec: dict[str, Any], why: str) -> None:
    [row] = explained(policy(node, **spec))["nodes"]
    assert row["why"] == why


def test_without_a_limit() -> None:
    spec = {"hardMaxLatency": None, "softMaxLatency": None, "objective": "Minimum"}
    found = explained(policy(known("a", 20, NodeState.SOFT_VALID), **spec))
    assert (found["objective"], found["nodes"][0]["why"]) == ("Minimum", "there is no limit")


def test_limits_by_annotations() -> None:
    spec = {"hardMaxLatency": None, "softMaxLatency": None}
    annotated = {"hardMaxLatency": 70, "softMaxLatency": 60}
    found = explained(policy(known("a", 90, NodeState.INVALID), annotated=annotated, **spec))
    assert (found["hardMaxLatency"], found["softMaxLatency"]) == (70, 60)
    assert found["nodes"][0]["why"] == "beyond the hard limit of 70 ms, beyond the soft limit of 60 ms"


def test_all_nodes_the_best_first_with_the_pods_of_the_workload() -> None:
    obj = policy(known("far", 90, NodeState.INVALID), known("near", 20, NodeState.SOFT_VALID))
    pods = [web_pod("web-1", "near"), web_pod("web-2", "new"), builders.pod("db", namespace="shop", on="far")]
    rows = explained(obj, *pods, nodes=[builders.node("other")])["nodes"]
    assert [(row["name"], row["pods"]) for row in rows] == [
        *(("near", ["web-1"]), ("far", [])),
        *(("new", ["web-2"]), ("other", [])),
    ]


def test_pods_that_end_are_left_out() -> None:
    ending = web_pod("web-0", "near")
    ending.metadata.deletion_timestamp = TIME
    [row] = explained(policy(known("near", 20, NodeState.SOFT_VALID)), ending, web_pod("web-1", "near"))["nodes"]
    assert row["pods"] == ["web-1"]


MOVE = {
    "pod": "web-1",
    "sourceNode": "far",
    "targetNode": "near",
    "reason": "BeyondHardLimit",
    "outcome": "Confirmed",
    "startTime": "2026-01-31T11:00:00Z",
    "beforeMicroseconds": 90_000,
    "expectedMicroseconds": 20_000,
    "afterMicroseconds": 21_500,
}


def test_what_a_move_gained() -> None:
    begun = {name: MOVE[name] for name in MOVE if not name.startswith("after")} | {"outcome": "Creating"}
    last, first = explained(policy(moves=[MOVE, begun]))["moves"]
    assert "gainMilliseconds" not in last
    assert (first["gainMilliseconds"], first["ageSeconds"]) == (68.5, 3600)


def test_the_page() -> None:
    obj = policy(known("near", 20, NodeState.SOFT_VALID), moves=[MOVE])
    text = policy_page(explained(obj, web_pod("web-1", "near"), unread=["nodes"]), width=200)
    lines = [line.split() for line in text.splitlines() if line.strip()]
    assert lines[0] == ["LatencyPolicy", "shop/web:", "Deployment", "web"]
    assert any(line[:4] == ["near", "SoftValid", "20.0", "ms"] and "web-1" in line for line in lines)
    assert any(line[0] == "1h" and line[-2:] == ["68.5", "ms"] for line in lines)
    assert "nodes that nobody has measured are left out" in text
    assert "none" in policy_page(explained(policy()), width=80)


def test_where_each_user_counts_nodes_say_how_many_they_serve() -> None:
    each = {"node": "near", "state": "SoftValid", "samples": 3, "time": TIME, "p50Microseconds": 20_000}
    served = [{"user": user, "node": "near", "lastSeenTime": TIME} for user in ("u", "v")]
    obj = policy(each, associations=served, users={"mode": "PerUser"})
    found = explained(obj, nodes=[builders.node("other")])
    assert [(row["name"], row["users"], row.get("samples")) for row in found["nodes"]] == [
        ("near", 2, 3),
        ("other", 0, None),
    ]
    lines = [line.split() for line in policy_page(found, width=200).splitlines()]
    assert ["near", "SoftValid", "20.0", "ms", "-", "3", "30s", "2", "-"] in [line[:9] for line in lines]


@pytest.mark.parametrize(
    ("fields", "mode", "words"),
    [
        pytest.param({}, "Single", ["Confirmed"], id="all count as one"),
        pytest.param({"users": 7}, "PerUser", ["7", "Confirmed"], id="for so many users"),
        pytest.param({}, "PerUser", ["-", "Confirmed"], id="of before each counted"),
        pytest.param(
            {"outcome": "Cancelled", "refused": True},
            "Single",
            ["Cancelled,", "no", "pod", "could", "be", "created"],
            id="no pod could be created",
        ),
    ],
)
def test_moves_say_whom_they_are_for_and_what_kept_them(fields: dict[str, Any], mode: str, words: list[str]) -> None:
    found = explained(policy(moves=[MOVE | fields], users={"mode": mode}))
    [line] = [line.split() for line in policy_page(found, width=200).splitlines() if "web-1" in line]
    assert line[5 : 5 + len(words)] == words


@pytest.mark.parametrize(
    ("search", "decisions", "why"),
    [
        pytest.param(None, "Measured", "nobody has measured it", id="by what is measured"),
        pytest.param(
            {
                "rule": "Hard",
                "startTime": TIME,
                "roundTime": TIME,
                "visited": [{"node": "a", "visits": 2, "left": True}, {"node": "gone", "visits": 1}],
            },
            "Published: the published rule Hard decides, for a hard limit of 80 ms alone; 2 nodes visited, 1 left; "
            "next round not before 2026-01-31T12:00:01Z",
            "nobody has measured it; visited 2 times, left",
            id="by a published rule",
        ),
    ],
)
def test_who_decides_and_which_nodes_were_visited(search: Any, decisions: str, why: str) -> None:
    spec = {"decisions": "Published"} if search else {}
    document = explained(policy(known("a", None), search=search, **spec))
    assert [(row["name"], row["why"]) for row in document["nodes"]] == [("a", why)]
    assert decisions in " ".join(policy_page(document, width=200).split())

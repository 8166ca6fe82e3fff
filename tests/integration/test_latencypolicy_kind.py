"""LatencyPolicy on a real API server: what is accepted, its columns, and what is refused with which words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from berth.api.latencypolicy import API_VERSION, KIND, MAX_ASSOCIATIONS, MAX_MOVES, MAX_NODES
from hack.harness.cluster import Kubectl

LIMITS = {"hardMaxLatency": 80, "softMaxLatency": 30}
TIME = "2026-01-31T12:00:00Z"


def policy(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "web"},
        "spec": {"targetRef": {"name": "web"}} | spec,
    }


def set_status(kubectl: Kubectl, manifest: dict[str, Any]) -> None:
    kubectl("apply", "--server-side", "--subresource=status", "-f", "-", input=json.dumps(manifest))


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(LIMITS, id="both limits"),
        pytest.param({"softMaxLatency": 30}, id="the soft one alone"),
        pytest.param({"objective": "Minimum"}, id="the minimum without a limit"),
        pytest.param({}, id="limits by annotations of the pods"),
        pytest.param({"hardMaxLatency": 30, "softMaxLatency": 30}, id="limits that are one"),
        pytest.param(LIMITS | {"exploration": []}, id="nothing explored"),
        pytest.param(LIMITS | {"exploration": ["Steer", "Migrate"]}, id="no address told"),
        pytest.param(LIMITS | {"sharing": "Zone"}, id="zones"),
        pytest.param(
            LIMITS | {"users": {"mode": "PerUser", "identity": {"source": "Cookie", "name": "id"}}},
            id="users by cookie",
        ),
        pytest.param(
            LIMITS | {"users": {"identity": {"source": "Query", "name": "user id[ä]"}}}, id="users by any parameter"
        ),
        *(
            pytest.param(
                LIMITS | {"users": {"identity": {"source": "Cookie", "name": name}}}, id=f"users by a cookie {name!r}"
            )
            for name in ("user[id]", "a/b:c@d", "X User", "Nutzer-Ä")
        ),
        pytest.param(
            LIMITS | {"users": {"identity": {"source": "Header", "name": "X-User's_1.0|~"}}},
            id="users by an odd header",
        ),
        pytest.param(LIMITS | {"users": {"minReplicas": 2, "maxReplicas": 2}}, id="a number of pods that stays"),
        pytest.param(LIMITS | {"users": {"minReplicas": 2}}, id="pods at least where their number is left alone"),
        pytest.param(LIMITS | {"moves": {"maxPerHour": 0, "dryRun": True}}, id="nothing moved"),
        pytest.param(LIMITS | {"decisions": "Published", "users": {"expirySeconds": 60}}, id="the published rules"),
        pytest.param(
            {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}} | LIMITS,
            id="a whole reference",
        ),
    ],
)
def test_accepted(kubectl: Kubectl, spec: dict[str, Any]) -> None:
    kubectl.apply(policy(**spec))
    assert kubectl.get("lp", "web")["spec"] == policy(**spec)["spec"]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param(
            {"hardMaxLatency": 30, "softMaxLatency": 80}, "softMaxLatency is above hardMaxLatency", id="soft above hard"
        ),
        pytest.param({"hardMaxLatency": 0}, "hardMaxLatency", id="a limit of nothing"),
        pytest.param({"hardMaxLatency": "80ms"}, "integer", id="a limit with a unit"),
        pytest.param(
            LIMITS | {"targetRef": {"kind": "DaemonSet", "name": "web"}}, "only a Deployment", id="a DaemonSet"
        ),
        pytest.param(
            LIMITS | {"targetRef": {"kind": "StatefulSet", "name": "web"}}, "only a Deployment", id="a StatefulSet"
        ),
        pytest.param(
            LIMITS | {"targetRef": {"apiVersion": "apps/v2", "name": "web"}}, "only a Deployment", id="another group"
        ),
        pytest.param(LIMITS | {"targetRef": {}}, "name", id="no target"),
        pytest.param(
            LIMITS | {"users": {"identity": {"source": "Header"}}},
            "name of the header, cookie",
            id="a header of no name",
        ),
        *(
            pytest.param(
                LIMITS | {"users": {"identity": {"source": source, "name": name}}},
                f"no {source.lower()} has that name",
                id=f"{name!r} for a {source.lower()}",
            )
            for source, names in (
                ("Header", ("X User", "X-User:", "Nutzer-Ä", "user\n")),
                ("Cookie", ("user=", "a;b", "user\n", " user", "user ")),
            )
            for name in names
        ),
        pytest.param(
            LIMITS | {"users": {"minReplicas": 3, "maxReplicas": 2}},
            "minReplicas is above",
            id="more pods than at most",
        ),
        pytest.param(
            LIMITS | {"decisions": "Published", "users": {"mode": "PerUser"}},
            "know all users as one",
            id="the published rules for each user",
        ),
        pytest.param(LIMITS | {"exploration": ["Steer", "Steer"]}, "duplicate", id="one way twice"),
        pytest.param(LIMITS | {"moves": {"maxPerHour": 65}}, "maxPerHour", id="more moves than are remembered"),
    ],
)
def test_refused(kubectl: Kubectl, spec: dict[str, Any], text: str) -> None:
    with pytest.raises(Exception, match=text):
        kubectl.apply(policy(**spec))


def test_a_policy_keeps_its_workload_while_a_pod_of_it_moves(kubectl: Kubectl) -> None:
    kubectl.apply(policy(**LIMITS))
    kubectl.apply(policy(targetRef={"name": "misspelt"}, **LIMITS))
    kubectl.apply(policy(**LIMITS))
    set_status(kubectl, policy(**LIMITS) | {"status": {"surge": {"replicas": 1, "previous": 1, "wanted": 2}}})
    with pytest.raises(Exception, match="a pod of the workload is moving"):
        kubectl.apply(policy(targetRef={"name": "other"}, **LIMITS))
    kubectl.apply(policy(hardMaxLatency=90))
    set_status(kubectl, policy(**LIMITS) | {"status": {"state": "SoftValid"}})
    kubectl.apply(policy(targetRef={"name": "other"}, **LIMITS))


def test_its_columns_say_whether_it_works(kubectl: Kubectl) -> None:
    condition = {"status": "True", "lastTransitionTime": TIME, "message": "words"}
    kubectl.apply(policy(**LIMITS))
    set_status(
        kubectl,
        policy(**LIMITS)
        | {
            "status": {
                "state": "HardValid",
                "p50": "35.2 ms",
                "movesLastHour": 1,
                "conditions": [
                    {"type": "Working", "reason": "Measuring", **condition},
                    {"type": "WithinLimits", "reason": "BeyondSoftLimit", **condition},
                    {"type": "Moving", "reason": "Creating", **condition},
                ],
            }
        },
    )
    head, line = kubectl("get", "latencypolicies", "-o", "wide").splitlines()
    assert head.split() == [
        *("NAME", "TARGET", "OBJECTIVE", "HARD", "SOFT", "STATE", "P50", "MOVES", "WORKING", "LIMITS", "MOVING", "AGE")
    ]
    columns = ["web", "web", "80", "30", "HardValid", "35.2", "ms", "1", "Measuring", "BeyondSoftLimit", "Creating"]
    assert line.split()[:-1] == columns


@pytest.mark.parametrize(
    ("spec", "annotated", "limits"),
    [
        pytest.param(LIMITS, None, ["80", "30"], id="of the policy"),
        pytest.param({"softMaxLatency": 30}, None, ["", "30"], id="one of the policy"),
        pytest.param({}, {"hardMaxLatency": 60, "softMaxLatency": 20}, ["60", "20"], id="of annotations"),
        pytest.param({}, {"hardMaxLatency": 60}, ["60", ""], id="one of annotations"),
        pytest.param(LIMITS, {"hardMaxLatency": 60, "softMaxLatency": 20}, ["80", "30"], id="of both"),
        pytest.param({}, None, ["", ""], id="none"),
    ],
)
def test_its_columns_show_the_limits_that_count(
    kubectl: Kubectl, spec: dict[str, Any], annotated: dict[str, int] | None, limits: list[str]
) -> None:
    kubectl.apply(policy(**spec))
    status = {"state": "SoftValid"} | ({"annotatedLimits": annotated} if annotated else {})
    set_status(kubectl, policy(**spec) | {"status": status})
    head, line = kubectl("get", "latencypolicies", "web").splitlines()
    hard, soft, state = (head.index(name) for name in ("HARD", "SOFT", "STATE"))
    assert [line[hard:soft].strip(), line[soft:state].strip()] == limits


def test_the_largest_status_is_stored(kubectl: Kubectl) -> None:
    kubectl.apply(policy(**LIMITS))
    name = "n" * 200
    status = {
        "nodes": [
            {
                "node": f"{name}{at}",
                "state": "SoftValid",
                "source": "Probe",
                "p50Microseconds": 60_000_000,
                "time": TIME,
            }
            for at in range(MAX_NODES)
        ],
        "moves": [
            {"pod": name, "sourceNode": name, "targetNode": name, "reason": "Nearer", "outcome": "Moved"}
            | {"startTime": TIME, "readyTime": TIME}
            for _ in range(MAX_MOVES)
        ],
        "associations": [{"user": f"{at:026d}", "node": name, "lastSeenTime": TIME} for at in range(MAX_ASSOCIATIONS)],
    }
    set_status(kubectl, policy(**LIMITS) | {"status": status})
    assert kubectl.get("lp", "web")["status"] == status

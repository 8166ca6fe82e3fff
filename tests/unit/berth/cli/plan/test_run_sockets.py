"""Plans of pods with an interference class: SocketStatuses and WorkloadProfiles among the manifests."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.cli.plan.run import BadInputError, render
from tests.support import plans

Manifest = dict[str, Any]


def sockets(node: str, *cpus: int, **status: Any) -> Manifest:
    found = [{"socket": number, "cpus": str(number), "cpuCount": count} for number, count in enumerate(cpus)]
    return {
        "apiVersion": "berth.dev/v1alpha1",
        "kind": "SocketStatus",
        "metadata": {"name": node},
        "status": {"sockets": found, **status},
    }


def profile(name: str, letter: str, **spec: Any) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "berth.dev/v1alpha1",
        "kind": "WorkloadProfile",
        "metadata": {"name": name},
        "spec": {"targetRef": target, "interferenceClass": letter, **spec},
    }


def assignment(socket: int) -> Manifest:
    return {**POD, "socket": socket}


POD = {"uid": "u", "namespace": "shop", "name": "web-1"}
YEAR_0 = "0000-01-01T00:00:00Z"
ASKING = ("c.yaml", "profiles: [{interference: LeastSlowdown}]")


def decisions(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [pod["decision"] for pod in document["pods"]]


def test_pods_that_would_suffer_get_sockets_of_their_own() -> None:
    document = plans.made(
        plans.node("n1", cpu="8"),
        sockets("n1", 4, 4),
        profile("noisy", "D"),
        plans.workload("Deployment", "noisy", spec={"replicas": 2}),
        plans.workload("Deployment", "plain"),
        configuration=ASKING,
    )
    noisy = [pod["decision"] for pod in document["pods"] if pod["workload"] == "Deployment/noisy"]
    assert {decision["socket"] for decision in noisy} == {0, 1}
    assert all(decision["slowdown"] == {"suffered": 1.0, "caused": 0.0} for decision in noisy)
    (plain,) = [pod["decision"] for pod in document["pods"] if pod["workload"] == "Deployment/plain"]
    assert "socket" not in plain
    assert "slowdown" not in plain


def test_the_table_says_who_shares_a_socket_and_what_to_expect() -> None:
    document = plans.made(
        plans.node("n1", cpu="8"),
        sockets("n1", 8),
        profile("web", "B", slowdowns=[{"beside": "web", "slowdown": "1.070"}]),
        plans.workload("Deployment", "web", spec={"replicas": 2}),
        plans.workload("Deployment", "plain"),
        configuration=ASKING,
    )
    text = render(document, show=["pods"], width=100)
    _, _, table = text.partition("\nSOCKETS\n")
    rows = [line.split() for line in table.splitlines() if line.startswith("n1")]
    assert [(row[1], *row[-3:]) for row in rows] == [("0", "B", "1.07", "0.07")] * 2
    assert max(map(len, text.splitlines())) <= 100


def test_measured_slowdowns_are_those_that_are_told() -> None:
    document = plans.made(
        plans.node("n1", cpu="8"),
        sockets("n1", 8),
        profile("web", "B", slowdowns=[{"beside": "web", "slowdown": "1.070"}]),
        plans.workload("Deployment", "web", spec={"replicas": 2}),
        configuration=ASKING,
    )
    assert [decision["slowdown"] for decision in decisions(document)] == [{"suffered": 1.07, "caused": 0.07}] * 2


@pytest.mark.parametrize("policy", ["LeastSlowdown", "SocketBased", "Greedy", "Sparing"])
@pytest.mark.parametrize("strategy", ["replicas", "berth"])
def test_pods_of_one_plan_that_fit_their_sockets_have_one(policy: str, strategy: str) -> None:
    # Where nobody moves for another, the large pod has to choose first: its name is the last.
    document = plans.made(
        plans.node("n1", cpu="8"),
        sockets("n1", 4, 4),
        profile("a", "B"),
        profile("b", "D"),
        plans.appgroup("shop", {"a": ["b"], "b": []}),
        plans.workload("Deployment", "a", group="shop", spec={"replicas": 2}, cpu="2"),
        plans.workload("Deployment", "b", group="shop", cpu="4"),
        configuration=("c.yaml", f"profiles: [{{interference: {policy}, gang: {{strategy: {strategy}}}}}]"),
    )
    small, other, large = (decision.get("socket") for decision in decisions(document))
    assert small == other
    assert {small, large} == {0, 1}


def test_without_sockets_nothing_is_said() -> None:
    document = plans.made(
        plans.node("n1", cpu="8"),
        profile("web", "B"),
        plans.workload("Deployment", "web", spec={"replicas": 2}),
        configuration=ASKING,
    )
    assert all("slowdown" not in decision for decision in decisions(document))
    assert "SOCKETS" not in render(document, show=["pods"], width=100)


@pytest.mark.parametrize(
    "configuration",
    [None, ("c.yaml", "profiles: [{}, {schedulerName: other, interference: LeastSlowdown}]")],
    ids=["by default", "another profile asks"],
)
def test_whose_profile_does_not_ask_gets_no_socket(configuration: tuple[str, str] | None) -> None:
    noisy = plans.workload("Deployment", "noisy", spec={"replicas": 2})
    manifests = (plans.node("n1", cpu="8"), sockets("n1", 4, 4), profile("noisy", "D"), noisy)
    document = plans.made(*manifests, configuration=configuration)
    assert len(decisions(document)) == 2
    assert not any({"socket", "slowdown"} & decision.keys() for decision in decisions(document))


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        pytest.param(profile("web", "E"), "interferenceClass", id="no such class"),
        pytest.param(
            profile("web", "B", slowdowns=[{"beside": "web", "slowdown": 1.25}]), "1.25.*in quotes", id="a number"
        ),
        pytest.param({**sockets("n1", 4), "spec": {"assignments": [{"uid": "u"}]}}, "socket", id="no socket"),
        pytest.param(sockets("n1", 4, 0), r"status.sockets\[1\].cpuCount.*found 0", id="a socket without CPUs"),
        pytest.param(sockets("n1", *[1] * 65), "status.sockets", id="too many sockets"),
        pytest.param(
            {**sockets("n1"), "status": {"sockets": [{"socket": 0, "cpus": "0", "cpuCount": 4}] * 2}},
            r"status.sockets\[1\].*socket 0 .*status.sockets\[0\]",
            id="a socket twice",
        ),
        pytest.param(
            {**sockets("n1", 4, 4), "spec": {"assignments": [assignment(0), assignment(1)]}},
            r"spec.assignments\[1\].*uid u .*spec.assignments\[0\]",
            id="a pod on two sockets",
        ),
        pytest.param(
            profile("web", "B", slowdowns=[{"beside": "web", "slowdown": text} for text in ("1.1", "1.9")]),
            r"spec.slowdowns\[1\].*beside web ",
            id="two slowdowns of a pair",
        ),
        pytest.param(
            profile("web", "A", method="CoRun", sensitivity="1.5", contentiousness="1.1", qosLimit="1.2"),
            "spec: .*interferenceClass",
            id="another class than follows",
        ),
        pytest.param(profile("web", "A", method="CoRun"), "spec: .*must be stated", id="nothing it follows from"),
    ],
)
def test_what_the_api_server_would_refuse_is_refused(manifest: Manifest, words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        plans.made(plans.node("n1"), manifest, plans.pod("p"))


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(sockets("n1", 4, time=YEAR_0), id="written"),
        pytest.param(sockets("n1", 4, pods=[{**POD, "since": YEAR_0}]), id="pinned since"),
        pytest.param({**sockets("n1", 4), "spec": {"assignments": [{**assignment(0), "time": YEAR_0}]}}, id="assigned"),
        pytest.param(profile("web", "D", measuredTime=YEAR_0), id="measured"),
    ],
)
def test_a_time_that_the_api_server_alone_understands_is_no_fault(manifest: Manifest) -> None:
    others = [sockets("n1", 4)] if manifest["kind"] == "WorkloadProfile" else [profile("web", "D")]
    web = plans.workload("Deployment", "web")
    document = plans.made(plans.node("n1", cpu="4"), manifest, *others, web, configuration=ASKING)
    assert [decision["socket"] for decision in decisions(document)] == [0]


@pytest.mark.parametrize(
    ("labels", "configuration", "noted"),
    [
        pytest.param({LABEL_INTERFERENCE_CLASS: "E"}, ASKING, [('"E" is no interference class', 3)], id="no class"),
        pytest.param(
            {LABEL_INTERFERENCE_CLASS: "A", "category": "catD"}, ASKING, [("two classes", 3)], id="two classes"
        ),
        pytest.param({LABEL_INTERFERENCE_CLASS: "E"}, None, [], id="nobody asks"),
        pytest.param({LABEL_INTERFERENCE_CLASS: "D"}, ASKING, [], id="a class"),
    ],
)
def test_labels_that_count_as_none_are_told_once(
    labels: dict[str, str], configuration: tuple[str, str] | None, noted: list[tuple[str, int]]
) -> None:
    web = plans.workload("Deployment", "web", spec={"replicas": 3})
    web["spec"]["template"]["metadata"]["labels"] |= labels
    document = plans.made(plans.node("n1", cpu="8"), sockets("n1", 8), web, configuration=configuration)
    assert len(document["notes"]) == len(noted)
    for note, (words, pods) in zip(document["notes"], noted, strict=True):
        assert note.startswith(f"{pods} pods, such as default/web-1: metadata.labels.")
        assert words in note

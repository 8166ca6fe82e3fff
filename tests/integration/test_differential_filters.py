"""Berth's filters and scores against the real kube-scheduler.

Several hundred generated situations live side by side on one control plane; kube-scheduler places the
pod of each, and Berth must agree:

- where Berth sees no node or one node, kube-scheduler must find the same;
- where Berth sees several, kube-scheduler's choice must be one of them, and one with Berth's best score.

Left out: what Berth does not implement (see docs/reference/plugins.md) and scores that depend on
images or Services.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from berth.scheduling.configuration import Profile
from berth.scheduling.framework.framework import Framework
from berth.scheduling.framework.plugin import FilterPlugin
from berth.scheduling.plugins import PLUGINS
from hack.harness.cluster import eventually
from hack.localcluster import LocalCluster
from hack.localcluster.components import Options
from hack.localcluster.rest import Api
from tests.support.differential import Answer, Stage, our_answer
from tests.support.generated import situations
from tests.support.situations import RUNTIME_CLASS, Situation
from tests.support.topics import TOPICS

PER_TOPIC = {0: 12, 1: 13, 2: 8}
"""Most situations per topic with no, exactly one, and several feasible nodes."""
UNTESTABLE = {"UnsupportedFeatures", "NodeName", "NodeDeclaredFeatures"}
BERTHS = {
    "RecentlyRejected",
    "NetworkOverhead",
    "MaxUnit",
    "UsageThreshold",
    "Bandwidth",
    "NodeBandwidth",
    "CheckRiskNodeBandwidth",
}
"""Rules that kube-scheduler does not have."""
KUBE_SCHEDULERS = [
    rule.name
    for rule in PLUGINS
    if issubclass(rule, FilterPlugin) and rule.name not in UNTESTABLE and rule.name not in BERTHS
]
"""Filters whose pods a default cluster does not accept, or kube-scheduler does not handle."""
EXAMPLES = 50
"""Situations drawn per topic; not every topic fills every class."""


@dataclass
class Case:
    """A situation with both answers."""

    name: str
    situation: Situation
    ours: Answer
    chosen: str
    """The node kube-scheduler chose, empty for none."""
    message: str
    """kube-scheduler's message when it found none."""


def _collect() -> list[Situation]:
    """The same situations every time: for each topic, some of each class."""
    found: list[Situation] = []

    def collect(topic: str) -> None:
        left = dict(PER_TOPIC)

        @settings(
            derandomize=True,
            database=None,
            max_examples=EXAMPLES,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(situations(topic))
        def draw(situation: Situation) -> None:
            if not any(left.values()):
                return
            named = situation.named(f"s{len(found)}")
            kind = min(len(our_answer(named).feasible), 2)
            if left[kind]:
                left[kind] -= 1
                found.append(named)

        draw()

    for topic in TOPICS:
        collect(topic)
    return found


@pytest.fixture(scope="module")
def cases(module_cluster: Callable[..., LocalCluster]) -> list[Case]:
    """All situations, created, placed by kube-scheduler and answered by us."""
    wanted = _collect()
    options = Options(
        controller_manager=False,
        apiserver_args=("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",),
    )
    cluster = module_cluster(crds=False, kwok=False, options=options)
    stage = Stage(cluster.api)
    stage.put(RUNTIME_CLASS)
    created = stage.create_all(wanted)
    LocalCluster.start(cluster.name, root=cluster.layout.home.parent, scheduler=True, die_with_parent=True)
    api = cluster.api()  # a new connection: the one from before may have been idle for too long
    pods = eventually(
        lambda: _decided(api, created),
        accept=lambda found: len(found) == len(created),
        timeout=120,
        what="a decision on every pod",
    )
    found = []
    for situation in created:
        pod = pods[situation.pod["metadata"]["uid"]]
        chosen = pod["spec"].get("nodeName") or pod["status"].get("nominatedNodeName") or ""
        message = _scheduled(pod).get("message", "")
        name = situation.pod["metadata"]["name"]
        found.append(Case(name, situation, our_answer(situation), chosen, message))
    return found


def _decided(api: Api, created: list[Situation]) -> dict[str, dict[str, Any]]:
    """The pods to place that kube-scheduler has placed or given up, by uid."""
    uids = {situation.pod["metadata"]["uid"] for situation in created}
    items = api.request("GET", "/api/v1/pods")["items"]
    return {
        pod["metadata"]["uid"]: pod
        for pod in items
        if pod["metadata"]["uid"] in uids
        and (
            pod["spec"].get("nodeName")
            or pod["status"].get("nominatedNodeName")
            or _scheduled(pod).get("status") == "False"
        )
    }


def _scheduled(pod: dict[str, Any]) -> dict[str, Any]:
    conditions = pod["status"].get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == "PodScheduled"), {})


def _report(case: Case) -> str:
    return (
        f"--- {case.name} (topics: {', '.join(case.situation.topics)})\n"
        f"Berth: feasible {sorted(case.ours.feasible)}, best {sorted(case.ours.best)}: {case.ours.message}\n"
        f"kube-scheduler: {case.chosen or 'none'}: {case.message}\n"
        f"{case.situation.text()}\n"
    )


def _disagreements(cases: list[Case], agrees: Callable[[Case], bool]) -> str:
    wrong = [case for case in cases if not agrees(case)]
    return f"{len(wrong)} of {len(cases)} disagree\n" + "\n".join(_report(case) for case in wrong[:5]) if wrong else ""


def test_same_answer_where_at_most_one_node_is_feasible(cases: list[Case]) -> None:
    determined = [case for case in cases if len(case.ours.feasible) <= 1]
    assert len(determined) >= 300
    assert sum(1 for case in determined if case.ours.feasible) >= 75, "too few situations with exactly one node"
    problem = _disagreements(determined, lambda case: {case.chosen} - {""} == case.ours.feasible)
    assert not problem, problem


def test_choice_is_feasible_and_among_the_best_where_several_are(cases: list[Case]) -> None:
    several = [case for case in cases if len(case.ours.feasible) > 1]
    assert len(several) >= 100
    problem = _disagreements(several, lambda case: case.chosen in _expected(case))
    assert not problem, problem


def _expected(case: Case) -> set[str]:
    """The best nodes; any feasible node where kube-scheduler 1.36 misjudges the pod's requests (ADR 21)."""
    return case.ours.feasible if case.situation.pod["spec"].get("resources") else case.ours.best


def test_every_topic_takes_part(cases: list[Case]) -> None:
    seen = {topic: sum(topic in case.situation.topics for case in cases) for topic in TOPICS}
    assert min(seen.values()) >= 20, seen


def test_reasons_are_worded_as_kube_scheduler_words_them(cases: list[Case]) -> None:
    nowhere = [case for case in cases if not case.chosen and not case.ours.feasible]
    problem = _disagreements(nowhere, lambda case: all(reason in case.message for reason in case.ours.reasons))
    assert not problem, problem


@pytest.mark.parametrize("name", KUBE_SCHEDULERS)
def test_leaving_out_any_filter_would_be_noticed(cases: list[Case], name: str) -> None:
    plugins = Framework(rule.of(Profile()) for rule in PLUGINS if rule.name != name)
    noticed = [
        case.name
        for case in cases
        if len(case.ours.feasible) <= 1 and our_answer(case.situation, plugins).feasible != case.ours.feasible
    ]
    assert len(noticed) >= 3, f"situations that depend on {name}: {noticed}"

"""What pods of one joint plan do to each other on sockets: asked where a profile goes by slowdown, and bounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.kube.objects import Pod
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Decision, Outcome
from berth.scheduling.interference import by_class
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.node_costs import NodeCosts
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.interference.residents import Kind, Layout, Resident
from berth.scheduling.interference.slowdown import SlowdownModel, Workload
from berth.scheduling.replica_plan import question as asking
from berth.scheduling.replica_plan import socket_harm
from berth.scheduling.replica_plan.socket_harm import SocketHarm
from berth.scheduling.replicas.sharing import Sharing
from tests.support import builders
from tests.support.placement import Lab, chain, group_object, member, where, zoned
from tests.support.sockets import status

ASKED: dict[str, Any] = {"interference": "LeastSlowdown"}


def lab(nodes: int = 2, sockets: int = 1, **profile: Any) -> Lab:
    """Nodes in zones of their own, with sockets of 8 CPUs."""
    found = Lab(
        [zoned(f"n{number}", f"z{number % 2 + 1}", cpu="64") for number in range(nodes)],
        Profile.model_validate({**ASKED, **profile}),
    )
    for number in range(nodes):
        found.cache.update_sockets(status(f"n{number}", cpus=(8,) * sockets))
    return found


def pods(letters: str, workloads: str = "") -> list[Pod]:
    """A pod for each letter, of a workload of its own unless others are named; a blank is one without class."""
    return [
        member(
            f"p{number}",
            f"w{(workloads or '0123456789')[number]}",
            cpu="1",
            labels={} if letter == " " else {LABEL_INTERFERENCE_CLASS: letter},
        )
        for number, letter in enumerate(letters)
    ]


def placed(found: Lab, letters: str, workloads: str = "") -> Outcome:
    group = found.group(group_object("shop", *chain(*sorted({f"w{name}" for name in workloads or "0123456789"}))))
    return found.place(group, *pods(letters, workloads))


def by_node(outcome: Outcome, letters: str) -> list[str]:
    nodes: dict[str, str] = {}
    for name, node in where(outcome).items():
        nodes[node] = nodes.get(node, "") + letters[int(name[1:])]
    return sorted("".join(sorted(each)) for each in nodes.values())


def sharing(found: Lab, letters: str, monkeypatch: pytest.MonkeyPatch) -> list[Sharing | None]:
    """What each plan was told of pods on sockets."""
    told: list[Sharing | None] = []
    original = socket_harm.sharing_of

    def heard(*arguments: Any) -> Any:
        answer = original(*arguments)
        told.append(answer[0])
        return answer

    monkeypatch.setattr(asking, "sharing_of", heard)
    placed(found, letters, "0011")
    return told


def test_pods_of_one_plan_that_hurt_each_other_are_kept_apart_though_they_call_each_other() -> None:
    assert by_node(placed(lab(), "DDAA", "0123"), "DDAA") == ["AD", "AD"]


def test_replicas_of_one_workload_count_as_many_as_they_are() -> None:
    found = lab(4)
    outcome = placed(found, "DDDDAAAA", "00001111")
    assert by_node(outcome, "DDDDAAAA") == ["AD"] * 4


def test_network_cost_and_harm_are_weighed_against_each_other() -> None:
    cheap = placed(lab(spread="none", weights={"interference": 0.01}), "DD", "01")
    assert by_node(cheap, "DD") == ["DD"]
    assert by_node(placed(lab(spread="none"), "DD", "01"), "DD") == ["D", "D"]


def test_decisions_tell_what_their_pods_do_to_each_other() -> None:
    found = lab(1, spread="none")
    decisions: Sequence[Decision] = placed(found, "DD", "01").decisions
    harm = found.cache.state.socket_choice.costs().cost(found.cache.state.sockets.kind_of("n0"))
    assert sum(each.terms["interference"] for each in decisions) == pytest.approx(10 * harm)
    assert all(each.value == pytest.approx(sum(each.terms.values())) for each in decisions)


def test_runner_ups_say_what_the_harm_would_be_there() -> None:
    decisions = placed(lab(spread="none"), "DD", "01").decisions
    others = [
        option.terms["interference"] - each.terms["interference"] for each in decisions for option in each.runner_ups
    ]
    assert others
    assert min(others) > 10  # each would be beside the other


@pytest.mark.parametrize(
    ("profile", "letters"),
    [
        pytest.param(ASKED, "D   ", id="one pod with a class"),
        pytest.param(ASKED, "    ", id="none with a class"),
        pytest.param({"interference": "Off"}, "DDAA", id="off"),
        pytest.param({"interference": "Greedy"}, "DDAA", id="another choice"),
        pytest.param(ASKED | {"weights": {"interference": 0}}, "DDAA", id="no weight"),
    ],
)
def test_nothing_is_asked_where_it_does_not_matter(
    profile: dict[str, Any], letters: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sharing(lab(**profile), letters, monkeypatch) == [None]


def test_nothing_is_asked_where_no_sockets_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Lab([builders.node(name, cpu="64") for name in ("n0", "n1")], Profile.model_validate(ASKED))
    assert sharing(found, "DDAA", monkeypatch) == [None]


def test_work_is_bounded_and_a_plan_is_made_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_harm, "EFFORT", -1.0)
    monkeypatch.setattr(by_class, "CLASSES", {})  # what pods cost that are known by class alone is known at once
    found = lab(2, 2)
    asked: set[Kind] = set()
    cost = NodeCosts.cost

    def noted(costs: NodeCosts, kind: Kind) -> float:
        asked.add(kind)
        return cost(costs, kind)

    monkeypatch.setattr(NodeCosts, "cost", noted)
    outcome = placed(found, "DDAA", "0123")
    assert len(outcome.decisions) == 4
    assert [kind.residents for kind in asked] == [()], "only the nodes as they are"
    assert by_node(outcome, "DDAA") == ["AD", "AD"]


RESIDENTS = [Resident(Workload("", letter), 1000) for letter in InterferenceClass]
NUMBERS = st.integers(0, len(RESIDENTS) - 1)


@given(
    st.lists(NUMBERS, max_size=5), st.lists(NUMBERS, min_size=2, max_size=4), st.integers(1, 8), st.integers(1000, 9000)
)
def test_what_is_not_worked_out_any_more_counts_no_less(
    there: list[int], coming: list[int], sockets: int, room: int
) -> None:
    """Neither where pods judged one by one have had the node looked at nor where it is one of too many for that."""
    likely = [each.workload for each in RESIDENTS]
    now = Kind(Layout((room,) * sockets, pinned=True), tuple(sorted(RESIDENTS[number] for number in there)))
    harm, late = (
        SocketHarm(NodeCosts(LeastSlowdown(SlowdownModel(), likely)), [now], RESIDENTS, 10.0) for _ in range(2)
    )
    late._left = -1.0
    assert late(0, tuple(sorted(coming))) >= harm(0, tuple(sorted(coming))) - 1e-9


def test_what_was_said_once_is_said_again_when_the_work_is_done() -> None:
    costs = NodeCosts(LeastSlowdown(SlowdownModel(), [each.workload for each in RESIDENTS]))
    harm = SocketHarm(costs, [Kind(Layout((2000,) * 2, pinned=True), ())], RESIDENTS, 10.0)
    pods = (1, 2, 3, 3)
    said = harm(0, pods)
    harm._left = -1.0
    costs._pairings.clear()
    assert harm(0, pods) == said


def test_pods_that_are_there_count_beside_those_of_the_plan() -> None:
    found = lab()
    found.cache.update_pod(member("there", "w9", on="n0", cpu="1", labels={LABEL_INTERFERENCE_CLASS: "D"}))
    outcome = placed(found, "AD", "01")
    assert where(outcome)["p1"] == "n1"


def test_every_choice_of_a_profile_is_a_plan() -> None:
    for policy in InterferencePolicy:
        assert len(placed(lab(interference=policy), "DDAA", "0123").decisions) == 4

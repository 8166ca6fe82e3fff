"""Who sits where on a node, whom the rules separate, and sockets for pods without one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from berth.api.labels import ANNOTATION_SOCKET, LABEL_INTERFERENCE_CLASS
from berth.api.socketstatus import SocketStatus
from controllers.socketstatus.pods import SocketPod
from controllers.socketstatus.seats import newcomers
from tests.support.seats import node, pod, seats, status


def test_sockets_are_places_and_pods_that_somebody_else_has_assigned_are_held() -> None:
    found = seats(status({"a": 2, "b": 0}), node(pod("a", "A"), pod("b", "B", cpu="2")), "a")
    assert (found.numbers, found.capacities, found.why_not) == ((0, 2), (4000, 4000), "")
    assert [(each.place, each.size, each.held) for each in found.pods] == [(1, 1000, False), (0, 2000, True)]
    assert found.held() == ["default/b"]


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        pytest.param([pod("b", "")], "", id="without class"),
        pytest.param([pod("b", "D", deletionTimestamp="2026-01-31T12:00:00Z")], "", id="that is to end"),
        pytest.param([pod("b", "E")], "is no interference class", id="with a class that is none"),
        pytest.param(
            [pod("b", "A", labels={LABEL_INTERFERENCE_CLASS: "A", "category": "catB"})], "two classes", id="with two"
        ),
    ],
)
def test_pods_that_do_not_count(others: list[SocketPod], problem: str) -> None:
    found = seats(status({"a": 0, "b": 0}), node(pod("a", "D"), *others))
    assert ([each.name for each in found.assignments], found.absent) == (["a"], ())
    assert [problem in text for text in found.problems] == ([True] if problem else [])


def test_pods_that_are_not_there_and_sockets_that_are_not() -> None:
    stranger = pod("b", "D", uid="uid-c")
    found = seats(status({"a": 7, "gone": 0, "c": 0}), node(pod("a", "D"), stranger))
    assert ([each.name for each in found.absent], found.pods) == (["gone", "c"], ())
    [text] = found.problems
    assert text.startswith("SocketStatus n1: spec.assignments[0].socket: n1 has no socket 7, it has 0,2; pod default/a")


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        pytest.param(status({"a": 0}, true=["ObserveOnly"]), "ObserveOnly", id="nobody pins"),
        pytest.param(status({"a": 0}, true=["TopologyUnknown"]), "TopologyUnknown", id="nobody knows the sockets"),
        pytest.param(status({"a": 0}, cpus={}), "TopologyUnknown", id="no agent yet"),
        pytest.param(status({"a": 0}, unpinned="Unable"), "Unable", id="no agent any more"),
        pytest.param(status({"a": 0}, unpinned="NotInEffect"), "", id="a pod that is not pinned yet"),
    ],
)
def test_nodes_where_assignments_come_to_nothing(of: SocketStatus, reason: str) -> None:
    assert seats(of, node(pod("a", "D"))).why_not == reason


def test_violations_are_pairs_on_one_socket() -> None:
    letters = {"a": "A", "b": "B", "c": "C", "d": "D", "e": "D"}
    found = seats(
        status({"a": 0, "b": 0, "c": 0, "d": 2, "e": 2}), node(*(pod(name, letter) for name, letter in letters.items()))
    )
    assert found.pairs() == [(0, ("default/b (B)", "default/c (C)")), (2, ("default/d (D)", "default/e (D)"))]


class TestNewcomers:
    def chosen(self, *come: SocketPod, assigned: Mapping[str, int] | None = None) -> dict[str, int]:
        of, pods = status(assigned or {}), node(pod("a", "A"), pod("d", "D", cpu="3"), *come)
        found = newcomers(of, seats(of, pods), pods.of("n1").values(), LABEL_INTERFERENCE_CLASS)
        return {each.pod.metadata.name: each.socket for each in found}

    @pytest.mark.parametrize(
        ("come", "expected"),
        [
            pytest.param(pod("x", "D"), {"x": 0}, id="beside an A"),
            pytest.param(pod("x", "D", cpu="4"), {}, id="no room"),
            pytest.param(pod("x", ""), {}, id="without class"),
            pytest.param(pod("x", "D", annotations={ANNOTATION_SOCKET: "0"}), {}, id="placement's"),
            pytest.param(pod("x", "D", deletionTimestamp="2026-01-31T12:00:00Z"), {}, id="that is to end"),
        ],
    )
    def test_by_the_rules(self, come: SocketPod, expected: dict[str, int]) -> None:
        assert self.chosen(come, assigned={"a": 0, "d": 2}) == expected

    def test_each_counts_for_the_next_the_oldest_first(self) -> None:
        younger = pod("w", "D", creationTimestamp="2026-01-31T12:00:00Z")
        older = pod("x", "D", creationTimestamp="2026-01-30T12:00:00Z")
        assert self.chosen(younger, older, assigned={"a": 2, "d": 2}) == {"x": 0, "w": 0}

"""The published choices as plugins: Greedy, Sparing and SocketBased."""

from __future__ import annotations

from itertools import chain, combinations_with_replacement

import pytest

from berth.kube.objects import Pod
from berth.scheduling.configuration import Profile
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.plugins.interference_by_class import ByClass
from berth.scheduling.plugins.interference_greedy import InterferenceGreedy
from berth.scheduling.plugins.interference_socket_based import InterferenceSocketBased
from berth.scheduling.plugins.interference_sparing import InterferenceSparing
from tests.support import builders
from tests.support.placement import Lab
from tests.support.sockets import classed, status

PLUGINS = pytest.mark.parametrize("plugin", [InterferenceGreedy, InterferenceSparing, InterferenceSocketBased])
PLACES = pytest.mark.parametrize(
    ("plugin", "there", "letter", "node"),
    [
        pytest.param(InterferenceGreedy, "CA", "B", "n2", id="greedy: beside an A, not a C"),
        pytest.param(InterferenceSparing, "CA", "D", "n1", id="sparing: beside a C, not an A"),
        pytest.param(InterferenceSocketBased, "DB", "B", "n2", id="socket-based: beside its like, not a D"),
    ],
)


def lab(plugin: type[ByClass], there: str) -> Lab:
    """Two nodes of one socket for two pods; `there` are the classes of the pods on them, one each."""
    found = Lab([builders.node(name) for name in ("n1", "n2")], Profile(interference=plugin.policy))
    for name in ("n1", "n2"):
        found.cache.update_sockets(status(name, cpus=(8,)))
    for node, letter in zip(("n1", "n2"), there, strict=False):
        found.cache.update_pod(classed(f"there-{node}", letter, on=node, socket="0"))
    return found


def points(found: Lab, plugin: type[ByClass], pod: Pod) -> list[float] | None:
    cycle, result = found.planner._judge(pod, None, found.costs)
    values = plugin.of(found.profile).normalized(cycle, result.mask)
    return None if values is None else values.tolist()


@PLUGINS
def test_an_empty_node_is_best(plugin: type[ByClass]) -> None:
    found = points(lab(plugin, "A"), plugin, classed("p", "D"))
    assert found is not None
    assert found[0] < found[1] == 100.0


@PLACES
def test_it_places_by_the_classes_that_are_there(plugin: type[ByClass], there: str, letter: str, node: str) -> None:
    found = lab(plugin, there)
    (decision,) = found.planner.place_pod(classed("p", letter), None, found.costs).decisions
    assert decision.node == node
    seat = found.cache.state.sockets.seat(decision.pod.metadata.uid)
    assert seat is not None
    assert seat.socket == 0


@PLACES
def test_a_score_of_0_costs_as_much_as_a_slowdown_that_counts_1(
    plugin: type[ByClass], there: str, letter: str, node: str
) -> None:
    found = lab(plugin, there)
    cycle, result = found.planner._judge(classed("p", letter), None, found.costs)
    asked = plugin.of(found.profile)
    cost, score = asked.joint_cost(cycle, result.mask), asked.normalized(cycle, result.mask)
    assert cost is not None
    assert score is not None
    assert cost.tolist() == pytest.approx((10 * (100 - score) / 100).tolist())
    assert cost.argmin() == ("n1", "n2").index(node)


@pytest.mark.parametrize(
    ("true", "sockets"),
    [
        pytest.param(("ObserveOnly",), (None, None), id="nobody pins there"),
        pytest.param(("ObserveOnly",), ("0", "0"), id="nobody pins there any more"),
        pytest.param((), (None, "0"), id="pinned, and one that is on no socket"),
    ],
)
def test_a_socket_is_empty_only_if_nobody_can_be_on_it(true: tuple[str, ...], sockets: tuple[str | None, ...]) -> None:
    found = Lab([builders.node(name) for name in ("n1", "n2")], Profile(interference=InterferencePolicy.SOCKET_BASED))
    found.cache.update_sockets(status("n1", true=true))
    found.cache.update_sockets(status("n2"))
    for number, socket in enumerate(sockets):
        found.cache.update_pod(classed(f"there-{number}", "D", on="n1", socket=socket))
    for socket in ("0", "1"):
        found.cache.update_pod(classed(f"fits-{socket}", "A", on="n2", socket=socket))
    assert points(found, InterferenceSocketBased, classed("p", "B")) == [0.0, 70.0]


@PLUGINS
def test_nodes_that_are_alike_are_judged_once(plugin: type[ByClass], monkeypatch: pytest.MonkeyPatch) -> None:
    found, judged = lab(plugin, ""), []
    asked, judge = plugin.of(found.profile), plugin.judge
    monkeypatch.setattr(plugin, "judge", lambda *given: judged.append(given) or judge(*given))

    def look(letter: str) -> int:
        before = len(judged)
        cycle, result = found.planner._judge(classed("p", letter), None, found.costs)
        asked.normalized(cycle, result.mask)
        return len(judged) - before

    first = look("A")
    assert first <= 2, "nodes without pods, and those of which nothing is known"
    assert (look("A"), look("D"), look("D")) == (0, first, 0)
    found.cache.update_pod(classed("there", "C", on="n1", socket="0"))
    assert (look("A"), look("A"), look("D")) == (1, 0, 1)


@PLUGINS
def test_it_says_the_same_however_long_it_has_been_asked(plugin: type[ByClass]) -> None:
    """Kinds of nodes are numbered anew meanwhile, since most of them are of no node any more."""
    found = lab(plugin, "A")
    found.cache.update_node(builders.node("n2", cpu="64"))
    asked, column = plugin.of(found.profile), found.cache.state.sockets.arrangements
    for letters in chain.from_iterable(combinations_with_replacement("ABCD", count) for count in range(2, 6)):
        there = [classed(f"q{at}", letter, on="n2", socket="0") for at, letter in enumerate(letters)]
        for pod in there:
            found.cache.update_pod(pod)
        cycle, result = found.planner._judge(classed("p", "B"), None, found.costs)
        assert result.mask.all()
        said, anew = asked.normalized(cycle, result.mask), plugin.of(found.profile).normalized(cycle, result.mask)
        assert said is not None
        assert anew is not None
        assert said.tolist() == anew.tolist()
        for pod in there:
            found.cache.delete_pod(pod)
    assert column.numbering


@PLUGINS
@pytest.mark.parametrize("pod", [builders.pod("p", cpu="1"), classed("p", "E")], ids=["no class", "no such class"])
def test_no_opinion_on_pods_without_class(plugin: type[ByClass], pod: Pod) -> None:
    assert points(lab(plugin, "A"), plugin, pod) is None


@PLUGINS
def test_no_opinion_where_no_sockets_are_known(plugin: type[ByClass]) -> None:
    found = Lab([builders.node("n1")], Profile(interference=plugin.policy))
    assert points(found, plugin, classed("p", "A")) is None

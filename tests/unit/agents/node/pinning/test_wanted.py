"""Which pods are to have which CPUs, and what is said of assignments and labels that make no sense."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.node.pinning.division import Division
from agents.node.pinning.wanted import Patience, PodWish, Wanted, read_assignments, wanted
from agents.node.topology.machine import Machine
from berth.api.interference import InterferenceClass
from berth.kube.meta import ObjectMeta
from berth.kube.objects import Container, Pod, PodStatus, ResourceRequirements
from tests.support.sysfs import uniform

MACHINE = uniform(sockets=2, cores=2, threads=2)
LARGE = uniform(sockets=2, caches=2, cores=4, threads=2)
"""Sockets of two caches of 8 CPUs."""
CACHES = [each.cpus for each in LARGE.last_level_caches]
CLASS = "berth.dev/interference-class"
HASH = "ab12" * 8


def pod(name: str, stated: str | None = "A", *, phase: str = "Running", **annotations: str) -> Pod:
    labels = {} if stated is None else {CLASS: stated}
    metadata = ObjectMeta(name=name, namespace="shop", uid=f"u-{name}", labels=labels, annotations=annotations)
    return Pod(metadata=metadata, status=PodStatus(phase=phase))


def mirror(name: str, stated_hash: str, *, stated: str | None = "A") -> Pod:
    """A pod that says it is the mirror of a static pod."""
    annotations = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": stated_hash}
    return pod(name, stated, **annotations)


def assignment(name: str, socket: Any = 0, **changes: Any) -> dict[str, Any]:
    return {"uid": f"u-{name}", "namespace": "shop", "name": name, "socket": socket} | changes


def found(assignments: Any, *pods: Pod, **options: Any) -> Wanted:
    stated, problems = read_assignments({"assignments": assignments}, "n1")
    answer = wanted(stated, pods, MACHINE, node="n1", **options)
    return answer._replace(problems=(*problems, *answer.problems))


def test_an_assigned_pod_with_a_class_gets_its_socket() -> None:
    answer = found([assignment("web", 1)], pod("web", "B"))
    expected = PodWish(
        uid="u-web",
        runtime_uid="u-web",
        namespace="shop",
        name="web",
        interference_class=InterferenceClass.B,
        socket=1,
        cpus=frozenset({2, 3, 6, 7}),
        socket_cpus=frozenset({2, 3, 6, 7}),
        running=True,
    )
    assert answer == Wanted((expected,), ())


@pytest.mark.parametrize(
    ("stated", "profiled", "letter"),
    [
        pytest.param(None, "C", "C", id="of a profile"),
        pytest.param("B", "C", "B", id="the label counts first"),
        pytest.param("E", "C", "C", id="the label states none"),
        pytest.param(None, None, None, id="of neither"),
    ],
)
def test_a_class_is_the_labels_or_the_profiles_and_never_the_assignments(
    stated: str | None, profiled: str | None, letter: str | None
) -> None:
    by_profile = InterferenceClass(profiled) if profiled else None
    edited = assignment("web", 1, interferenceClass="D", workloadProfile="forged")
    answer = found([edited], pod("web", stated), profiled=lambda _: by_profile)
    (wish,) = answer.pods
    assert (wish.interference_class, bool(wish.cpus)) == (letter, letter is not None)
    left_alone = [problem for problem in answer.problems if "has no interference class" in str(problem)]
    assert bool(left_alone) == (letter is None)


def test_containers_that_run_together_are_counted() -> None:
    web = pod("web")
    web.spec.containers = [Container(), Container()]
    web.spec.init_containers = [Container(), Container(restart_policy="Always")]
    (wish,) = found([], web).pods
    assert wish.containers == 3


def test_memory_only_when_asked_for() -> None:
    (wish,) = found([assignment("web", 1)], pod("web"), memory=True).pods
    assert wish.mems == {1}


def test_a_static_pod_is_known_to_the_runtime_by_the_hash_of_its_configuration() -> None:
    (wish,) = found([assignment("web")], mirror("web", HASH)).pods
    assert (wish.uid, wish.runtime_uid) == ("u-web", HASH)
    (wish,) = found([assignment("web")], pod("web", **{"kubernetes.io/config.hash": HASH})).pods
    assert wish.runtime_uid == "u-web"
    (wish,) = found([assignment("web")], pod("web", **{"kubernetes.io/config.mirror": "x"})).pods
    assert wish.runtime_uid == "u-web"


@pytest.mark.parametrize(
    "stated",
    [
        pytest.param("u-db", id="the UID of another pod"),
        pytest.param("0c1d3c0f-3e2a-4f5b-9d6e-7a8b9c0d1e2f", id="a UID of nobody"),
        pytest.param("u-web", id="its own UID"),
        pytest.param("", id="nothing"),
        pytest.param(HASH.upper(), id="of another case"),
    ],
)
@pytest.mark.parametrize("classed", ["A", None], ids=["with a class", "without a class"])
def test_nobody_can_have_another_pod_pinned_by_calling_its_uid_a_hash(stated: str, classed: str | None) -> None:
    answer = found([assignment("web"), assignment("db")], mirror("web", stated), pod("db", classed))
    assert {wish.name: wish.runtime_uid for wish in answer.pods} == {"web": "u-web", "db": "u-db"}
    texts = [str(problem) for problem in answer.problems if problem.subject == "Pod shop/web"]
    text = f"Pod shop/web: metadata.annotations.kubernetes.io/config.hash: {stated!r} is no hash of a static pod's "
    assert texts == [f"{text}configuration; the pod is taken for none that is static; remove the annotation"]


@pytest.mark.parametrize("classed", ["A", None], ids=["with a class", "without a class"])
def test_a_static_pod_keeps_its_hash_from_one_that_comes_later_with_the_same(classed: str | None) -> None:
    static, later = mirror("web", HASH, stated=classed), mirror("also", HASH)
    static.metadata.creation_timestamp, later.metadata.creation_timestamp = (
        "2026-01-01T00:00:00Z",
        "2026-01-02T00:00:00Z",
    )
    for pods in ([static, later], [later, static]):
        answer = found([assignment("web"), assignment("also", 1)], *pods)
        assert {wish.name: wish.runtime_uid for wish in answer.pods} == {"web": HASH, "also": "u-also"}
        told = [str(problem) for problem in answer.problems if problem.subject == "Pod shop/also"]
        assert ["pod shop/web, which was made before, has the same hash" in text for text in told] == [True]


@pytest.mark.parametrize(
    ("phase", "deleted", "running"),
    [("Running", None, True), ("Pending", None, False), ("Running", "2026-01-01T00:00:00Z", False)],
    ids=["runs", "is to start", "is to end"],
)
def test_which_pods_run(phase: str, deleted: str | None, running: bool) -> None:
    web = pod("web", phase=phase)
    web.metadata.deletion_timestamp = deleted
    (wish,) = found([assignment("web")], web).pods
    assert wish.running is running


@pytest.mark.parametrize(
    ("assignments", "stated", "text"),
    [
        pytest.param(
            [assignment("web", 7)],
            "A",
            "SocketStatus n1: spec.assignments[0].socket: n1 has no socket 7, it has 0-1; pod shop/web is left alone; "
            "assign it to one of these",
            id="a socket that is not there",
        ),
        pytest.param(
            [assignment("web", uid="old")],
            "A",
            "SocketStatus n1: spec.assignments[0].uid: no pod shop/web with UID old on this node; the assignment "
            "counts for nothing; remove it, or give it the UID of the pod",
            id="a pod that is gone",
        ),
        pytest.param(
            [assignment("web") | {"name": "api"}],
            "A",
            "SocketStatus n1: spec.assignments[0].uid: no pod shop/api with UID u-web on this node; the assignment "
            "counts for nothing; remove it, or give it the UID of the pod",
            id="the UID of another pod",
        ),
        pytest.param(
            [assignment("web")],
            None,
            "SocketStatus n1: spec.assignments[0]: pod shop/web has no interference class and is left alone; give "
            f"it the label {CLASS}, or its workload a WorkloadProfile, or remove the assignment",
            id="a pod without a class",
        ),
        pytest.param(
            [assignment("web", -1)],
            "A",
            "SocketStatus n1: spec.assignments[0].socket: input should be greater than or equal to 0, found -1; raise "
            "the value to the minimum",
            id="a socket below 0",
        ),
        pytest.param(
            [{"uid": "u-web", "namespace": "shop", "name": "web"}],
            "A",
            "SocketStatus n1: spec.assignments[0].socket: field required; add the field",
            id="no socket",
        ),
        pytest.param(
            "web",
            "A",
            "SocketStatus n1: spec.assignments: must be a list; nothing is pinned by it; write a list",
            id="no list",
        ),
    ],
)
def test_what_makes_no_sense(assignments: Any, stated: str | None, text: str) -> None:
    answer = found(assignments, pod("web", stated))
    assert [str(problem) for problem in answer.problems] == [text]
    assert [wish.socket for wish in answer.pods] == [None]


def test_an_assignment_that_makes_no_sense_keeps_nobody_from_another() -> None:
    pods = [pod("a"), pod("b"), pod("c", None)]
    answer = found([assignment("a", 9), "?", assignment("b", 1), assignment("c"), assignment("gone")], *pods)
    assert {wish.name: wish.socket for wish in answer.pods} == {"a": None, "b": 1, "c": None}
    assert len(answer.problems) == 4


def test_a_pod_that_is_assigned_twice_stays_where_it_was_first() -> None:
    answer = found([assignment("web", 0), assignment("web", 1)], pod("web"))
    assert [wish.socket for wish in answer.pods] == [0]
    assert [str(problem) for problem in answer.problems] == [
        "SocketStatus n1: spec.assignments[1]: pod shop/web is assigned twice; the first counts; remove this one"
    ]


@pytest.mark.parametrize(
    ("stated", "text"),
    [
        pytest.param("X", '"X" is no interference class', id="unknown"),
        pytest.param("a", '"a" is no interference class', id="of another case"),
    ],
)
def test_a_label_that_is_no_class_is_told_without_an_assignment_too(stated: str, text: str) -> None:
    answer = found([], pod("web", stated))
    assert answer.pods == ()
    assert [problem.subject for problem in answer.problems] == ["Pod shop/web"]
    assert f"metadata.labels.{CLASS}: {text}" in str(answer.problems[0])


def test_another_label_may_hold_the_class() -> None:
    other = pod("web", None)
    other.metadata.labels["example.com/class"] = "C"
    (wish,) = found([assignment("web")], other, key="example.com/class").pods
    assert wish.interference_class is InterferenceClass.C


def test_a_pod_that_is_assigned_before_it_arrives_is_told_of_only_when_it_does_not_come() -> None:
    patience = Patience(30.0)
    wrong = found([assignment("gone"), assignment("web", 9)], pod("web")).problems
    assert [problem.may_pass for problem in wrong] == [True, False]
    assert patience.lasting(wrong, 100.0) == wrong[1:]
    assert patience.lasting(wrong, 129.9) == wrong[1:]
    assert patience.lasting(wrong, 130.0) == wrong
    assert patience.lasting((), 131.0) == ()
    assert patience.lasting(wrong, 132.0) == wrong[1:]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_are_nobodys_business(phase: str) -> None:
    assert found([assignment("web", 1)], pod("web", phase=phase)) == Wanted((), ())


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(ANYTHING, st.sampled_from([0, 1]))
def test_whatever_stands_there_the_pods_after_it_count(anything: Any, socket: int) -> None:
    answer = found([anything, assignment("web", socket)], pod("web"))
    assert [wish.socket for wish in answer.pods] == [socket]
    assert answer.problems
    assert all(problem.subject == "SocketStatus n1" for problem in answer.problems)


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 3)), max_size=8), st.sets(st.sampled_from("abcdef"))
)
def test_nobody_without_a_class_gets_cpus_and_nobody_gets_those_of_another_socket(
    assigned: list[tuple[str, int]], classed: set[str]
) -> None:
    pods = [pod(name, "A" if name in classed else None) for name in "abcde"]
    answer = found([assignment(name, socket) for name, socket in assigned], *pods)
    sockets = {socket.number: socket.cpus for socket in MACHINE.sockets}
    for wish in answer.pods:
        assert wish.cpus == (sockets[wish.socket] if wish.socket is not None else frozenset())
        assert not wish.cpus or wish.name in classed


def deal(*pods: Pod, machine: Machine = LARGE, **options: Any) -> list[tuple[int | None, int]]:
    """Cache and number of CPUs of pods on socket 1, in their order."""
    stated, _ = read_assignments({"assignments": [assignment(each.metadata.name, 1) for each in pods]}, "n1")
    answer = wanted(stated, pods, machine, node="n1", **options)
    assert all(wish.socket_cpus == machine.sockets[1].cpus for wish in answer.pods)
    return [(wish.cache, len(wish.cpus)) for wish in answer.pods]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, [(0, 8), (1, 8), (0, 8)], id="each to a cache"),
        pytest.param({"division": Division.SOCKET}, [(None, 16)] * 3, id="unless that is not wanted"),
        pytest.param({"before": {"u-a": CACHES[3], "u-b": CACHES[2]}}, [(1, 8), (0, 8), (0, 8)], id="where they were"),
        pytest.param(
            {"before": {"u-a": CACHES[1], "u-b": CACHES[0]}}, [(0, 8), (1, 8), (0, 8)], id="not on another socket"
        ),
    ],
)
def test_pods_of_a_socket_are_kept_apart_in_it(options: dict[str, Any], expected: list[tuple[int | None, int]]) -> None:
    assert deal(pod("a"), pod("b"), pod("c"), **options) == expected


def test_those_that_were_assigned_first_choose_first() -> None:
    times = {"a": "2026-01-31T12:00:03Z", "b": "2026-01-31T12:00:01Z", "c": None}
    stated, _ = read_assignments(
        {"assignments": [assignment(name, 1, time=time) for name, time in times.items()]}, "n1"
    )
    answer = wanted(stated, [pod(name) for name in times], LARGE, node="n1")
    assert {wish.name: wish.cache for wish in answer.pods} == {"c": 0, "b": 1, "a": 0}


@pytest.mark.parametrize("time", ["0000-01-01T00:00:00Z", "9999-12-31T23:00:00-05:00", "2026-01-31T12:00:00+99:00"])
def test_a_time_that_only_the_api_server_understands_was_long_ago(time: str) -> None:
    answer = found([assignment("web", 1, time=time)], pod("web"))
    assert answer.problems == ()
    assert [(wish.name, wish.socket) for wish in answer.pods] == [("web", 1)]


def test_pods_that_have_ended_or_have_no_class_have_no_part() -> None:
    pods = [pod("a", "D", phase="Succeeded"), pod("b", None), pod("c", "D")]
    stated, _ = read_assignments({"assignments": [assignment(name, 1) for name in "abc"]}, "n1")
    answer = wanted(stated, pods, LARGE, node="n1")
    assert [(wish.name, wish.cache, len(wish.cpus)) for wish in answer.pods] == [("b", None, 0), ("c", 0, 8)]


@pytest.mark.parametrize(
    ("allowed", "least", "expected"),
    [
        pytest.param({0, 1, 2, 3, 4}, 2000, {0, 1}, id="all of its part"),
        pytest.param({1, 2, 3}, 1000, {0, 1}, id="enough of its part"),
        pytest.param({1, 2, 3}, 1001, {0, 1, 2, 3}, id="too little of its part: all of its socket counts"),
        pytest.param({2, 3}, 0, {0, 1, 2, 3}, id="nothing of its part"),
        pytest.param({7}, 0, {0, 1, 2, 3}, id="nothing of either"),
    ],
)
def test_a_part_of_which_a_pod_may_not_have_enough_is_none(allowed: set[int], least: int, expected: set[int]) -> None:
    (wish,) = found([assignment("a", 0)], pod("a")).pods
    part = replace(wish, cpus=frozenset({0, 1}), socket_cpus=frozenset({0, 1, 2, 3}), least=least)
    assert part.within(frozenset(allowed)) == expected


def test_a_pod_with_a_part_says_how_much_of_it_it_has_to_have() -> None:
    resources = ResourceRequirements(requests={"cpu": "1"}, limits={"cpu": "3"})
    limited = pod("a", "D")
    limited.spec.containers.append(Container(name="c", resources=resources))
    stated, _ = read_assignments({"assignments": [assignment("a", 1)]}, "n1")
    assert [wish.least for wish in wanted(stated, [limited], LARGE, node="n1").pods] == [3000]

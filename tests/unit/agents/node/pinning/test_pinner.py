"""Rounds of pinning without a runtime, on directories that stand for cgroups: what is written is in effect at once.

With a kernel, a runtime and an API server they are in tests/integration/test_pinning_agent.py.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.node.pinning import cpuset
from agents.node.pinning.containers import Containers
from agents.node.pinning.cri import RuntimeClient
from agents.node.pinning.hierarchy import Hierarchy, Version
from agents.node.pinning.journal import Journal
from agents.node.pinning.pinner import LOOK_SECONDS, WRITE_SECONDS, Pinner
from agents.node.pinning.reconciler import Finding, Reconciler
from agents.node.pinning.restore import Leave
from agents.node.pinning.rounds import Round
from agents.node.pinning.untold import REST_SECONDS
from agents.node.pinning.wanted import PodWish
from agents.node.pinning.writer import CpusetWriter, Target, Way, Written
from berth.api.interference import InterferenceClass

ONE, OTHER = frozenset({0, 1}), frozenset({2, 3})


def wish(pod: str, cpus: frozenset[int] = ONE) -> PodWish:
    socket = None if not cpus else min(cpus) // 2
    uid = f"u-{pod}"
    return PodWish(
        uid=uid,
        runtime_uid=uid,
        namespace="shop",
        name=pod,
        interference_class=InterferenceClass.A,
        socket=socket,
        cpus=cpus,
    )


class Node:
    """Cgroups in a directory, and a pinner whose clock the test sets."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = 100.0
        self.journal = Journal.open(root / "journal")
        self.begin()

    def begin(self) -> None:
        """Have a pinner that knows nothing but what is in the journal, as of a process that has just started."""
        hierarchy = Hierarchy(self.root / "cpuset", Version.V1)
        runtime = RuntimeClient(self.root / "none.sock")
        self.pinner = Pinner(
            hierarchy,
            Containers(runtime, hierarchy),
            CpusetWriter(runtime, Version.V1),
            self.journal,
            Reconciler(limit=2),
            clock=lambda: self.now,
        )

    def container(self, pod: str, letter: str = "a", cpus: str = "0-3") -> Path:
        """Make the cgroup of a container of a pod."""
        cgroup = self.root / "cpuset" / "kubepods" / f"podu-{pod}" / (letter * 64)
        cgroup.mkdir(parents=True)
        for directory, stated in ((cgroup.parent, "0-3"), (cgroup, cpus)):
            for name, text in {"cpus": stated, "mems": "0"}.items():
                (directory / f"cpuset.{name}").write_text(text)
                effective = directory / f"cpuset.effective_{name}"
                if not effective.is_symlink():
                    effective.symlink_to(f"cpuset.{name}")
        (cgroup / "cgroup.procs").write_text("")
        return cgroup

    async def round(self, *wishes: PodWish, after: float = LOOK_SECONDS, observe: bool = False) -> Round:
        self.now += after
        return await self.pinner.round(wishes, observe=observe)


def cpus(cgroup: Path) -> str:
    return (cgroup / "cpuset.cpus").read_text()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.journal.close()


async def test_what_is_wanted_is_written_down_and_then_written(node: Node) -> None:
    web, side, other = node.container("web"), node.container("web", "b"), node.container("other", "c")
    found = await node.round(wish("web"), wish("other", frozenset()), wish("gone", OTHER))
    assert [cpus(cgroup) for cgroup in (web, side, other)] == ["0-1", "0-1", "0-3"]
    top = node.root / "cpuset"
    entries = {entry.cgroup: (entry.cpus, entry.written) for entry in node.journal.entries.values()}
    assert entries == {f"/{cgroup.relative_to(top)}": ("0-3", "0-1") for cgroup in (web, side)}
    states = {state.wish.name: state for state in found.pods}
    assert {name: state.pinned for name, state in states.items()} == {"web": True, "other": False, "gone": False}
    assert (states["web"].cpus, states["web"].effective_cpus) == (ONE, ONE)
    assert states["other"].effective_cpus == ONE | OTHER
    assert "none.sock" in found.silence
    assert not node.pinner.idle


async def test_what_is_wanted_no_more_is_given_back_and_waits_for_the_runtime(node: Node) -> None:
    web, other = node.container("web"), node.container("other", "b")
    await node.round(wish("web"), wish("other", OTHER))
    await node.round(wish("web", frozenset()))
    assert [cpus(cgroup) for cgroup in (web, other)] == ["0-3", "0-3"]
    for _ in range(2):
        found = await node.round()
        assert "has its CPUs back, and stays in the journal until the runtime" in found.problem
    assert not node.pinner.idle
    for cgroup in (web, other):
        shutil.rmtree(cgroup)
    await node.pinner.restore_all()
    assert node.pinner.idle
    assert await node.round() == Round()


async def test_a_pod_that_gets_more_cpus_has_its_containers_get_those_of_their_socket(node: Node) -> None:
    web = node.container("web")
    for cgroup in (web.parent, web):
        (cgroup / "cpuset.cpus").write_text("0,2")
    for expected in ("0", "0-1"):
        for _ in range(2):
            assert (await node.round(wish("web"))).pods[0].pinned
        assert cpus(web) == expected
        (web.parent / "cpuset.cpus").write_text("0-3")


@pytest.mark.parametrize(
    ("least", "expected"),
    [pytest.param(1000, "1", id="enough of its part"), pytest.param(2000, "1-3", id="too little of it")],
)
async def test_a_pod_whose_cgroup_lacks_a_cpu_of_its_part(node: Node, least: int, expected: str) -> None:
    web = node.container("web", cpus="1-3")
    (web.parent / "cpuset.cpus").write_text("1-3")
    part = dataclasses.replace(wish("web"), socket_cpus=ONE | OTHER, least=least)
    await node.pinner.round([part], observe=False)
    assert cpus(web) == expected


async def test_others_change_it_again_and_again(node: Node) -> None:
    web = node.container("web")
    await node.round(wish("web"))
    (web / "cpuset.cpus").write_text("3")
    unseen = await node.round(wish("web"), after=LOOK_SECONDS - 0.1)
    assert unseen.pods[0].pinned, "settled containers are looked at every four seconds"
    assert (await node.round(wish("web"), after=0.1)).pods[0].pinned
    assert cpus(web) == "0-1"
    (web / "cpuset.cpus").write_text("3")
    found = await node.round(wish("web"))
    (finding,) = found.pods[0].findings.values()
    assert finding == (Finding.GIVEN_UP, "given up after 2 writes: it has CPUs 3, not 0-1")
    assert cpus(web) == "3"


@pytest.mark.parametrize("foreign", [True, False], ids=["another agent pins", "told to observe"])
async def test_nothing_is_written_where_somebody_else_pins(node: Node, foreign: bool) -> None:
    web, theirs = node.container("web"), node.container("theirs", "b", "3" if foreign else "0-3")
    found = await node.round(wish("web"), wish("theirs"), observe=not foreign)
    assert (cpus(web), cpus(theirs)) == ("0-3", "3" if foreign else "0-3")
    expected_finding = Finding.PENDING if foreign else Finding.OBSERVED
    assert found.pods[0].findings == {"a" * 12: (expected_finding, f"it has CPUs 0-3{', not 0-1' if foreign else ''}")}
    expected = f"container {'b' * 12} of pod shop/theirs: somebody else has given it CPUs 3" if foreign else ""
    assert found.foreign == expected
    assert node.pinner.idle


async def test_without_room_for_the_journal_only_what_is_in_it_is_written(node: Node) -> None:
    web = node.container("web")
    await node.round(wish("web"))
    late = node.container("late", "b")
    (web / "cpuset.cpus").write_text("3")
    full = node.root / "journal" / "journal.new"
    full.symlink_to("/dev/full")
    found = await node.round(wish("web"), wish("late"))
    assert "no space left on device; nothing is pinned without a journal" in found.problem
    assert (cpus(web), cpus(late)) == ("0-1", "0-3")
    assert {state.wish.name: state.pinned for state in found.pods} == {"web": True, "late": False}
    (finding,) = found.pods[1].findings.values()
    assert "no space left on device" in finding[1]
    found = await node.round(wish("web"), wish("late"))  # what could not be written was removed, and made room
    assert (found.problem, cpus(late)) == ("", "0-1")


async def test_a_container_that_ends_is_nobodys_fault(node: Node) -> None:
    web, other = node.container("web"), node.container("other", "b")
    await node.round(wish("web"), wish("other"))
    shutil.rmtree(web)
    found = await node.round(wish("web"), wish("other"))
    assert [state.wish.name for state in found.pods if state.pinned] == ["other"]
    assert found.problem == ""
    await node.pinner.restore_all()
    assert cpus(other) == "0-3"
    left = [entry.pod for entry in node.journal.entries.values()]
    assert left == ["other"], "one that has ended is struck out, one that the runtime knows nothing of is not"


@pytest.mark.parametrize("whole_pod", [True, False], ids=["with its pod", "alone"])
@pytest.mark.parametrize("wanted", [True, False], ids=["when it is pinned", "when it is given back"])
async def test_a_container_may_end_at_any_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool, whole_pod: bool
) -> None:
    """Its cgroup is gone just before a file of a cgroup is opened, whichever: nobody else minds."""
    opened = last_of = 0
    doomed = tmp_path

    def ends(work: Callable[..., object]) -> Callable[..., object]:
        def then(*arguments: object) -> object:
            nonlocal opened
            opened += 1
            if opened == last_of:
                shutil.rmtree(doomed)
            return work(*arguments)

        return then

    while opened >= last_of:
        last_of += 1
        node = Node(tmp_path / f"{last_of}")
        web, other = node.container("web"), node.container("other", "b")
        doomed = web.parent if whole_pod else web
        if not wanted:
            await node.round(wish("web"), wish("other"))
        opened = 0
        with monkeypatch.context() as patched:
            for name in ("_text", "_write"):
                patched.setattr(cpuset, name, ends(getattr(cpuset, name)))
            found = await node.round(wish("web", ONE if wanted else frozenset()), wish("other"))
        assert (found.pods[1].pinned, cpus(other), found.foreign) == (True, "0-1", "")
        if opened >= last_of:
            found = await node.round(wish("web"), wish("other"))
            assert (found.problem, found.pods[0].findings, cpus(other)) == ("", {}, "0-1")
            await node.pinner.restore_all()
            assert ([entry.pod for entry in node.journal.entries.values()], cpus(other)) == (["other"], "0-3")
        node.journal.close()
    assert last_of > 10, "files were opened"


async def test_beside_another_agent_only_what_is_still_ours_is_given_back(node: Node) -> None:
    ours, changed = node.container("ours"), node.container("changed", "b")
    await node.round(wish("ours"), wish("changed"))
    (changed / "cpuset.cpus").write_text("2")
    await node.pinner.restore_all(leave=Leave.CHANGED)
    assert (cpus(ours), cpus(changed)) == ("0-3", "2")


class SlowRuntime(CpusetWriter):
    """Asks a runtime that takes its time for each container and then does what it is asked; keeps who was asked for."""

    def __init__(self, node: Node, seconds: float) -> None:
        super().__init__(RuntimeClient(node.root / "none.sock"), Version.V1)
        self.node, self.seconds = node, seconds
        self.asked: list[str] = []
        self.answers = True
        self.refuses = ""

    async def write(self, target: Target, *, ask: bool = True, hurry: bool = False) -> Written:
        if ask:
            self.node.now += self.seconds
            if target.cpus == ONE:
                self.asked.append(target.container[0])
        found = await super().write(target, ask=False)
        if target.container[0] in self.refuses:
            return found._replace(unsettled="it refuses", answered=True)
        return found._replace(way=Way.RUNTIME, unsettled="", answered=True) if ask and self.answers else found


@pytest.mark.parametrize(
    ("seconds", "asked"),
    [
        pytest.param(0.0, [6, 0, 0], id="a quick runtime is asked at once"),
        pytest.param(WRITE_SECONDS / 2, [2, 2, 2, 0], id="two in a round"),
        pytest.param(WRITE_SECONDS * 2, [1, 1, 1, 1, 1, 1, 0], id="one in a round at least"),
    ],
)
async def test_a_crowd_has_its_cpus_at_once_and_the_runtime_hears_of_them_by_and_by(
    node: Node, monkeypatch: pytest.MonkeyPatch, seconds: float, asked: list[int]
) -> None:
    monkeypatch.setattr(Containers, "silence", "")
    node.pinner._writer = writer = SlowRuntime(node, seconds)
    made = [node.container(letter, letter) for letter in "abcdef"]
    wishes = [wish(letter) for letter in "abcdef"]
    told: list[int] = []
    for _ in asked:
        found = await node.pinner.round(wishes, observe=False)
        told.append(len(writer.asked) - sum(told))
        assert {cpus(cgroup) for cgroup in made} == {"0-1"}
        assert all(state.pinned for state in found.pods)
    assert (told, sorted(writer.asked)) == (asked, list("abcdef"))


@pytest.mark.parametrize(
    ("change", "heard"),
    [
        pytest.param("none", 3, id="all in the end"),
        pytest.param("ends", 2, id="one that has ended"),
        pytest.param("unwanted", 2, id="one that is wanted no more"),
        pytest.param("silent", 1, id="none while the runtime is silent"),
        pytest.param("observed", 1, id="none once somebody else pins"),
    ],
)
async def test_the_runtime_hears_of_nothing_that_is_so_no_more(
    node: Node, monkeypatch: pytest.MonkeyPatch, change: str, heard: int
) -> None:
    monkeypatch.setattr(Containers, "silence", "")
    node.pinner._writer = writer = SlowRuntime(node, WRITE_SECONDS * 2)
    made = {letter: node.container(letter, letter) for letter in "abc"}
    wishes = [wish(letter) for letter in "abc"]
    await node.pinner.round(wishes, observe=False)
    last = next(letter for letter in "abc" if letter not in writer.asked)
    if change == "ends":
        shutil.rmtree(made[last])
    elif change == "silent":
        monkeypatch.setattr(Containers, "silence", "nobody answers")
    wishes = [wish(letter, frozenset() if (change, letter) == ("unwanted", last) else ONE) for letter in "abc"]
    for _ in range(3):
        await node.pinner.round(wishes, observe=change == "observed")
    assert len(writer.asked) == len(set(writer.asked)) == heard


async def test_what_a_runtime_did_not_answer_it_hears_once_it_does(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """One container is tried every few seconds, another each time: one may be without an answer for long."""
    monkeypatch.setattr(Containers, "silence", "")
    node.pinner._writer = writer = SlowRuntime(node, 0.0)
    wishes = [wish(letter) for letter in "abc" if node.container(letter, letter)]
    writer.answers = False
    for after, asked in ((0.0, 3), (0.0, 4), (0.0, 4), (REST_SECONDS, 5), (REST_SECONDS, 6), (REST_SECONDS, 7)):
        node.now += after
        found = await node.pinner.round(wishes, observe=False)
        assert len(writer.asked) == asked
        assert all(state.pinned for state in found.pods)
    assert sorted(writer.asked[3:6]) == list("abc")
    writer.asked.clear()
    writer.answers = True
    for _ in range(2):
        node.now += REST_SECONDS
        await node.pinner.round(wishes, observe=False)
    assert sorted(writer.asked) == list("abc")


@pytest.mark.parametrize("observe", [False, True], ids=["the runtime does not answer", "somebody else pins"])
async def test_while_the_runtime_cannot_be_told_rounds_are_as_seldom_as_without(
    node: Node, monkeypatch: pytest.MonkeyPatch, observe: bool
) -> None:
    monkeypatch.setattr(Containers, "silence", "")
    node.pinner._writer = writer = SlowRuntime(node, WRITE_SECONDS * 2)
    wishes = [wish(letter) for letter in "abc" if node.container(letter, letter)]
    writer.answers = observe
    for _ in range(2):
        await node.pinner.round(wishes, observe=False)
    rounds: list[float] = []
    of = Containers.of
    monkeypatch.setattr(Containers, "of", lambda *given: (rounds.append(node.now), of(*given))[1])
    for _ in range(16):
        node.now += 1.0
        await node.pinner.round(wishes, observe=observe)
    assert 2 <= len(rounds) <= 5


async def test_another_agent_tells_the_runtime_what_the_one_before_had_not(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Containers, "silence", "")
    node.pinner._writer = SlowRuntime(node, WRITE_SECONDS * 2)
    wishes = [wish(letter) for letter in "abc" if node.container(letter, letter)]
    await node.pinner.round(wishes, observe=False)
    node.begin()
    node.pinner._writer = writer = SlowRuntime(node, 0.0)
    await node.pinner.round(wishes, observe=False)
    assert sorted(writer.asked) == list("abc")


@pytest.mark.parametrize("refuses", ["", "ab"], ids=["it takes all", "it refuses two"])
async def test_a_crowd_that_is_wanted_no_more_keeps_nobody_waiting(
    node: Node, monkeypatch: pytest.MonkeyPatch, refuses: str
) -> None:
    """A slow runtime is asked about one in each round, and those about which it refuses keep no others from theirs."""
    monkeypatch.setattr(Containers, "silence", "")
    made = [node.container(letter, letter) for letter in "abcdef"]
    await node.round(*(wish(letter) for letter in "abcdef"))
    node.pinner._writer = writer = SlowRuntime(node, WRITE_SECONDS)
    writer.refuses = refuses
    for number in range(len(made)):
        begun = node.now
        await node.pinner.round((), observe=False)
        assert node.now - begun <= WRITE_SECONDS
        assert len(node.journal.entries) >= len(made) - number - 1
    assert {cpus(cgroup) for cgroup in made} == {"0-3"}
    assert sorted(entry.pod for entry in node.journal.entries.values()) == list(refuses)

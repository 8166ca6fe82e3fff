"""The component with a scripted API server on directories that stand for the machine: what is reported, and when.

With a real API server, kernel and runtime it is in tests/integration/test_pinning_agent.py.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents.node.pinning import agent, status_writer
from agents.node.pinning.agent import SILENCE_SECONDS, PinningAgent
from agents.node.pinning.journal import Entry, Journal
from agents.node.pinning.pinner import Pinner
from agents.node.pinning.rounds import Round
from agents.node.pinning.settings import PinningSettings
from agents.node.pinning.status_writer import LATE_SECONDS, REPEAT_SECONDS
from agents.node.pinning.wanted import PodWish
from agents.node.pinning.workplace import Workplace
from berth.kube.client import ApiClient
from berth.kube.events import EventRecorder
from berth.kube.precedence import Precedence
from berth.kube.reflector import Reflector
from berth.runtime.component import ComponentContext
from berth.runtime.health import Checks
from tests.support.api_server import Answer, ApiServer, Request, api_server, refusal
from tests.support.sysfs import CPU, uniform, write_sysfs

STATUS = "/apis/berth.dev/v1alpha1/socketstatuses/n1/status"
POD = {"uid": "u1", "namespace": "shop", "name": "web"}


class Plane:
    """An API server with a pod of class B and an assignment of it."""

    def __init__(self, *, refuses: int = 0) -> None:
        metadata = {**POD, "resourceVersion": "1", "labels": {"berth.dev/interference-class": "B"}}
        spec = {"assignments": [{**POD, "socket": 1}]}
        self.objects: dict[str, Any] = {
            "pods": [{"metadata": metadata}],
            "socketstatuses": [{"metadata": {"name": "n1", "resourceVersion": "1", "generation": 7}, "spec": spec}],
            "workloadprofiles": [],
        }
        self.refuses = refuses
        self.reports: list[dict[str, Any]] = []

    def __call__(self, request: Request) -> Answer:
        path, _, query = request.path.partition("?")
        if path == STATUS:
            document = json.loads(request.body)
            self.reports.append(document["status"])
            return refusal(403, "Forbidden") if len(self.reports) <= self.refuses else Answer(200, document)
        items = self.objects[path.rpartition("/")[2]]
        return Answer(200, b"" if "watch=true" in query else {"metadata": {"resourceVersion": "1"}, "items": items})


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Two sockets of one CPU each, cgroups with a container of the pod, and a kubelet that does not pin."""
    write_sysfs(tmp_path / "sys", uniform(sockets=2))
    cgroup = tmp_path / "cgroup" / "cpuset" / "kubepods" / "podu1" / ("a" * 64)
    cgroup.mkdir(parents=True)
    for directory in (cgroup, cgroup.parent, cgroup.parent.parent, cgroup.parent.parent.parent):
        for name, text in {"cpus": "0-1", "mems": "0"}.items():
            (directory / f"cpuset.{name}").write_text(text)
            # What is written is in effect at once.
            (directory / f"cpuset.effective_{name}").symlink_to(f"cpuset.{name}")
    (cgroup / "cgroup.procs").write_text("")
    (tmp_path / "kubelet").mkdir()
    (tmp_path / "kubelet" / "cpu_manager_state").write_text('{"policyName": "none"}')
    return tmp_path


def cpus(machine: Path) -> str:
    return (machine / "cgroup" / "cpuset" / "kubepods" / "podu1" / ("a" * 64) / "cpuset.cpus").read_text()


@asynccontextmanager
async def running(machine: Path, server: ApiServer, **options: Any) -> AsyncIterator[Checks]:
    """A component at work; its checks."""
    settings = PinningSettings(
        name="n1",
        interval=0.2,
        runtime=machine / "none.sock",
        cgroups=machine / "cgroup",
        sysfs=machine / "sys",
        kubelet=machine / "kubelet",
        journal=machine / "journal",
        **options,
    )
    connection = server.connection()
    async with ApiClient(connection) as client:
        recorder = EventRecorder(client, controller="test", instance="test", gives_way_to=Precedence())
        checks = Checks()
        context = ComponentContext(
            connection=connection, client=client, recorder=recorder, checks=checks, identity="test"
        )
        task = asyncio.create_task(PinningAgent(context, settings).run())
        try:
            yield checks
        finally:
            task.cancel()
            await asyncio.wait({task})


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30.0):
        while not condition():
            await asyncio.sleep(0.02)


def put(file: Path, text: str) -> None:
    """Have a file say something else at once: one that is written says nothing until it is."""
    new = file.with_name("new")
    new.write_text(text)
    new.replace(file)


def of_two_caches(machine: Path) -> None:
    """Have the machine be a socket of two caches."""
    write_sysfs(machine / "several", uniform(caches=2, cores=2))
    (machine / "sys").rename(machine / "before")
    (machine / "several").rename(machine / "sys")
    for each in (machine / "cgroup").rglob("cpuset.cpus"):
        each.write_text("0-3")


async def test_a_socket_is_not_divided_where_that_is_not_wanted(machine: Path) -> None:
    of_two_caches(machine)
    plane = Plane()
    plane.objects["socketstatuses"][0]["spec"]["assignments"][0]["socket"] = 0
    with api_server(plane) as server:
        async with running(machine, server, divide="socket"):
            await until(lambda: any(report["pinned"] == "1/1" for report in plane.reports))
    report = next(each for each in plane.reports if each["pinned"] == "1/1")
    (pod,), (socket,) = report["pods"], report["sockets"]
    assert (pod["cpus"], "cache" in pod, "pinnedCaches" in socket) == ("0-3", False, False)


@pytest.mark.parametrize(
    ("told", "cache", "expected"),
    [
        pytest.param({}, 0, "0-1", id="the first that is empty"),
        pytest.param({"socket": 0, "cache": 1, "cpus": "2-3"}, 1, "2-3", id="where the agent before has kept it"),
        pytest.param({"socket": 0, "cpus": "2-3"}, 0, "0-1", id="by an agent that divided nothing"),
        pytest.param({"socket": 1, "cache": 1, "cpus": "6-7"}, 0, "0-1", id="it was on another socket then"),
        pytest.param({"socket": 0, "cache": 200}, 0, "0-1", id="it says what makes no sense"),
    ],
)
async def test_a_pod_is_kept_to_a_cache_of_its_socket(
    machine: Path, told: dict[str, Any], cache: int, expected: str
) -> None:
    of_two_caches(machine)
    plane = Plane()
    (status,) = plane.objects["socketstatuses"]
    status["spec"]["assignments"][0]["socket"] = 0
    status["status"] = {"pods": [{**POD, **told}]}
    with api_server(plane) as server:
        async with running(machine, server):
            await until(lambda: any(report["pinned"] == "1/1" for report in plane.reports))
            assert cpus(machine) == expected
        assert cpus(machine) == "0-3"
    report = next(each for each in plane.reports if each["pinned"] == "1/1")
    (pod,) = report["pods"]
    assert (pod["socket"], pod["cache"], pod["cpus"]) == (0, cache, expected)
    assert [each["pinnedCaches"] for each in report["sockets"]] == [2]


async def test_a_pod_has_its_cache_again_where_sysfs_has_shown_none_for_a_while(machine: Path) -> None:
    """The kernel tells a CPU's caches until shortly before it is offline, and again shortly after it is online."""
    of_two_caches(machine)
    plane = Plane()
    (status,) = plane.objects["socketstatuses"]
    status["spec"]["assignments"][0]["socket"] = 0
    status["status"] = {"pods": [{**POD, "socket": 0, "cache": 1, "cpus": "2-3"}]}
    told, online = machine / "sys" / CPU / "cpu0" / "cache", machine / "sys" / CPU / "online"
    beside = machine / "sys" / CPU / "cpu1" / "cache" / "index2" / "shared_cpu_list"
    with api_server(plane) as server:
        async with running(machine, server):
            await until(lambda: cpus(machine) == "2-3")
            told.rename(machine / "away")
            put(beside, "1")
            put(online, "0,1-3")
            await until(lambda: cpus(machine) == "0-3")
            (machine / "away").rename(told)
            put(beside, "0-1")
            put(online, "0-3")
            await until(lambda: cpus(machine) not in ("0-3", ""))  # a file has nothing while it is written
            assert cpus(machine) == "2-3"


async def test_it_pins_reports_and_gives_back(machine: Path) -> None:
    plane = Plane()
    with api_server(plane) as server:
        async with running(machine, server) as checks:
            await until(lambda: any(report["pinned"] == "1/1" for report in plane.reports))
            assert cpus(machine) == "1"
            assert checks.ready() == {}
        assert cpus(machine) == "0-1"
    *_, told, last = plane.reports
    (pod,) = told["pods"]
    assert POD.items() <= pod.items()
    assert (pod["socket"], pod["cpus"], pod["effectiveCpus"]) == (1, "1", "1")
    assert told["observedGeneration"] == 7
    (pod,) = last["pods"]
    assert POD.items() <= pod.items()
    assert not {"socket", "cpus", "effectiveCpus", "since"} & pod.keys()
    (condition,) = [each for each in last["conditions"] if each["type"] == "Pinned"]
    assert (last["pinned"], condition["status"], condition["reason"]) == ("0/1", "False", "Unable")
    assert condition["message"].startswith("the agent of the node has ended, and its journal has containers left"), (
        "there is no runtime that would have heard of it"
    )


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        pytest.param("journal/journal.json", "Unable", id="a journal that cannot be read"),
        pytest.param("sys/devices/system/cpu/cpu1/topology/physical_package_id", "TopologyUnknown", id="no sockets"),
    ],
)
async def test_pods_count_while_nobody_can_pin_them(machine: Path, file: str, reason: str) -> None:
    (machine / file).parent.mkdir(exist_ok=True)
    (machine / file).write_text("torn")
    plane = Plane()
    with api_server(plane) as server:
        async with running(machine, server):
            await until(lambda: bool(plane.reports))
    report = plane.reports[0]
    pinned = next(each for each in report["conditions"] if each["type"] == "Pinned")
    assert (report["pinned"], pinned["status"], pinned["reason"]) == ("0/1", "False", reason)
    assert "spec.assignments" not in pinned["message"]


@pytest.mark.parametrize(
    ("namespace", "target", "found"),
    [
        pytest.param("shop", "web", "1", id="about its workload"),
        pytest.param("shop", "db", "0-1", id="about another workload"),
        pytest.param("theirs", "web", "0-1", id="of another namespace"),
    ],
)
async def test_a_pod_without_a_label_is_pinned_if_a_profile_covers_it(
    machine: Path, namespace: str, target: str, found: str
) -> None:
    plane = Plane()
    metadata = plane.objects["pods"][0]["metadata"]
    del metadata["labels"]
    metadata["ownerReferences"] = [{"kind": "StatefulSet", "name": "web", "uid": "s", "controller": True}]
    spec = {"targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": target}, "interferenceClass": "B"}
    profile = {"metadata": {"name": "web", "namespace": namespace, "resourceVersion": "1"}, "spec": spec}
    plane.objects["workloadprofiles"] = [profile]
    # Whoever may write assignments may write this as well; it is no leave to touch the pod.
    assigned = plane.objects["socketstatuses"][0]["spec"]["assignments"][0]
    assigned |= {"interferenceClass": "D", "workloadProfile": "web"}
    with api_server(plane) as server:
        async with running(machine, server):
            await until(lambda: bool(plane.reports))
            assert cpus(machine) == found
    (pod,) = plane.reports[-1]["pods"]
    assert pod.get("interferenceClass") == ("B" if found == "1" else None)


async def test_what_changes_nothing_on_the_node_is_nothing_new_to_a_round(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers: list[Callable[[], None]] = []
    asked: list[Sequence[PodWish]] = []
    add, do = Reflector.add_batch_handler, Pinner.round

    def added(self: Any, handler: Callable[[], None]) -> None:
        handlers.append(handler)
        add(self, handler)

    async def done(self: Pinner, wishes: Sequence[PodWish], *, observe: bool) -> Round:
        asked.append(wishes)
        # As for a bookmark, for the status that the agent has written, and for profiles of whatever workload.
        for handler in handlers:
            handler()
        return await do(self, wishes, observe=observe)

    monkeypatch.setattr(Reflector, "add_batch_handler", added)
    monkeypatch.setattr(Pinner, "round", done)
    with api_server(Plane()) as server:
        async with running(machine, server):
            await until(lambda: len(asked) >= 3)
    assert [each is asked[0] for each in asked] == [True] * len(asked)
    assert [wish.uid for wish in asked[0]] == ["u1"]


async def test_what_another_agent_pinned_is_given_back_though_that_one_ended_a_moment_ago(machine: Path) -> None:
    # As when one DaemonSet replaces another: this one waits for the journal, that one is killed, and this one ends.
    plane, before = Plane(), Journal.open(machine / "journal")
    before.add([Entry(container="a" * 64, cgroup=f"/kubepods/podu1/{'a' * 64}", cpus="0-1", mems="0", written="1")])
    cgroup = machine / "cgroup" / "cpuset" / "kubepods" / "podu1" / ("a" * 64)
    (cgroup / "cpuset.cpus").write_text("1")
    with api_server(plane) as server:
        async with running(machine, server):
            await until(lambda: any("Unable" in json.dumps(report) for report in plane.reports))
            assert cpus(machine) == "1"
            before.close()
    assert cpus(machine) == "0-1"


@pytest.mark.parametrize("lately", [True, False], ids=["which writes the status", "which says nothing"])
async def test_while_another_process_has_the_journal_one_of_them_writes_the_status(machine: Path, lately: bool) -> None:
    """As while one DaemonSet replaces another: two that each put right what the other wrote would do so for ever."""
    plane, other = Plane(), Journal.open(machine / "journal")
    written = datetime.now(UTC) - timedelta(seconds=0.0 if lately else REPEAT_SECONDS + LATE_SECONDS)
    plane.objects["socketstatuses"][0]["status"] = {"pinned": "1/1", "time": written.isoformat()}
    looks = 0

    async def look(self: Workplace, **_: bool) -> None:
        nonlocal looks
        await do(self, **_)
        looks += 1

    do = Workplace.look
    with api_server(plane) as server, pytest.MonkeyPatch.context() as patched:
        patched.setattr(Workplace, "look", look)
        async with running(machine, server):
            if lately:
                await until(lambda: looks >= 5)
                assert plane.reports == []
                other.close()
                await until(lambda: any(report["pinned"] == "1/1" for report in plane.reports))
            else:
                await until(lambda: "Unable" in json.dumps(plane.reports))
                other.close()


async def test_ages_are_those_of_what_it_said_last_though_the_watch_does_not_show_that(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are set with the clock once, and not back with what the watch still shows."""
    for module in (agent, status_writer):
        monkeypatch.setattr(module, "INTERVAL_SECONDS", 0.05)
    ahead = [timedelta()]
    monkeypatch.setattr(agent, "datetime", SimpleNamespace(now=lambda zone: datetime.now(zone) + ahead[-1]))
    plane = Plane()
    told = {**POD, "socket": 1, "cpus": "1", "since": "2026-01-01T00:00:00Z"}
    plane.objects["socketstatuses"][0]["status"] = {"time": "2026-01-02T00:00:00Z", "pods": [told]}

    def ages() -> list[str]:
        return [pod["since"] for report in plane.reports for pod in report["pods"]]

    with api_server(plane) as server:
        async with running(machine, server):
            await until(lambda: len(plane.reports) >= 2)
            ahead.append(timedelta(hours=1))
            await until(lambda: "2026-01-01T01:00:00Z" in ages())
            count = len(plane.reports)
            await until(lambda: len(plane.reports) >= count + 2)
            found = ages()
    assert [age for age, _ in itertools.groupby(found)] == ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"]


async def test_a_refused_status_is_written_again(machine: Path) -> None:
    plane = Plane(refuses=1)
    with api_server(plane) as server:
        async with running(machine, server):
            await until(lambda: len(plane.reports) >= 2)
            assert cpus(machine) == "1"


async def test_one_that_looks_no_more_is_unhealthy(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with api_server(Plane()) as server:
        async with running(machine, server) as checks:
            await until(lambda: cpus(machine) == "1")
            assert checks.health() == {}
            now = asyncio.get_running_loop().time()
            with monkeypatch.context() as patched:
                patched.setattr("agents.node.pinning.agent.time.monotonic", lambda: now + 2 * SILENCE_SECONDS)
                assert "nobody looked at cpusets for" in checks.health()["pinning"]

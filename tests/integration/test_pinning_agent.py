"""The agent pins real containers of a real containerd, and of a real CRI-O, by a SocketStatus of a real API server.

Left out: kubelets, whose part in it is the layout of cgroups and the labels of containers; and what goes wrong
(test_pinning_faults.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from agents.node.pinning.hierarchy import MOUNT
from hack.harness.cluster import eventually
from tests.support.containerd import containerd
from tests.support.cpusets import everything
from tests.support.crio import crio
from tests.support.pinning_fixtures import node
from tests.support.pinning_stand import SOCKETS, Stand, on, restore
from tests.support.running_runtime import RunningRuntime

__all__ = ["node"]

ALL = everything()
ONE, OTHER = SOCKETS


@pytest.fixture(scope="module", params=[containerd, crio], ids=["containerd", "crio"])
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRuntime]:
    with request.param(tmp_path_factory.mktemp("a")) as running:
        yield running


async def test_labelled_pods_get_the_cpus_of_their_socket_and_nobody_else_does(node: Stand) -> None:
    _, quiet = await node.pod("quiet", "A")
    _, loud = await node.pod("loud", containers=2, labels={"category": "catC"})
    _, plain = await node.pod("plain")
    _, waiting = await node.pod("waiting", "B")
    node.assign(quiet=0, loud=1, plain=1)
    agent = node.agent()
    on(quiet[0], ONE)
    on(loud[0], OTHER)
    on(loud[1], OTHER)
    told = node.condition("Pinned", "True", "has no interference class and is left alone")
    assert "2 pods assigned, each with the CPUs of its socket" in told
    assert plain[0].cpus == waiting[0].cpus == ALL
    status = node.status()
    pods = {pod["name"]: pod for pod in status["pods"]}
    assert pods.keys() == {"quiet", "loud", "plain", "waiting"}
    assert {"cpus", "since"} <= pods["loud"].keys()
    assert (pods["quiet"]["socket"], pods["loud"]["socket"], pods["loud"]["interferenceClass"]) == (0, 1, "C")
    assert not {"cpus", "since", "interferenceClass"} & pods["plain"].keys()
    assert {item["type"]: item["status"] for item in status["conditions"]} == {
        "Pinned": "True",
        "Drifted": "False",
        "ObserveOnly": "False",
        "TopologyUnknown": "False",
    }
    head, line = node.kubectl("get", "sst", node.node).splitlines()
    assert head.split() == ["NAME", "SOCKETS", "PINNED", "VIOLATIONS", "AGE"]
    assert line.split()[:4] == [node.node, "2", "2/3", "0"]
    assert agent.metric("berth_pinning_writes_total", way="runtime") == 3
    assert agent.metric("berth_pinning_pods", state="pinned") == 2


async def test_pods_come_move_lose_their_label_and_go(node: Stand) -> None:
    await node.pod("first", "D")
    node.assign(first=1)
    agent = node.agent()
    uid, (late,) = await node.pod("late", "D")
    node.assign(first=1, late=1)
    on(late, OTHER)
    eventually(lambda: node.status().get("violations"), accept=lambda found: found == 1, what="a violation")
    node.assign(first=1, late=0)
    on(late, ONE)
    eventually(lambda: node.status().get("violations"), accept=lambda found: found == 0, what="no violation")
    since = {pod["name"]: pod.get("since") for pod in node.status()["pods"]}
    assert all(since.values())
    node.kubectl("label", "pod", "late", "berth.dev/interference-class-")
    on(late, ALL)
    journal = node.directory / "journal" / "journal.json"
    eventually(lambda: late.id not in journal.read_text(), what="the container struck out")
    node.kubectl("label", "pod", "late", "berth.dev/interference-class=B")
    on(late, ONE)
    await node.daemon.end(uid)
    eventually(lambda: late.id not in journal.read_text(), what="the container that has ended struck out")
    node.kubectl("delete", "pod", "late", "--force", "--grace-period=0")
    eventually(
        lambda: [pod["name"] for pod in node.status()["pods"]], accept=lambda found: found == ["first"], what="pods"
    )
    assert agent.metric("berth_pinning_writes_total", way="failed") == 0


async def test_conditions_of_others_stay_theirs(node: Stand) -> None:
    node.agent()
    node.condition("Pinned", "True", "0 pods assigned")
    theirs = {
        "type": "Paired",
        "status": "True",
        "reason": "Paired",
        "message": "as they say",
        "lastTransitionTime": "2026-01-31T12:00:00Z",
    }
    patch = json.dumps([{"op": "add", "path": "/status/conditions/-", "value": theirs}])
    node.kubectl("patch", "sst", node.node, "--subresource=status", "--type=json", "-p", patch)
    await node.pod("late", "B")
    eventually(lambda: [pod["name"] for pod in node.status().get("pods", [])], what="a write of the agent")
    assert theirs in node.status()["conditions"]
    found = node.kubectl.get("sst", node.node, "--show-managed-fields")["metadata"]["managedFields"]
    owners = {each["manager"] for each in found if '"Paired' in json.dumps(each).replace("\\", "")}
    assert "berth-pinning" not in owners


async def test_a_container_that_starts_again_is_pinned_again(node: Stand) -> None:
    uid, (first,) = await node.pod("web", "B")
    node.assign(web=0)
    node.agent()
    on(first, ONE)
    await node.daemon.end(uid)
    _, (second,) = await node.pod("web", "B")
    assert second.id != first.id
    on(second, ONE)


async def test_a_process_that_changes_its_own_cpuset_is_brought_back(node: Stand) -> None:
    _, (web,) = await node.pod("web", "B")
    node.assign(web=0)
    agent = node.agent()
    node.condition("Pinned", "True", "1 pod assigned")

    def drifts() -> float:
        return agent.metric("berth_pinning_drifts_total")

    for cpus in (ALL, OTHER):
        before = drifts()

        def counted(cpus: frozenset[int] = cpus, before: float = before) -> bool:
            # Again where it is back and that was not the agent: the runtime does late what it was asked before.
            if web.cpus == ONE and drifts() == before:
                web.set_own_cpus(cpus)
            return drifts() > before

        eventually(counted, what="one counted")
        on(web, ONE)
    assert agent.metric("berth_pinning_given_up_containers") == 0


async def test_what_is_pinned_survives_sigkill_and_is_given_back_at_the_end(node: Stand) -> None:
    _, (web,) = await node.pod("web", "B")
    _, (other,) = await node.pod("other", "A")
    node.assign(web=0, other=1)
    agent = node.agent()
    on(web, ONE)
    on(other, OTHER)
    node.condition("Pinned", "True", "2 pods assigned")
    agent.kill()
    assert web.cpus == ONE
    node.assign(web=0)
    agent = node.agent()
    on(other, ALL)  # what is wanted no more is given back by the next agent
    assert web.cpus == ONE
    agent.stop()
    assert web.cpus == other.cpus == ALL
    assert '"entries":[]' in (node.directory / "journal" / "journal.json").read_text()
    assert agent.metric("berth_pinning_writes_total", way="failed") == 0
    node.condition("Pinned", "False", "the agent of the node has ended and given everything back")
    assert node.status()["pinned"] == "0/2"


async def test_what_a_dead_agent_has_left_is_given_back_by_hand(node: Stand) -> None:
    _, (web,) = await node.pod("web", "B")
    node.assign(web=1)
    # As in a pod, where the node's hierarchy is mounted in another place.
    mount = node.directory / "host"
    mount.symlink_to(MOUNT)
    agent = node.agent(cgroups=mount)
    on(web, OTHER)
    options = [f"--{each}={node.directory / each}" for each in ("journal", "kubelet")]
    options.append(f"--runtime={node.daemon.socket}")
    answer = restore(*options)
    assert answer.returncode == 2
    assert "another process pins by this journal; stop the agent of this node first" in answer.stderr
    agent.kill()
    mount.unlink()
    answer = restore(*options)
    expected = f"container c0 of pod {node.kubectl.namespace}/web: restored\n"
    assert (answer.returncode, answer.stdout) == (0, expected)
    assert web.cpus == ALL
    assert restore(*options).stdout == "nothing is pinned\n"

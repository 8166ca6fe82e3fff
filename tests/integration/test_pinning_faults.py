"""What goes wrong while pods are pinned is told with object, field and remedy, and keeps no other pod from its CPUs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.node.pinning.cri import RuntimeClient
from hack.harness.cluster import eventually
from tests.support.cpusets import everything
from tests.support.pinning_fixtures import daemon, node
from tests.support.pinning_stand import CPUSETS, SOCKETS, Stand, on, restore
from tests.support.scripted_runtime import PATIENCE

__all__ = ["daemon", "node"]

ALL = everything()
ONE, OTHER = SOCKETS


async def test_bad_input_is_told_and_everybody_else_is_pinned(node: Stand) -> None:
    _, (good,) = await node.pod("good", "A")
    _, (unknown,) = await node.pod("unknown", "X")
    _, (two,) = await node.pod("two", "A", labels={"category": "catB"})
    _, (far,) = await node.pod("far", "B")
    _, (confused,) = await node.pod("confused", "B")
    node.assign(good=1, unknown=0, two=0, far=7, gone=0, confused={"socket": 0, "name": "another"})
    # Assignments come before pods: those that are not there are told of later, after half a minute elsewhere.
    node.agent(constants={"agents.node.pinning.wanted.PATIENCE_SECONDS": 5.0})
    on(good, OTHER)
    where, pod = f"SocketStatus {node.node}: spec.assignments", f"{node.kubectl.namespace}/"
    message = node.condition("Pinned", "True", f"no pod {pod}gone with UID gone")
    assert "1 pod assigned, each with the CPUs of its socket" in message
    for text in (
        f"{where}[3].socket: {node.node} has no socket 7, it has 0-1; pod {pod}far is left alone; assign it to one",
        f"{where}[4].uid: no pod {pod}gone with UID gone on this node; the assignment counts for nothing; remove it",
        f"no pod {pod}another with UID",
        f'Pod {pod}unknown: metadata.labels.berth.dev/interference-class: "X" is no interference class',
        f"Pod {pod}two: metadata.labels.berth.dev/interference-class: A here and B in the label category are two",
    ):
        assert text in message
    assert {each.cpus for each in (unknown, two, far, confused)} == {ALL}
    # Every problem is logged once, not with every look.
    records = [record["problem"] for record in node.agents[0].records("not pinned")]
    assert len(records) == len(set(records)) >= 5


async def test_a_status_edited_by_hand_is_put_right_and_a_deleted_object_made_again(node: Stand) -> None:
    _, (web,) = await node.pod("web", "B")
    node.assign(web=0)
    agent = node.agent()
    node.condition("Pinned", "True", "1 pod assigned")
    node.kubectl("patch", "sst", node.node, "--subresource=status", "--type=merge", "-p", '{"status":{"pinned":"9/9"}}')
    eventually(lambda: node.status()["pinned"], accept=lambda found: found == "1/1", what="the status put right")
    written = agent.metric("berth_socketstatus_writes_total", outcome="written")
    node.kubectl("delete", "sst", node.node)
    on(web, ALL)  # nobody assigns it any more
    eventually(lambda: node.status().get("pinned"), accept=lambda found: found == "0/1", what="a new SocketStatus")
    owners = node.kubectl.get("sst", node.node)["metadata"]["ownerReferences"]
    assert [(owner["kind"], owner["name"]) for owner in owners] == [("Node", node.node)]
    assert agent.metric("berth_socketstatus_writes_total", outcome="written") <= written + 5


async def test_what_others_write_into_a_status_is_taken_out(node: Stand) -> None:
    await node.pod("web", "B")
    node.assign(web=0)
    agent = node.agent()
    node.condition("Pinned", "True", "1 pod assigned")
    own = node.status()
    sockets = [{"socket": number, "cpus": "0-99", "cpuCount": 100} for number in range(7, 70)]
    pods = [{"uid": f"u{number}", "namespace": "x", "name": "x", "socket": 7} for number in range(512)]
    for theirs in (
        {"sockets": [*own["sockets"], sockets[0]]},
        {"sockets": [own["sockets"][0] | {"coreCount": 1, "pinnedCaches": 9}, own["sockets"][1]]},
        {"sockets": sockets, "pods": pods},  # with the agent's there are more than there may be
    ):
        patch = json.dumps({"status": theirs})
        node.kubectl("patch", "sst", node.node, "--subresource=status", "--type=merge", "-p", patch)
        eventually(
            node.status,
            accept=lambda found: (
                found.get("sockets") == own["sockets"] and [pod["name"] for pod in found.get("pods", ())] == ["web"]
            ),
            what="the status put right",
            timeout=20,
        )
    written = agent.metric("berth_socketstatus_writes_total", outcome="written")
    assert written <= 8, "it is put right once, and not for ever"
    node.kubectl("delete", "pod", "web", "--force", "--grace-period=0")
    eventually(lambda: node.status().get("pods"), accept=lambda found: not found, what="nothing left of a pod")
    assert len(list(agent.records("what others have written into the status is taken out"))) == 2


async def test_an_agent_that_outlives_its_node_leaves_no_status_behind(node: Stand) -> None:
    agent = node.agent()
    node.condition("Pinned", "True", "0 pods assigned")
    # The garbage collector deletes what the node owned, maybe before kubectl does.
    node.kubectl("delete", "node,sst", "--ignore-not-found", node.node)
    told = "the agent says why it writes none"
    eventually(lambda: list(agent.records("SocketStatus not written")), accept=lambda found: len(found) > 1, what=told)
    node.kubectl.refused("get", "sst", node.node)
    node.kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.node}})
    node.condition("Pinned", "True", "0 pods assigned")
    (owner,) = node.kubectl.get("sst", node.node)["metadata"]["ownerReferences"]
    assert owner["uid"] == node.kubectl.get("node", node.node)["metadata"]["uid"]


async def test_where_the_kubelet_pins_nothing_is_written_until_it_stops(node: Stand) -> None:
    _, (web,) = await node.pod("web", "B")
    node.assign(web=0)
    node.kubelet("static")
    agent = node.agent()
    text = "the kubelet's CPU manager has the policy static and pins; set its cpuManagerPolicy to none"
    node.condition("ObserveOnly", "True", text)
    node.condition("Pinned", "False", "it has CPUs")
    assert web.cpus == ALL
    assert "cpus" not in node.status()["pods"][0]
    assert agent.metric("berth_pinning_observe_only") == 1
    node.kubelet("none")
    on(web, ONE)
    node.condition("ObserveOnly", "False")
    (node.directory / "kubelet" / "cpu_manager_state").unlink()
    node.condition("ObserveOnly", "True", "is not there, so that the kubelet may pin; name the directory")
    assert web.cpus == ONE


async def test_what_another_agent_has_pinned_is_left_alone(node: Stand) -> None:
    _, (theirs,) = await node.pod("theirs", "B")
    _, (web,) = await node.pod("web", "B")
    theirs.set_own_cpus(OTHER)
    node.assign(theirs=0, web=0)
    agent = node.agent()
    pod = f"container c0 of pod {node.kubectl.namespace}/theirs"
    node.condition("ObserveOnly", "True", f"{pod}: somebody else has given it CPUs")
    assert (theirs.cpus, web.cpus) == (OTHER, ALL)
    agent.stop()
    assert (theirs.cpus, web.cpus) == (OTHER, ALL)


async def test_what_was_pinned_before_another_agent_came_is_given_back(node: Stand) -> None:
    _, (web,) = await node.pod("web", "B")
    _, (stays,) = await node.pod("stays", "B")
    _, (theirs,) = await node.pod("theirs", "B")
    node.assign(web=0, stays=0)
    agent = node.agent()
    on(web, ONE)
    on(stays, ONE)
    theirs.set_own_cpus(OTHER)
    node.assign(web=0, stays=0, theirs=0)
    node.condition("ObserveOnly", "True", "/theirs: somebody else has given it CPUs")
    assert web.cpus == ONE
    node.assign(stays=0, theirs=0)
    on(web, ALL)
    agent.stop()
    assert (stays.cpus, theirs.cpus) == (ALL, OTHER)


async def test_what_a_hanging_runtime_sets_after_the_agent_has_ended_is_given_back_by_hand(node: Stand) -> None:
    _, (web,) = await node.pod("web", "B")
    node.assign(web=0)
    agent = node.agent()
    on(web, ONE)
    os.kill(node.daemon.pid, signal.SIGSTOP)
    try:
        agent.stop()
    finally:
        os.kill(node.daemon.pid, signal.SIGCONT)
    assert web.cpus == ALL
    # While the runtime says nothing, the container with the pod's namespaces is pinned and given back with the others.
    record = next(each for each in agent.records("CPUs not restored") if each["container"].startswith("container c0 "))
    assert "stays in the journal until the runtime, which may set again those that were pinned" in record["problem"]
    options = [f"--{each}={node.directory / each}" for each in ("journal", "kubelet")]
    options.append(f"--runtime={node.daemon.socket}")
    answer = restore(*options)
    assert answer.returncode == 0
    assert f"{record['container']}: restored\n" in answer.stdout
    client = RuntimeClient(node.daemon.socket, timeout=PATIENCE)
    await client.set_cpuset(web.id, "", "")  # an update of something else
    client.close()
    assert web.cpus == ALL
    assert restore(*options).stdout == "nothing is pinned\n"


async def test_who_changes_cpus_again_and_again_is_named_and_given_up(node: Stand) -> None:
    _, (web,) = await node.pod("web", "B")
    _, (calm,) = await node.pod("calm", "A")
    node.assign(web=0, calm=1)
    agent = node.agent(writes=3)
    node.condition("Pinned", "True", "2 pods assigned")

    def disturb() -> float:
        if web.cpus == ONE:
            web.set_own_cpus(ALL)
        return agent.metric("berth_pinning_given_up_containers")

    eventually(disturb, accept=lambda found: found == 1, what="one given up", timeout=120.0)
    text = f"Pod {node.kubectl.namespace}/web: container c0: given up after 3 writes: "
    node.condition("Drifted", "True", text)
    node.condition("Pinned", "False", text)
    assert (web.cpus, calm.cpus) == (ALL, OTHER)
    node.assign(web=1, calm=1)  # assigned anew it is tried again
    on(web, OTHER)
    node.condition("Drifted", "False")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A full disk of 16 KiB; removing ``filler`` makes room."""
    directory = tmp_path / "disk"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(directory)], check=True)
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


def fill(file: Path) -> None:
    """Write a file until the disk is full."""
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as stream:
        while stream.write(bytes(512)):
            pass


def can_only_be_read(mounted: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(mounted)], check=True)


async def test_with_a_full_disk_nothing_is_pinned_and_nothing_let_go(node: Stand, small_disk: Path) -> None:
    _, (early,) = await node.pod("early", "A")
    node.assign(early=1)
    node.agent(journal=small_disk)
    on(early, OTHER)
    filler = small_disk / "filler"
    fill(filler)
    _, (late,) = await node.pod("late", "A")
    node.assign(early=1, late=0)
    node.condition("Pinned", "False", "journal.json: no space left on device; nothing is pinned without a journal")
    assert (early.cpus, late.cpus) == (OTHER, ALL)
    early.set_own_cpus(ALL)
    on(early, OTHER)  # it is in the journal already
    filler.unlink()
    on(late, ONE)
    node.condition("Pinned", "True", "2 pods assigned")


async def test_what_was_pinned_before_a_disk_can_only_be_read_is_given_back(node: Stand, small_disk: Path) -> None:
    _, (web,) = await node.pod("web", "A")
    node.assign(web=1)
    agent = node.agent(journal=small_disk)
    on(web, OTHER)
    agent.kill()
    can_only_be_read(small_disk)
    options = [f"--journal={small_disk}", f"--kubelet={node.directory / 'kubelet'}", f"--runtime={node.daemon.socket}"]
    answer = restore(*options)
    assert web.cpus == ALL, answer
    assert answer.returncode != 0
    assert "has its CPUs back, and stays in the journal: " in answer.stdout
    assert "read-only file system; nothing is pinned without a journal" in answer.stdout
    node.agent(journal=small_disk)
    on(web, OTHER)  # it is in the journal still


async def test_without_the_runtime_cgroups_are_written_and_found_by_name(node: Stand) -> None:
    _, (web,) = await node.pod("web", "B")
    node.assign(web=0)
    agent = node.agent(runtime=node.directory / "none.sock")
    on(web, ONE)
    # The kernel has the set before the agent has counted it.
    eventually(
        lambda: agent.metric("berth_pinning_writes_total", way="direct"),
        accept=lambda count: count >= 1,
        what="counted",
    )
    node.assign()
    on(web, ALL)


async def test_a_runtime_that_hangs_holds_nothing_up_for_long(node: Stand) -> None:
    _, (web,) = await node.pod("web", "B")
    node.agent()
    node.condition("Pinned", "True", "0 pods assigned")
    os.kill(node.daemon.pid, signal.SIGSTOP)
    try:
        node.assign(web=1)
        on(web, OTHER)
    finally:
        os.kill(node.daemon.pid, signal.SIGCONT)


async def test_sockets_that_cannot_be_told_and_cgroups_that_are_not_there(node: Stand) -> None:
    _, (web,) = await node.pod("web", "B")
    node.assign(web=0)
    topology = node.directory / "sys" / "devices" / "system" / "cpu"
    file = topology / f"cpu{min(ALL)}" / "topology" / "physical_package_id"
    stated = file.read_text()
    file.unlink()
    node.agent(cgroups=node.directory / "none")
    text = f"devices/system/cpu/cpu{min(ALL)}/topology/physical_package_id: not there; nothing is pinned"
    node.condition("TopologyUnknown", "True", text)
    node.condition("Pinned", "False", "no hierarchy with the controller cpuset; mount the host's /sys/fs/cgroup there")
    assert web.cpus == ALL
    file.write_text(stated)
    (node.directory / "none").symlink_to(CPUSETS.root, target_is_directory=True)
    on(web, ONE)
    node.condition("TopologyUnknown", "False")

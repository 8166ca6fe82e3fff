"""Pinning on a real node: deploy/pinning as a kubelet runs it, with pods that a kubelet starts.

The node's two sockets are a copy of sysfs that divides the machine's CPUs, mounted instead of the machine's; the other
directories are the node's own.

Left out: who decides about sockets at first, and faults that need no kubelet (test_pinning_faults.py).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from agents.node.pinning.cpuset import read_cpuset, write_cpuset
from agents.node.pinning.hierarchy import find_hierarchy
from agents.node.pinning.status_writer import INTERVAL_SECONDS
from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.api.socketstatus import AGENT_CONDITIONS, API_VERSION, PLACEMENT_MANAGER
from hack.harness.assigned_pods import assignments, start
from hack.harness.cluster import eventually
from hack.harness.pinned_node import apply, daemon_set, manifests, prepare, rolled_out, running
from hack.harness.pinning_waits import seconds_until_pinned
from hack.localcluster import LocalCluster, Options
from tests.support.pinning_stand import SOCKETS, two_sockets
from tests.support.real_nodes import bring_back, processes_on, require_real_nodes
from tests.support.sysfs import write_sysfs

pytestmark = pytest.mark.timeout(600)

NODE = "node-1"
NAMESPACE = "berth-system"
TOGETHER = "agent-and-pinning"
PODS = 109
"""Pods that are pinned at once: with the agent's as many as a kubelet takes."""
CPUSETS = find_hierarchy()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the agents see of the machine's sockets, and their journal."""
    root = tmp_path_factory.mktemp("pinning")
    write_sysfs(root / "sys", two_sockets())
    return root


@pytest.fixture(scope="module")
def manifest(cluster: LocalCluster, directory: Path) -> str:
    """The DaemonSet."""
    return json.dumps(daemon_set(cluster, directory, directory / "sys"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A real node with Berth's kinds, rights and image."""
    root = tmp_path_factory.mktemp("p")
    require_real_nodes(root)
    with LocalCluster.start("pinning", root=root, options=Options(kubelets=1)) as started:
        prepare(started, root)
        yield started


@pytest.fixture
def pinning(cluster: LocalCluster, manifest: str) -> None:
    """The DaemonSet, rolled out."""
    cluster.kubectl("apply", "--server-side", "-f", "-", input=manifest)
    cluster.kubectl("-n", NAMESPACE, "rollout", "status", "daemonset/berth-pinning", "--timeout=180s", timeout=200)


@pytest.fixture
def pairing(cluster: LocalCluster) -> Iterator[None]:
    """The controller beside it, rolled out, and no pods of other tests."""
    cluster.kubectl("delete", "pods", "-lapp=pinned", "--force", "--grace-period=0", timeout=120)
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": controller(cluster)})
    cluster.kubectl("apply", "--server-side", "-f", "-", input=items)
    cluster.kubectl(
        "-n", NAMESPACE, "rollout", "status", "deployment/berth-socketstatus", "--timeout=180s", timeout=200
    )
    yield
    cluster.kubectl("delete", "-f", "-", input=items)


def controller(cluster: LocalCluster) -> list[dict[str, Any]]:
    """What is no DaemonSet of deploy/pinning."""
    return [item for item in manifests(cluster, "pinning") if item["kind"] != "DaemonSet"]


def has(cgroup: Path) -> frozenset[int]:
    """CPUs that a container has in effect."""
    return read_cpuset(cgroup, CPUSETS.version).effective_cpus


async def cgroups_of(cluster: LocalCluster, uids: set[str]) -> dict[str, Path]:
    """Cgroups of the containers of pods that run, by the pod's UID."""
    return {container.pod_uid: container.cgroup for container in await running(cluster, frozenset(uids))}


def settled(cluster: LocalCluster, uids: dict[str, str], sockets: dict[str, int], *, timeout: float = 120.0) -> None:
    """Wait until each pod has the CPUs of its socket."""

    def wrong() -> set[str]:
        found = asyncio.run(cgroups_of(cluster, {uids[name] for name in sockets}))
        right = {
            name
            for name, socket in sockets.items()
            if uids[name] in found and has(found[uids[name]]) == SOCKETS[socket]
        }
        return sockets.keys() - right

    eventually(wrong, accept=lambda names: not names, what="pods on their sockets", timeout=timeout)


def agent(cluster: LocalCluster) -> psutil.Process:
    """The agent's process."""
    (pid,) = processes_on(cluster, NODE, "run", "pinning")
    return psutil.Process(pid)


@pytest.mark.usefixtures("pinning")
def test_pods_are_pinned_and_the_agent_does_nothing_that_it_may_not(cluster: LocalCluster) -> None:
    sockets = {"one": 0, "two": 1}
    uids = start(cluster, sockets)
    settled(cluster, uids, sockets)
    line = eventually(
        lambda: cluster.kubectl("get", "sst", NODE, "--no-headers").stdout.split()[:4],
        accept=lambda found: found == [NODE, "2", "2/2", "0"],
        what="what kubectl get shows",
    )
    assert line
    (pod,) = json.loads(cluster.kubectl("-n", NAMESPACE, "get", "pods", "-ojson").stdout)["items"]
    log = cluster.kubectl("-n", NAMESPACE, "logs", pod["metadata"]["name"]).stdout
    lines = [json.loads(text) for text in log.splitlines()]
    assert [text for text in lines if text["level"] in ("warning", "error", "critical")] == []
    status = Path(f"/proc/{agent(cluster).pid}/status").read_text()
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    with pytest.raises(OSError, match="Read-only"):
        (Path(f"/proc/{agent(cluster).pid}/root") / "x").write_text("")


@pytest.mark.usefixtures("pinning")
def test_they_stay_pinned_when_agent_kubelet_and_containerd_start_again(cluster: LocalCluster) -> None:
    sockets = {"three": 0, "four": 1}
    uids = start(cluster, sockets)
    settled(cluster, uids, sockets)
    before = asyncio.run(cgroups_of(cluster, set(uids.values())))
    killed = agent(cluster)
    killed.send_signal(signal.SIGKILL)
    assert {has(before[uids[name]]) for name in sockets} == set(SOCKETS)
    eventually(
        lambda: [pid for pid in processes_on(cluster, NODE, "run", "pinning") if pid != killed.pid],
        what="another agent",
        timeout=60.0,
    )
    # A kubelet ends that is without its containerd for long.
    for parts in (("kubelet-1",), ("kubelet-1", "containerd-1")):
        for part in parts:
            cluster.stop_component(part)
        bring_back(cluster)
        settled(cluster, uids, sockets)
    assert asyncio.run(cgroups_of(cluster, set(uids.values()))) == before
    late = {"five": 1}
    uids = start(cluster, late)
    settled(cluster, uids, late)


@pytest.mark.usefixtures("pinning")
def test_a_container_that_starts_again_is_pinned_again(cluster: LocalCluster) -> None:
    sockets = {"six": 1}
    uids = start(cluster, sockets)
    settled(cluster, uids, sockets)
    (before,) = asyncio.run(cgroups_of(cluster, {uids["six"]})).values()
    (pid,) = (before / "cgroup.procs").read_text().split()
    os.kill(int(pid), signal.SIGKILL)
    eventually(
        lambda: asyncio.run(cgroups_of(cluster, {uids["six"]})),
        accept=lambda found: bool(found) and before not in found.values(),
        what="another container",
        timeout=60.0,
    )
    settled(cluster, uids, sockets)


@pytest.mark.usefixtures("pinning")
def test_a_process_that_changes_its_own_cpuset_is_brought_back(cluster: LocalCluster) -> None:
    sockets = {"seven": 0}
    uids = start(cluster, sockets)
    settled(cluster, uids, sockets)
    (cgroup,) = asyncio.run(cgroups_of(cluster, {uids["seven"]})).values()
    write_cpuset(cgroup, CPUSETS.version, SOCKETS[0] | SOCKETS[1], read_cpuset(cgroup, CPUSETS.version).effective_mems)
    assert has(cgroup) == SOCKETS[0] | SOCKETS[1]
    eventually(lambda: has(cgroup), accept=lambda found: found == SOCKETS[0], what="its socket again", timeout=90.0)


@pytest.mark.usefixtures("pinning")
def test_pods_are_pinned_as_long_as_label_or_profile_states_a_class(cluster: LocalCluster) -> None:
    sockets = {"eight": 0, "nine": 1}
    uids = start(cluster, sockets)
    settled(cluster, uids, sockets)
    cgroups = asyncio.run(cgroups_of(cluster, {uids[name] for name in sockets}))
    cluster.kubectl("label", "pod", *sockets, f"{LABEL_INTERFERENCE_CLASS}-")
    whole = SOCKETS[0] | SOCKETS[1]
    eventually(
        lambda: {has(cgroup) for cgroup in cgroups.values()},
        accept=lambda found: found == {whole},
        what="what was there before",
        timeout=90.0,
    )
    # Of a kind whose controller neither adopts pods nor lets go of them.
    cluster.kubectl("create", "configmap", "nine")
    owner = json.loads(cluster.kubectl("get", "configmap", "nine", "-ojson").stdout)["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nine", "uid": owner, "controller": True}
    patch = json.dumps({"metadata": {"ownerReferences": [reference]}})
    cluster.kubectl("patch", "pod", "nine", "--type=merge", "-p", patch)
    spec = {"targetRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "nine"}, "interferenceClass": "B"}
    metadata = {"name": "nine", "namespace": "default"}
    apply(cluster, [{"apiVersion": API_VERSION, "kind": "WorkloadProfile", "metadata": metadata, "spec": spec}])
    settled(cluster, uids, {"nine": 1})
    assert has(cgroups[uids["eight"]]) == whole
    cluster.kubectl("delete", "workloadprofile", "nine")
    eventually(lambda: has(cgroups[uids["nine"]]), accept=lambda found: found == whole, what="all CPUs", timeout=90.0)
    cluster.kubectl("patch", "pod", "nine", "--type=merge", "-p", '{"metadata": {"ownerReferences": null}}')
    cluster.kubectl("delete", "configmap", "nine")


@pytest.mark.usefixtures("pinning", "pairing")
def test_a_pod_that_goes_leaves_its_socket_to_another(cluster: LocalCluster) -> None:
    sockets = {"first": 0, "second": 0, "third": 1}
    uids = start(cluster, sockets, letter="D", manager=PLACEMENT_MANAGER)
    settled(cluster, uids, sockets)
    cluster.kubectl("delete", "pod", "third", "--force", "--grace-period=0")
    left = {uids[name] for name in ("first", "second")}
    eventually(
        lambda: {has(cgroup) for cgroup in asyncio.run(cgroups_of(cluster, left)).values()},
        accept=lambda seen: seen == set(SOCKETS),
        what="a socket for each",
        timeout=90.0,
    )
    assert {item["uid"] for item in assignments(cluster)} == left
    head, line = cluster.kubectl("get", "sst", NODE).stdout.splitlines()
    assert head.split() == ["NAME", "SOCKETS", "PINNED", "VIOLATIONS", "AGE"]
    print(line)


@pytest.mark.usefixtures("pinning")
def test_as_many_pods_as_a_kubelet_takes_and_what_that_costs(cluster: LocalCluster) -> None:
    """Figures are printed, not judged: they are those of the machine."""
    cluster.kubectl("delete", "pods", "-lapp=pinned", "--force", "--grace-period=0", timeout=120)
    sockets = {f"pod-{number}": number % 2 for number in range(PODS)}
    uids = start(cluster, sockets)
    wanted = {uids[name]: [SOCKETS[socket]] for name, socket in sockets.items()}
    waits = asyncio.run(seconds_until_pinned(cluster, wanted))
    ordered = sorted(waits.values())
    median, last = ordered[len(ordered) // 2], ordered[-1]
    print(f"{len(ordered)} containers pinned after p50 {median:.2f} s, p99 {ordered[-2]:.2f} s, most {last:.2f} s")
    settled(cluster, uids, sockets)
    process = agent(cluster)
    begun, used = time.monotonic(), sum(process.cpu_times()[:2])
    eventually(
        lambda: time.monotonic() - begun, accept=lambda passed: passed > 30.0, what="half a minute", timeout=40.0
    )
    share = (sum(process.cpu_times()[:2]) - used) / (time.monotonic() - begun)
    print(f"with {PODS} pinned pods: {share:.2%} of a core, {process.memory_info().rss / 2**20:.0f} MiB resident")


@pytest.mark.usefixtures("pinning")
def test_everything_is_given_back_when_the_daemonset_is_deleted(cluster: LocalCluster) -> None:
    items = assignments(cluster)
    found = asyncio.run(cgroups_of(cluster, {item["uid"] for item in items}))
    assert {has(cgroup) for cgroup in found.values()} == set(SOCKETS)
    cluster.kubectl("-n", NAMESPACE, "delete", "daemonset", "berth-pinning", "--timeout=60s", timeout=90)
    eventually(
        lambda: {has(cgroup) for cgroup in found.values()},
        accept=lambda seen: seen == {SOCKETS[0] | SOCKETS[1]},
        what="all CPUs for everybody",
        timeout=60.0,
    )


@pytest.fixture
def together(cluster: LocalCluster, directory: Path) -> Iterator[None]:
    """Both agents in one process, rolled out, instead of the other; its pod is ended as all are."""
    cluster.kubectl("-n", NAMESPACE, "delete", "daemonset", "berth-pinning", "--ignore-not-found", "--timeout=60s")
    cluster.kubectl("delete", "pods", "-lapp=pinned", "--force", "--grace-period=0", timeout=120)
    apply(cluster, in_one_process(cluster, directory))
    rolled_out(cluster, "daemonset/berth-node")
    yield
    cluster.kubectl("-n", NAMESPACE, "delete", "daemonset", "berth-node", "--ignore-not-found", "--timeout=60s")


def in_one_process(cluster: LocalCluster, directory: Path) -> list[dict[str, Any]]:
    """What deploy/agent-and-pinning has of a node."""
    others = [item for item in manifests(cluster, TOGETHER) if item["kind"] in ("ClusterRoleBinding", "Service")]
    return [*others, daemon_set(cluster, directory, directory / "sys", source=TOGETHER)]


@pytest.mark.usefixtures("together")
def test_both_agents_in_one_process_probe_pin_and_give_back(cluster: LocalCluster) -> None:
    sockets = {"both-one": 0, "both-two": 1}
    uids = start(cluster, sockets)
    settled(cluster, uids, sockets)
    found = asyncio.run(cgroups_of(cluster, set(uids.values())))
    eventually(
        lambda: cluster.kubectl("get", "probereports", NODE, "--ignore-not-found", "-ojsonpath={.status.time}").stdout,
        accept=bool,
        what="the report of the node",
        timeout=60.0,
    )
    (pid,) = processes_on(cluster, NODE, "run", "node", "pinning")
    process = psutil.Process(pid)
    (prober,) = process.children()
    resident = sum(each.memory_full_info().pss for each in (process, prober)) / 2**20
    print(f"agent and prober together: {resident:.0f} MiB, what they share counted once")
    assert "CapEff:\t0000000000000000" in Path(f"/proc/{pid}/status").read_text()
    (pod,) = json.loads(
        cluster.kubectl("-n", NAMESPACE, "get", "pods", "-lapp.kubernetes.io/component=node", "-ojson").stdout
    )["items"]
    log = cluster.kubectl("-n", NAMESPACE, "logs", pod["metadata"]["name"]).stdout
    told = [line for text in log.splitlines() if (line := json.loads(text))["level"] in ("error", "critical")]
    assert told == []
    cluster.kubectl("-n", NAMESPACE, "delete", "daemonset", "berth-node", "--timeout=60s", timeout=90)
    eventually(
        lambda: {has(cgroup) for cgroup in found.values()},
        accept=lambda seen: seen == {SOCKETS[0] | SOCKETS[1]},
        what="all CPUs for everybody",
        timeout=60.0,
    )


@pytest.mark.usefixtures("together")
def test_two_daemonsets_replace_the_one_and_it_replaces_them(cluster: LocalCluster, directory: Path) -> None:
    """Both are there for a while each time: one of them pins and says so, and the other takes its journal."""
    sockets = {"stays-one": 0, "stays-two": 1}
    uids = start(cluster, sockets)
    settled(cluster, uids, sockets)
    before = asyncio.run(cgroups_of(cluster, set(uids.values())))
    alone = daemon_set(cluster, directory, directory / "sys")
    one = in_one_process(cluster, directory)
    for new, name, old, command in (
        ([alone], "berth-pinning", "berth-node", ("run", "node", "pinning")),
        (one, "berth-node", "berth-pinning", ("run", "pinning")),
    ):
        (pid,) = processes_on(cluster, NODE, *command)
        ends = psutil.Process(pid)
        apply(cluster, new)
        rolled_out(cluster, f"daemonset/{name}")
        said: set[tuple[str, str]] = set()
        begun = time.monotonic()
        while time.monotonic() - begun < 3 * INTERVAL_SECONDS:
            said |= conditions(cluster)
        assert {(kind, status) for kind, status in said if kind in AGENT_CONDITIONS and kind != "Drifted"} == {
            ("Pinned", "True"),
            ("ObserveOnly", "False"),
            ("TopologyUnknown", "False"),
        }
        cluster.kubectl("-n", NAMESPACE, "delete", "daemonset", old, "--timeout=60s", timeout=90)
        ends.wait(timeout=60.0)
        begun = time.monotonic()
        settled(cluster, uids, sockets)
        print(f"pinned again {time.monotonic() - begun:.1f} s after {old} has ended")
        eventually(lambda: conditions(cluster), accept=lambda found: ("Pinned", "True") in found, what="the status")
    assert asyncio.run(cgroups_of(cluster, set(uids.values()))) == before
    assert {entry["pod"] for entry in journal(directory)} == set(sockets)


def journal(directory: Path) -> list[dict[str, Any]]:
    """Entries of the agents' journal."""
    entries: list[dict[str, Any]] = json.loads((directory / "journal" / "journal.json").read_text())["entries"]
    return entries


def conditions(cluster: LocalCluster) -> set[tuple[str, str]]:
    """What the conditions of the node's SocketStatus are now."""
    found = json.loads(cluster.kubectl("get", "sst", NODE, "-ojson").stdout)["status"]["conditions"]
    return {(each["type"], each["status"]) for each in found}

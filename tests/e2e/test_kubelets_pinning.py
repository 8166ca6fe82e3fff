"""Pinning on a real node: deploy/pinning as a kubelet runs it, with pods that a kubelet starts.

The node's two sockets are a copy of sysfs that divides the machine's CPUs, mounted instead of the machine's; the other
directories are the node's own. What a decision writes at once, the socket of a pod that is about to start, is written
while a scheduling gate holds the pod.

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
import yaml

from agents.node.pinning.cgroup_paths import container_path
from agents.node.pinning.cpuset import read_cpuset
from agents.node.pinning.cri import RuntimeClient
from agents.node.pinning.hierarchy import find_hierarchy
from berth.api.socketstatus import API_VERSION, KIND, PLACEMENT_MANAGER
from hack.harness.cluster import REPOSITORY, eventually
from hack.localcluster import LocalCluster, Options
from hack.localcluster.kubelets import berth_image
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE
from tests.support.pinning_stand import SOCKETS, two_sockets
from tests.support.real_nodes import bring_back, processes_on, real_node, require_real_nodes
from tests.support.sysfs import write_sysfs

pytestmark = pytest.mark.timeout(600)

NODE = "node-1"
NAMESPACE = "berth-system"
PODS = 100
"""Pods of which it is measured how soon they are pinned; with Berth's a kubelet takes 110."""
CPUSETS = find_hierarchy()


def rendered(cluster: LocalCluster) -> list[dict[str, Any]]:
    """deploy/pinning."""
    return list(yaml.safe_load_all(cluster.kubectl("kustomize", str(REPOSITORY / "deploy" / "pinning")).stdout))


def daemon_set(cluster: LocalCluster, root: Path) -> str:
    """deploy/pinning with the directories of the node instead of a machine's."""
    node = real_node(cluster, NODE)
    directories = {"runtime": node.directory, "kubelet": node.directory / "kubelet", "journal": root / "journal"}
    (document,) = (item for item in rendered(cluster) if item["kind"] == "DaemonSet")
    spec = document["spec"]["template"]["spec"]
    for volume in spec["volumes"]:
        volume["hostPath"]["path"] = str(directories.get(volume["name"], volume["hostPath"]["path"]))
    spec["volumes"].append({"name": "sysfs", "hostPath": {"path": str(root / "sys")}})
    (container,) = spec["containers"]
    for mount in container["volumeMounts"]:
        # Machines without systemd have a root that is mounted privately, from which nothing is propagated.
        mount.pop("mountPropagation", None)
    container["args"] += ["--pinning-runtime=/run/containerd/containerd.sock", "--pinning-sysfs=/host/sys"]
    container["volumeMounts"].append({"name": "sysfs", "mountPath": "/host/sys", "readOnly": True})
    return json.dumps(document)


@pytest.fixture(scope="module")
def manifest(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The DaemonSet."""
    root = tmp_path_factory.mktemp("pinning")
    write_sysfs(root / "sys", two_sockets())
    return daemon_set(cluster, root)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A real node with Berth's kinds, rights and image."""
    root = tmp_path_factory.mktemp("p")
    require_real_nodes(root)
    with LocalCluster.start("pinning", root=root, options=Options(kubelets=1)) as started:
        archive = root / "berth.tar"
        berth_image.write(archive, berth_image.TAG)
        started.load_images([archive])
        archive.unlink()
        for directory in (REPOSITORY / "crds", REPOSITORY / "deploy" / "rbac"):
            started.kubectl("apply", "--server-side", "-f", str(directory))
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
    return [item for item in rendered(cluster) if item["kind"] != "DaemonSet"]


def start(
    cluster: LocalCluster, names: dict[str, int], *, letter: str = "B", manager: str = "kubectl"
) -> dict[str, str]:
    """Make pods of a class that are assigned by a field manager before they may start; their UIDs by name."""
    items = []
    for name in names:
        metadata = {"name": name, "labels": {"berth.dev/interference-class": letter, "app": "pinned"}}
        container = {"name": "main", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}
        spec = {"containers": [container], "schedulingGates": [{"name": "e2e"}], "terminationGracePeriodSeconds": 0}
        spec["tolerations"] = [{"operator": "Exists"}]
        items.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    cluster.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    found = json.loads(cluster.kubectl("get", "pods", "-lapp=pinned", "-ojson").stdout)["items"]
    uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in found}
    sockets = {item["name"]: item["socket"] for item in assignments(cluster)} | names
    items = [{"uid": uids[name], "namespace": "default", "name": name, "socket": sockets[name]} for name in uids]
    assign(cluster, items, manager)
    gates = json.dumps([{"op": "remove", "path": "/spec/schedulingGates"}])
    api = cluster.api()
    for name in names:
        api.raw(
            "PATCH",
            f"/api/v1/namespaces/default/pods/{name}",
            json.loads(gates),
            content_type="application/json-patch+json",
        )
    api.close()
    return uids


def assignments(cluster: LocalCluster) -> list[dict[str, Any]]:
    """What the node's SocketStatus asks for."""
    found = cluster.kubectl("get", "sst", NODE, "-ojson", check=False).stdout
    spec: list[dict[str, Any]] = json.loads(found or "{}").get("spec", {}).get("assignments", [])
    return spec


def assign(cluster: LocalCluster, items: list[dict[str, Any]], manager: str = "kubectl") -> None:
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": NODE}, "spec": {"assignments": items}}
    options = ("--server-side", "--force-conflicts", f"--field-manager={manager}")
    cluster.kubectl("apply", *options, "-f", "-", input=json.dumps(document))


def has(cgroup: Path) -> frozenset[int]:
    """CPUs that a container has in effect."""
    return read_cpuset(cgroup, CPUSETS.version).effective_cpus


async def cgroups_of(cluster: LocalCluster, uids: set[str]) -> dict[str, Path]:
    """Cgroups of the containers of pods that run, by the pod's UID."""
    client = RuntimeClient(real_node(cluster, NODE).socket, timeout=10.0)
    try:
        found = [container for container in await client.containers() if container.pod_uid in uids]
        places = {container.pod_uid: await client.place(container.id) for container in found}
        return {uid: CPUSETS.cgroup(container_path(place.cgroups_path)) for uid, place in places.items()}
    finally:
        client.close()


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
def test_a_hundred_pods_and_what_that_costs(cluster: LocalCluster) -> None:
    """Figures are printed, not judged: they are those of the machine."""
    cluster.kubectl("delete", "pods", "-lapp=pinned", "--force", "--grace-period=0", timeout=120)
    sockets = {f"pod-{number}": number % 2 for number in range(PODS)}
    uids = start(cluster, sockets)
    waits = asyncio.run(watch(cluster, {uids[name]: SOCKETS[socket] for name, socket in sockets.items()}))
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


async def watch(cluster: LocalCluster, wanted: dict[str, frozenset[int]]) -> dict[str, float]:
    """Seconds from when each pod's container was first seen running until it had its CPUs, seen every 20 ms or so."""
    client = RuntimeClient(real_node(cluster, NODE).socket, timeout=10.0)
    seen: dict[str, tuple[float, Path]] = {}
    pinned: dict[str, float] = {}
    async with asyncio.timeout(400):
        while len(pinned) < len(wanted):
            for container in await client.containers():
                if container.pod_uid in wanted and container.pod_uid not in seen:
                    place = await client.place(container.id)
                    seen[container.pod_uid] = (time.monotonic(), CPUSETS.cgroup(container_path(place.cgroups_path)))
            for uid, (begun, cgroup) in seen.items():
                if uid not in pinned and has(cgroup) == wanted[uid]:
                    pinned[uid] = time.monotonic() - begun
            await asyncio.sleep(0.02)
    client.close()
    return pinned


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

"""``python -m bench.probing.agent``: memory and CPU of an agent, as in a pod, beside a real API server; as root."""

from __future__ import annotations

import argparse
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from bench.probing.places import PORT, veth
from hack.harness.cluster import install_crds
from hack.localcluster import LocalCluster

NAMESPACE = "berth-system"
OWN = "10.213.0.1"
"""The agent's address; :func:`bench.probing.places.veth` has its peers on the other side."""
_IN_POD = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
cp "$1"/* /run/secrets/kubernetes.io/serviceaccount
shift
exec "$@"
"""


def prepare(cluster: LocalCluster, peers: list[str]) -> None:
    """Make a node and an EndpointSlice for the agent and each of its peers, which are in two zones."""
    api = cluster.api()
    api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for number, address in enumerate([OWN, *peers]):
        api.request("POST", "/api/v1/nodes", {"metadata": {"name": f"node-{number}"}})
        zone = "a" if number % 2 else "b"
        item = {
            "metadata": {"name": f"node-{number}", "labels": {"kubernetes.io/service-name": "berth-node"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "nodeName": f"node-{number}", "zone": zone}],
            "ports": [{"name": "probe", "port": PORT}],
        }
        api.request("POST", f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices", item)
    api.close()


def start(cluster: LocalCluster, directory: Path, *, pinning: bool) -> subprocess.Popen[bytes]:
    """Start the agent of node-0 with what the kubelet gives a pod, in a mount namespace of its own.

    Args:
        cluster: where it works.
        directory: for its credentials and its journal.
        pinning: whether it pins as well, in the same process.
    """
    for name, text in (
        ("token", cluster.token),
        ("ca.crt", cluster.ca_file.read_text()),
        ("namespace", NAMESPACE),
    ):
        (directory / name).write_text(text)
    server = urlsplit(cluster.server)
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    environment |= {"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)}
    run = [sys.executable, "-c", "from berth.cli.entry import main; main()", "run", "node", "--node-name", "node-0"]
    run += ["--health-port", "0", "--health-host", "127.0.0.1", "--log-level", "warning", "--node-address", OWN]
    if pinning:
        run += ["pinning", "--pinning-name", "node-0", "--pinning-journal", str(directory / "journal")]
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _IN_POD, "sh", str(directory), *run]
    return subprocess.Popen(command, env=environment)


def main() -> None:
    """Measure, print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bench.probing.agent", description=__doc__)
    parser.add_argument("--peers", type=int, default=10, help="peers (default: 10)")
    parser.add_argument("--warm-up", type=float, default=20.0, help="seconds before measuring (default: 20)")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds that are measured (default: 60)")
    parser.add_argument("--pinning", action="store_true", help="pinning too, in the same process")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    print("| process | CPU % of a core | RSS MiB | of it shared with others |")
    print("|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory() as directory,
        LocalCluster.start(f"probing-{os.getpid()}", kwok=False, die_with_parent=True) as cluster,
        veth(options.peers) as peers,
    ):
        install_crds(cluster)
        prepare(cluster, peers)
        with start(cluster, Path(directory), pinning=options.pinning) as process:
            time.sleep(options.warm_up)
            agent = psutil.Process(process.pid)
            both = {"agent": agent, "its prober": agent.children()[0]}
            before = {name: sum(one.cpu_times()[:2]) for name, one in both.items()}
            time.sleep(options.seconds)
            for name, one in both.items():
                share = 100 * (sum(one.cpu_times()[:2]) - before[name]) / options.seconds
                memory = one.memory_full_info()
                figures = f"{share:.2f} | {memory.rss / 2**20:.0f} | {memory.shared / 2**20:.0f}"
                print(f"| {name} | {figures} |", flush=True)
            report = cluster.api().request("GET", "/apis/berth.dev/v1alpha1/probereports/node-0")
            print(f"\n{report['status']['peerCount']} peers reported")
            process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    main()

"""``make demo``: Berth's main job on a real control plane, from nothing to a placed application.

Starts the local cluster (or uses the one of a kubeconfig), lets kube-scheduler place Online Boutique, then
Berth, and shows orders, weights, places and the cost of both placements. The cluster and the controllers stay
up; ``make demo-down`` stops them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from berth.api.networktopology import API_VERSION, KIND, NetworkTopology
from berth.kube.objects import CustomObject, Node, Pod
from berth.network.costs import read_costs
from hack.harness.observe import Judgement, judge
from hack.localcluster import ClusterError, LocalCluster, processes
from hack.localcluster.paths import REPOSITORY, clusters_root
from hack.localcluster.tools import ensure

CLUSTER = "demo"
NAMESPACE = "berth-demo"
PEER_NAMESPACE = "berth-demo-kube-scheduler"
EXAMPLES = REPOSITORY / "examples"
TOPOLOGY = REPOSITORY / "hack" / "topologies" / "demo.yaml"
CONTROLLERS = ("appgroup", "networktopology", "placement")
PATIENCE = 120.0

_started = time.monotonic()


def say(text: str) -> None:
    """A progress line."""
    print(f"[{time.monotonic() - _started:6.1f} s] {text}", flush=True)


def show(title: str, text: str) -> None:
    """A result with its heading."""
    print(f"\n{title}\n{'-' * len(title)}\n{text.rstrip()}\n", flush=True)


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster that the demo runs on."""

    kubeconfig: Path
    """administrator's kubeconfig"""
    kubectl: str
    """kubectl binary"""
    home: Path
    """directory for the controllers' log and pid record"""

    def run(self, *arguments: str, text: str | None = None) -> str:
        """Run kubectl and return what it prints.

        Raises:
            ClusterError: it failed; the message has its error output.
        """
        command = [self.kubectl, f"--kubeconfig={self.kubeconfig}", *arguments]
        answer = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=120)
        if answer.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(arguments)}: {answer.stderr.strip()}")
        return answer.stdout

    def items(self, kind: str, namespace: str | None = None) -> list[Any]:
        """Raw objects of a kind."""
        where = ["-n", namespace] if namespace else []
        return list(json.loads(self.run("get", kind, *where, "-o", "json"))["items"])


def local_target() -> Target:
    """Start the local cluster."""
    say("starting the local cluster (the first start builds Kubernetes from source, which takes minutes)")
    cluster = LocalCluster.start(CLUSTER, nodes=TOPOLOGY, scheduler=True, report=say)
    tools = ensure(["kubectl"], report=say)
    return Target(cluster.kubeconfig, str(tools["kubectl"]), clusters_root() / CLUSTER)


def existing_target(kubeconfig: Path) -> Target:
    """Use a cluster that is there already."""
    if not kubeconfig.is_file():
        raise ClusterError(f"KUBECONFIG={kubeconfig} is no file; name a kubeconfig or leave it out for a local cluster")
    kubectl = shutil.which("kubectl") or str(ensure(["kubectl"], report=say)["kubectl"])
    home = clusters_root().parent / "demo-on-existing-cluster"
    home.mkdir(parents=True, exist_ok=True)
    return Target(kubeconfig, kubectl, home)


def start_controllers(target: Target) -> None:
    """Run all controllers in one background process and wait until it is ready."""
    record = target.home / "berth.process"
    if record.exists() and processes.ProcessRecord.load(record).alive:
        say("controllers run already")
        return
    log = target.home / "logs" / "berth.log"
    log.unlink(missing_ok=True)
    processes.spawn(
        "berth",
        [str(Path(sys.executable).parent / "berth"), "run", *CONTROLLERS, "--kubeconfig", str(target.kubeconfig),
         "--health-host", "127.0.0.1", "--health-port", "0"],
        mark=str(target.home),
        log=log,
        record=record,
        cwd=REPOSITORY,
    )  # fmt: skip
    say(f"starting the controllers: berth run {' '.join(CONTROLLERS)} (log: {log})")
    wait_for(lambda: _ready(log), what="the controllers to be ready", hint=f"see {log}")


def _ready(log: Path) -> bool:
    for line in log.read_text().splitlines():
        try:
            port = json.loads(line).get("health_port")
        except json.JSONDecodeError:
            continue
        if port:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
                    status: int = answer.status
                return status == 200
            except (urllib.error.URLError, OSError):
                return False
    return False


def wait_for(done: Callable[[], bool], *, what: str, hint: str) -> None:
    """Poll until done.

    Raises:
        ClusterError: it took longer than two minutes.
    """
    deadline = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > deadline:
            raise ClusterError(f"gave up waiting for {what}; {hint}")
        time.sleep(0.2)


def deploy(target: Target, namespace: str, *, scheduler: str) -> None:
    """Apply AppGroup, NetworkTopology and Deployments, with another schedulerName if asked for."""
    target.run("apply", "-f", "-", text=f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n")
    for name in ("01-appgroup-online-boutique.yaml", "02-networktopology.yaml"):
        target.run("apply", "-n", namespace, "-f", str(EXAMPLES / name))
    manifests = list(yaml.safe_load_all((EXAMPLES / "03-online-boutique-deployments.yaml").read_text()))
    for manifest in manifests:
        if manifest["kind"] == "Deployment":
            manifest["spec"]["template"]["spec"]["schedulerName"] = scheduler
    target.run("apply", "-n", namespace, "-f", "-", text=yaml.safe_dump_all(manifests))


def running(target: Target, namespace: str) -> Callable[[], bool]:
    """Whether all eleven pods run; says how many when that changes."""
    last = -1

    def check() -> bool:
        nonlocal last
        pods = target.items("pods", namespace)
        count: int = sum(pod["status"].get("phase") == "Running" for pod in pods)
        if count != last:
            say(f"{namespace}: {count} of 11 pods running")
            last = count
        return count >= 11

    return check


def place(target: Target, namespace: str, *, scheduler: str) -> Judgement:
    """Deploy the application, wait until it runs, judge where it is."""
    deploy(target, namespace, scheduler=scheduler)
    wait_for(
        running(target, namespace),
        what=f"the pods in {namespace} to run",
        hint=f"kubectl describe pods -n {namespace} says why",
    )
    topology = json.loads(target.run("get", "nt", "net-topology", "-n", namespace, "-o", "json"))
    costs = read_costs(
        NetworkTopology.parse({**topology, "apiVersion": API_VERSION, "kind": KIND}), weight_sets=["UserDefined"]
    )
    return judge(
        msgspec.convert(target.items("pods", namespace), list[Pod]),
        msgspec.convert(target.items("appgroups", namespace), list[CustomObject]),
        msgspec.convert(target.items("nodes"), list[Node]),
        costs,
    )


def show_results(target: Target, peer: Judgement, ours: Judgement) -> None:
    """What Berth computed and decided, read back with kubectl."""
    show("kubectl get ag,nt", target.run("get", "ag,nt", "-n", NAMESPACE))
    order = '{range .status.topologyOrder[*]}{.index}{"  "}{.workload.selector}{"\\n"}{end}'
    lines = target.run("get", "ag", "-n", NAMESPACE, "online-boutique", "-o", f"jsonpath={order}").splitlines()
    # The status lists them by selector.
    lines.sort(key=lambda line: int(line.split()[0]))
    show("Order of the workloads (KahnSort)", "\n".join(lines))
    weights = (
        '{range .spec.weights[?(@.name=="Dijkstra")].topologyList[*]}{.topologyKey}{"\\n"}{range .originList[*]}'
        '{"  from "}{.origin}{":"}{range .costList[*]}{"  "}{.destination}{"="}{.networkCost}{end}{"\\n"}{end}{end}'
    )
    show(
        "Computed weights (Dijkstra)",
        target.run("get", "nt", "-n", NAMESPACE, "net-topology", "-o", f"jsonpath={weights}"),
    )
    columns = "POD:.metadata.labels.app,NODE:.spec.nodeName,PHASE:.status.phase"
    show("Where each pod is", target.run("get", "pods", "-n", NAMESPACE, "-o", f"custom-columns={columns}"))
    rows = [("", "mean cost per dependency edge", "edges", "nodes used")]
    rows += [
        (name, f"{result.mean_edge_cost:.2f}", str(result.edges), str(result.nodes_used))
        for name, result in (("kube-scheduler", peer), ("Berth", ours))
    ]
    show("The same application on the same cluster", "\n".join(f"{a:<16}{b:>30}{c:>8}{d:>12}" for a, b, c, d in rows))


def show_next(target: Target) -> None:
    """How to go on."""
    show(
        "Look around",
        f"""export KUBECONFIG={target.kubeconfig}
{target.kubectl} get events -n {NAMESPACE} --field-selector reason=Scheduled
{target.kubectl} get pods -n {NAMESPACE} -l app=frontend -o jsonpath='{{.items[0].metadata.annotations}}'
{target.kubectl} scale -n {NAMESPACE} deployment/frontend --replicas=3

The controllers' log: {target.home / "logs" / "berth.log"}
Stop everything:     make demo-down""",
    )


def down() -> None:
    """Stop what demos have started."""
    external = clusters_root().parent / "demo-on-existing-cluster"
    processes.kill_marked(str(external))
    shutil.rmtree(external, ignore_errors=True)
    gone = LocalCluster.remove(CLUSTER)
    print("stopped" if gone else "no demo cluster was there")


def main() -> int:
    """Run the demo; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m hack.demo", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="use this cluster instead of a local one")
    parser.add_argument("--down", action="store_true", help="stop the demo's cluster and controllers")
    arguments = parser.parse_args()
    try:
        if arguments.down:
            down()
            return 0
        target = existing_target(arguments.kubeconfig) if arguments.kubeconfig else local_target()
        say("installing the kinds: kubectl apply -f crds/")
        target.run("apply", "--server-side", "--force-conflicts", "-f", str(REPOSITORY / "crds"))
        wait_for(lambda: bool(target.run("api-resources", "--api-group=appgroup.diktyo.x-k8s.io", "-o", "name")),
                 what="the kinds to be served", hint="kubectl get crd")  # fmt: skip
        say("kube-scheduler places Online Boutique, to compare with")
        peer = place(target, PEER_NAMESPACE, scheduler="default-scheduler")
        target.run("delete", "namespace", PEER_NAMESPACE, "--timeout=90s")
        start_controllers(target)
        say("Berth places Online Boutique")
        ours = place(target, NAMESPACE, scheduler="berth-scheduler")
        wait_for(
            lambda: (
                "Dijkstra" in target.run("get", "nt", "-n", NAMESPACE, "net-topology", "-o", "json")
                and target.run(
                    "get", "ag", "-n", NAMESPACE, "online-boutique", "-o", "jsonpath={.status.runningWorkloads}"
                )
                == "11"
            ),
            what="order and weights",
            hint="see the controllers' log",
        )
        show_results(target, peer, ours)
        show_next(target)
    except (ClusterError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``make demo``: Berth's main job on a real control plane, from nothing to a placed application.

Starts the local cluster (or uses the one of a kubeconfig), whose nodes are too small for the whole of Online Boutique.
Lets kube-scheduler place it, then Berth with and without spread constraints, and shows orders, weights, places, what
each placement costs and what survives the loss of a node or a zone. The cluster and the controllers stay up;
``make demo-down`` stops them.
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
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from berth.api.labels import LABEL_ZONE
from berth.api.networktopology import API_VERSION, KIND, NetworkTopology
from berth.kube.objects import CustomObject, Node, Pod
from berth.network.costs import read_costs
from berth.network.edge_costs import node_places
from berth.network.sites import Sites
from berth.network.survival import Survival, survival
from hack.harness.observe import Judgement, judge
from hack.localcluster import ClusterError, LocalCluster, processes
from hack.localcluster.paths import REPOSITORY, clusters_root
from hack.localcluster.tools import ensure

CLUSTER = "demo"
NAMESPACE = "berth-demo"
EXAMPLES = REPOSITORY / "examples"
TOPOLOGY = REPOSITORY / "hack" / "topologies" / "demo-small-nodes.yaml"
BERTH = "berth-scheduler"
REPLICAS = {"redis-cart": 1}
"""Replicas of workloads; 2 of all others. The cart's database is one pod, as in the published release."""
CONTROLLERS = ("appgroup", "networktopology", "placement")
PATIENCE = 120.0

_started = time.monotonic()


def exit_status(run: Callable[[], None]) -> int:
    """Run a demo; returns the exit status, and says what went wrong."""
    try:
        run()
    except (ClusterError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted; make demo-down stops what it has started", file=sys.stderr)
        return 130
    return 0


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


@dataclass(frozen=True, slots=True)
class Placement:
    """What came of one way to place the application."""

    name: str
    """who placed it, and how"""
    pods: int
    """pods of the application"""
    cost: Judgement
    """network cost of its edges"""
    survival: Survival
    """what is left when a node or a zone fails"""


def manifests(*, scheduler: str, spread: bool) -> tuple[list[Any], int]:
    """AppGroup, NetworkTopology and Deployments with replicas, and the number of pods.

    Args:
        scheduler: schedulerName of the pods.
        spread: keep the replicas of a workload in different zones by topologySpreadConstraints.
    """
    found = [
        item
        for name in ("01-appgroup-online-boutique", "02-networktopology", "03-online-boutique-deployments")
        for item in yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text())
    ]
    deployments = [item for item in found if item["kind"] == "Deployment"]
    for item in deployments:
        name, template = item["metadata"]["name"], item["spec"]["template"]["spec"]
        item["spec"]["replicas"] = REPLICAS.get(name, 2)
        template["schedulerName"] = scheduler
        if spread:
            template["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": LABEL_ZONE,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": item["spec"]["selector"],
                }
            ]
    pods = sum(item["spec"]["replicas"] for item in deployments)
    for item in found:
        if item["kind"] == "AppGroup":
            item["spec"]["numMembers"] = pods
    return found, pods


def running(target: Target, namespace: str, wanted: int) -> Callable[[], bool]:
    """Whether all pods run; says how many when that changes."""
    last = -1

    def check() -> bool:
        nonlocal last
        pods = target.items("pods", namespace)
        count: int = sum(pod["status"].get("phase") == "Running" for pod in pods)
        if count != last:
            say(f"{namespace}: {count} of {wanted} pods running")
            last = count
        return count >= wanted

    return check


def await_end_of(target: Target, namespace: str) -> None:
    """Wait while a namespace is being deleted, as after an earlier run: it takes nothing new until it is gone.

    Raises:
        ClusterError: it is still there after two minutes.
    """

    def ending() -> bool:
        when = "jsonpath={.metadata.deletionTimestamp}"
        return bool(target.run("get", "namespace", namespace, "--ignore-not-found", "-o", when).strip())

    if ending():
        say(f"the namespace {namespace} is being deleted; waiting until it is gone")
        hint = f"kubectl get namespace {namespace} -o yaml says what keeps it"
        wait_for(lambda: not ending(), what=f"the namespace {namespace} to be gone", hint=hint)


def place(target: Target, name: str, *, namespace: str, scheduler: str, spread: bool = False) -> Placement:
    """Deploy the application, wait until it runs, judge where it is."""
    objects, count = manifests(scheduler=scheduler, spread=spread)
    await_end_of(target, namespace)
    target.run("apply", "-f", "-", text=f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n")
    target.run("apply", "-n", namespace, "-f", "-", text=yaml.safe_dump_all(objects))
    wait_for(
        running(target, namespace, count),
        what=f"the pods in {namespace} to run",
        hint=f"kubectl describe pods -n {namespace} says why",
    )
    topology = json.loads(target.run("get", "nt", "net-topology", "-n", namespace, "-o", "json"))
    costs = read_costs(
        NetworkTopology.parse({**topology, "apiVersion": API_VERSION, "kind": KIND}), weight_sets=["UserDefined"]
    )
    pods = msgspec.convert(target.items("pods", namespace), list[Pod])
    nodes = msgspec.convert(target.items("nodes"), list[Node])
    groups = [CustomObject.of(item) for item in target.items("appgroups", namespace)]
    placed: dict[str, Counter[str]] = {}
    for pod in pods:
        placed.setdefault(pod.metadata.labels["app"], Counter())[pod.spec.node_name] += 1
    left = survival(placed, Sites.of(node_places(nodes), costs))
    return Placement(name, count, judge(pods, groups, nodes, costs), left)


def show_results(target: Target, placements: Sequence[Placement]) -> None:
    """What Berth computed and decided, read back with kubectl, and how the placements compare."""
    show("kubectl get ag,nt", target.run("get", "ag,nt", "-n", NAMESPACE))
    order = '{range .status.topologyOrder[*]}{.index}{"  "}{.workload.selector}{"\\n"}{end}'
    lines = target.run("get", "ag", "-n", NAMESPACE, "online-boutique", "-o", f"jsonpath={order}").splitlines()
    # The status lists them by selector.
    lines.sort(key=lambda line: int(line.split()[0]))
    show("Order of the workloads (KahnSort)", "\n".join(f"{line:>2}  {name}" for line, name in map(str.split, lines)))
    weights = (
        '{range .spec.weights[?(@.name=="Dijkstra")].topologyList[*]}{.topologyKey}{"\\n"}{range .originList[*]}'
        '{"  from "}{.origin}{":"}{range .costList[*]}{"  "}{.destination}{"="}{.networkCost}{end}{"\\n"}{end}{end}'
    )
    show(
        "Computed weights (Dijkstra)",
        target.run("get", "nt", "-n", NAMESPACE, "net-topology", "-o", f"jsonpath={weights}"),
    )
    show("Where Berth put the pods", "\n".join(by_node(target.items("pods", NAMESPACE))))
    show("The same application on the same cluster", "\n".join(comparison(placements)))


def by_node(pods: Sequence[Any]) -> list[str]:
    """A line for every node: the workloads of its pods."""
    nodes: dict[str, Counter[str]] = {}
    for pod in pods:
        nodes.setdefault(pod["spec"].get("nodeName", "(none)"), Counter())[pod["metadata"]["labels"]["app"]] += 1
    return [
        f"{node}  {', '.join(name if count == 1 else f'{name} x{count}' for name, count in sorted(apps.items()))}"
        for node, apps in sorted(nodes.items())
    ]


def comparison(placements: Sequence[Placement]) -> list[str]:
    """The table of all placements, and how to read it."""
    lines = [
        f"{'':<26}{'mean cost':>9}{'nodes':>7}   workloads that keep a replica",
        f"{'':<26}{'per edge':>9}{'used':>7}   if any node fails   if any zone fails",
    ]
    for item in placements:
        of = item.survival.replicated
        node, zone = f"{item.survival.survive_node} of {of}", f"{item.survival.survive_zone} of {of}"
        lines.append(
            f"{item.name:<26}{item.cost.mean_edge_cost:>9.2f}{item.cost.nodes_used:>7}   {node:<19} {zone}".rstrip()
        )
    first = placements[0]
    return [
        *lines,
        "",
        f"{first.pods} pods, {first.cost.edges} edges between them. Counted are workloads with two replicas:",
        f"{', '.join(REPLICAS)} has one, which goes with its node. By itself Berth keeps a replica of each workload",
        "when a node fails, and one when a zone fails where that costs little. What must survive a zone says so: here",
        "by topologySpreadConstraints (last line), or by the annotation berth.dev/spread of the AppGroup.",
    ]


def show_next(target: Target) -> None:
    """How to go on."""
    path = [str(Path(sys.executable).parent)]
    if shutil.which("kubectl") is None:
        path.append(str(Path(target.kubectl).parent))
    show(
        "Look around",
        f"""export KUBECONFIG={target.kubeconfig}
export PATH={":".join(path)}:$PATH
kubectl berth explain appgroup online-boutique -n {NAMESPACE}
kubectl berth explain node {target.items("pods", NAMESPACE)[0]["spec"]["nodeName"]}
kubectl get events -n {NAMESPACE} --field-selector reason=Scheduled
kubectl scale -n {NAMESPACE} deployment/frontend --replicas=3

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


def run(kubeconfig: Path | None) -> None:
    """Place the application in three ways, and show what comes of it."""
    target = existing_target(kubeconfig) if kubeconfig else local_target()
    say("installing the kinds: kubectl apply -f crds/")
    target.run("apply", "--server-side", "--force-conflicts", "-f", str(REPOSITORY / "crds"))
    wait_for(lambda: bool(target.run("api-resources", "--api-group=appgroup.diktyo.x-k8s.io", "-o", "name")),
             what="the kinds to be served", hint="kubectl get crd")  # fmt: skip
    placements = []
    say("kube-scheduler places Online Boutique, to compare with")
    placements.append(place(target, "kube-scheduler", namespace=f"{NAMESPACE}-peer", scheduler="default-scheduler"))
    target.run("delete", "namespace", f"{NAMESPACE}-peer", "--timeout=90s")
    start_controllers(target)
    say("Berth places Online Boutique, replicas spread over zones by topologySpreadConstraints")
    spread = place(target, "Berth, replicas spread", namespace=f"{NAMESPACE}-spread", scheduler=BERTH, spread=True)
    target.run("delete", "namespace", f"{NAMESPACE}-spread", "--timeout=90s")
    say("Berth places Online Boutique as it is")
    placements += [place(target, "Berth", namespace=NAMESPACE, scheduler=BERTH), spread]
    wait_for(
        lambda: (
            "Dijkstra" in target.run("get", "nt", "-n", NAMESPACE, "net-topology", "-o", "json")
            and target.run("get", "ag", "-n", NAMESPACE, "online-boutique", "-o", "jsonpath={.status.runningWorkloads}")
            == str(placements[-1].pods)
        ),
        what="order and weights",
        hint="see the controllers' log",
    )
    show_results(target, placements)
    show_next(target)


def main() -> int:
    """Run the demo; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m hack.demo", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="use this cluster instead of a local one")
    parser.add_argument("--down", action="store_true", help="stop the demo's cluster and controllers")
    arguments = parser.parse_args()
    return exit_status(down if arguments.down else lambda: run(arguments.kubeconfig))


if __name__ == "__main__":
    sys.exit(main())

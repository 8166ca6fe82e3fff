"""``make demo-latency``: an application follows its users, on real nodes of this machine.

Starts three kubelets, with Berth's scheduler, latency controller and node agents on them, and the same application
twice: placed by Berth, with a LatencyPolicy, and by kube-scheduler. Users in one place ask both, then in another one.
Shows what a dry run tells, what is moved and what that gains, and a plot. ``make demo-down`` stops it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Final

from berth.api.labels import SCHEDULER_NAME
from berth.api.latencypolicy import API_VERSION, KIND
from hack.demo import exit_status, say, show, wait_for
from hack.harness import pinned_node
from hack.harness.asking import Answer
from hack.harness.latency_plot import Mark, Point, text_plot, write_svg
from hack.harness.metered import metered
from hack.harness.user_place import UserPlace, Users, user_place
from hack.localcluster import ClusterError, LocalCluster, Options
from hack.localcluster.kubelets import packages
from hack.localcluster.paths import clusters_root

CLUSTER: Final = "demo-latency"
NAMESPACE: Final = "shop"
SCHEDULERS: Final = {"web": SCHEDULER_NAME, "web-peer": "default-scheduler"}
"""The application twice, and who places it."""
NAMES: Final = {"web": "Berth", "web-peer": "kube-scheduler"}
PLACES: Final = {
    "west": {"node-1": 20, "node-2": 120, "node-3": 180},
    "south": {"node-1": 120, "node-2": 20, "node-3": 120},
    "east": {"node-1": 180, "node-2": 120, "node-3": 20},
}
"""Round trips of users to nodes in milliseconds, by place."""
HARD, SOFT = 100, 60
POLICY: Final[dict[str, Any]] = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "metadata": {"name": "web", "namespace": NAMESPACE},
    "spec": {
        "targetRef": {"name": "web"},
        "hardMaxLatency": HARD,
        "softMaxLatency": SOFT,
        "moves": {"dryRun": True},
    },
}
ENOUGH: Final = 20
"""Requests by which a stage is shown."""
HINT: Final = f"hack/cluster kubectl --name {CLUSTER} -n {NAMESPACE} describe latencypolicy web says why"


class Demo:
    """The nodes, the application, and what its users had."""

    def __init__(self, cluster: LocalCluster, directory: Path) -> None:
        """Begin without anything."""
        self.cluster = cluster
        self._directory = directory
        self._users: dict[str, Users] = {}
        self._begun = 0.0
        self.marks: list[Mark] = []

    def install(self) -> None:
        """Berth's image, kinds and rights, and of its parts those that are needed, one replica of each."""
        pinned_node.prepare(self.cluster, self._directory)
        parts = {"berth-placement": "deployment", "berth-latency": "deployment", "berth-node": "daemonset"}
        found = [
            item
            for name in ("controllers", "agent", "latency")
            for item in pinned_node.manifests(self.cluster, name)
            if item["metadata"]["name"] in parts
        ]
        for item in found:
            if item["kind"] == "Deployment":
                item["spec"]["replicas"] = 1
        pinned_node.apply(self.cluster, found, "--force-conflicts")
        for name, kind in parts.items():
            pinned_node.rolled_out(self.cluster, f"{kind}/{name}")

    def deploy(self) -> None:
        """Run the application twice."""
        items = [item for name, scheduler in SCHEDULERS.items() for item in metered(name, scheduler=scheduler)]
        for item in items:
            item["metadata"]["namespace"] = NAMESPACE
        pinned_node.apply(
            self.cluster, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, *items]
        )
        for name in SCHEDULERS:
            self.kubectl("rollout", "status", f"deployment/{name}", "--timeout=120s")

    def node_of(self, name: str = "web") -> str:
        """Where the application's pods are that stay, with commas."""
        found = json.loads(self.kubectl("get", "pods", "-l", f"app={name}", "-o", "json"))["items"]
        nodes = (pod["spec"].get("nodeName", "-") for pod in found if "deletionTimestamp" not in pod["metadata"])
        return ", ".join(sorted(nodes))

    def ask(self, place: UserPlace, stack: ExitStack) -> None:
        """Have users ask both from now on."""
        self._begun = time.time()
        for name in SCHEDULERS:
            asking = place.asking(NAMESPACE, name, self._directory / f"{name}.jsonl")
            self._users[name] = stack.enter_context(asking)

    def mark(self, text: str, at: float | None = None) -> None:
        """Something happens now, or has happened at a time, in seconds since 1970."""
        self.marks.append(Mark((time.time() if at is None else at) - self._begun, text))

    def first_served_from(self, node: str) -> float:
        """When users of Berth's were first served by the pod that is on the node now."""
        answers = self.answers("web")
        elsewhere = max((number for number, answer in enumerate(answers) if answer.node != node), default=-1)
        return answers[elsewhere + 1].time

    def answers(self, name: str) -> list[Answer]:
        """What users of the application had."""
        return self._users[name].answers()

    def served_from(self, node: str) -> Callable[[], bool]:
        """Whether the pod on the node has served users for a while, and what the move gained is known."""

        def check() -> bool:
            answers = self.answers("web")[-ENOUGH:]
            done = len(answers) == ENOUGH and all(answer.node == node for answer in answers)
            return done and self.node_of() == node and self.status()["moves"][-1].get("afterMicroseconds") is not None

        return check

    def status(self) -> Mapping[str, Any]:
        """The status of the policy."""
        found: dict[str, Any] = json.loads(self.kubectl("get", "latencypolicy", "web", "-o", "json"))
        return {"moves": [{}], "conditions": [], **found.get("status", {})}

    def condition(self, name: str) -> tuple[str, str]:
        """Reason and message of a condition of the policy."""
        found = (each for each in self.status()["conditions"] if each["type"] == name)
        return next(((each["reason"], each["message"]) for each in found), ("", ""))

    def told(self) -> bool:
        """Whether all nodes are measured, and the dry run tells a move."""
        measured = [each["node"] for each in self.status().get("nodes", ()) if "p50Microseconds" in each]
        return len(measured) == len(PLACES["west"]) and self.condition("Moving")[0] == "DryRun"

    def points(self) -> dict[str, list[Point]]:
        """Round trips of answered requests, by who placed the pod."""
        return {
            NAMES[name]: [Point(each.time - self._begun, each.round_trip) for each in self.answers(name) if each.node]
            for name in SCHEDULERS
        }

    def explain(self) -> str:
        """What the command prints."""
        width = max(shutil.get_terminal_size((120, 40)).columns, 100)
        command = [str(Path(sys.executable).parent / "berth"), "explain", "latencypolicy/web", "-n", NAMESPACE]
        command += ["--kubeconfig", str(self.cluster.kubeconfig)]
        environment = {**os.environ, "COLUMNS": str(width)}
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)
        if answer.returncode != 0:
            raise ClusterError(f"berth explain: {answer.stderr.strip()}")
        return answer.stdout

    def policies(self) -> str:
        """What kubectl prints."""
        return self.kubectl("get", "latencypolicies", "-o", "wide")

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl in the namespace; what it prints."""
        return self.cluster.kubectl("-n", NAMESPACE, *arguments, timeout=150).stdout


def distances() -> str:
    """The table of places."""
    nodes = list(PLACES["west"])
    lines = [f"{'':<14}" + "".join(f"{node:>9}" for node in nodes)]
    lines += [
        f"{f'in the {place}':<14}" + "".join(f"{far[node]:>6} ms" for node in nodes) for place, far in PLACES.items()
    ]
    return "\n".join(lines)


def comparison(points: Mapping[str, Sequence[Point]], stages: Sequence[tuple[str, float, float]]) -> str:
    """A table: medians of stages (name, begin, end), and the share of requests that were within the soft limit."""
    lines = [f"{'':<16}" + "".join(f"{name:>14}" for name, _, _ in stages) + f"{f'within {SOFT} ms':>17}"]
    for name, each in points.items():
        medians = [median(point.value for point in each if begin <= point.time < end) for _, begin, end in stages]
        share = sum(point.value <= SOFT for point in each) / len(each)
        cells = "".join(f"{value:>11.0f} ms" for value in medians)
        lines.append(f"{name:<16}{cells}{share:>17.0%}")
    return "\n".join(lines)


def follow(demo: Demo, place: str) -> None:
    """Wait until the pod is near users in the place, and say what was moved."""
    near = min(PLACES[place], key=PLACES[place].__getitem__)
    wait_for(demo.served_from(near), what=f"a pod near users in the {place}", hint=HINT)
    move = demo.status()["moves"][-1]
    figures = [move.get(f"{name}Microseconds", 0) / 1000 for name in ("before", "after")]
    demo.mark(f"the pod is on {near}", demo.first_served_from(near))
    say(f"the pod went from {move['sourceNode']} to {near}: {figures[0]:.0f} ms before, {figures[1]:.0f} ms after")


def run() -> None:
    """Show it."""
    problem = packages.problem(clusters_root() / CLUSTER)
    if problem:
        raise ClusterError(problem)
    say("starting three real nodes: kubelets and containerd in network namespaces")
    cluster = LocalCluster.start(CLUSTER, options=Options(kubelets=3), report=say)
    directory = cluster.layout.home / "latency"
    directory.mkdir(exist_ok=True)
    demo = Demo(cluster, directory)
    say("installing Berth: its image, crds/, deploy/rbac, the scheduler, node agents, deploy/latency")
    demo.install()
    say("running the same application twice: web, placed by Berth, and web-peer, placed by kube-scheduler")
    demo.deploy()
    start = demo.node_of()
    say(f"web is on {start}, web-peer on {demo.node_of('web-peer')}: nobody knows yet where users are")
    # Where a pod is before anybody knows of users is chance: they begin far from there, and go where it is far as well.
    first, second, _ = sorted(PLACES, key=lambda place: PLACES[place][start], reverse=True)
    show("Round trips of users", distances())
    with ExitStack() as stack:
        place = stack.enter_context(user_place(cluster, PLACES[first]))
        say(f"users in the {first} ask both")
        demo.ask(place, stack)
        show_moves(demo, place, first, second)
    show_plot(demo, directory / "latency.svg", first, second)


def show_moves(demo: Demo, place: UserPlace, first: str, second: str) -> None:
    """The policy, first as a dry run; then users go elsewhere."""
    say(f"kubectl apply: a LatencyPolicy with limits of {HARD} and {SOFT} ms, and moves.dryRun")
    demo.mark("a policy, dry run")
    pinned_node.apply(demo.cluster, [POLICY], "--force-conflicts")
    wait_for(demo.told, what="the dry run", hint=HINT)
    show("kubectl get latencypolicies -o wide", demo.policies())
    show("What a dry run says would be moved (condition Moving)", demo.condition("Moving")[1])
    say('kubectl patch latencypolicy web --type=merge -p \'{"spec":{"moves":{"dryRun":false}}}\'')
    demo.mark("moves are made")
    demo.kubectl("patch", "latencypolicy", "web", "--type=merge", '-p={"spec":{"moves":{"dryRun":false}}}')
    follow(demo, first)
    show("kubectl berth explain latencypolicy/web -n shop", demo.explain())
    say(f"users go to the {second}")
    demo.mark(f"users go to the {second}")
    place.move(PLACES[second])
    follow(demo, second)
    show("kubectl get latencypolicies -o wide", demo.policies())
    show("kubectl berth explain latencypolicy/web -n shop", demo.explain())


def show_plot(demo: Demo, path: Path, first: str, second: str) -> None:
    """What users had, beside kube-scheduler's placement."""
    points = demo.points()
    _, _, near, _, again = (mark.time for mark in demo.marks)
    end = max(point.time for each in points.values() for point in each) + 1
    write_svg(path, points, demo.marks, limit=SOFT, title="The same application, its users in two places")
    show("What users had over time", text_plot(points, demo.marks))
    stages = [("dry run", 0.0, demo.marks[1].time), (f"in the {first}", near, demo.marks[3].time)]
    stages.append((f"in the {second}", again, end))
    show("The same application on the same nodes: median round trips of users", comparison(points, stages))
    lost = sum(not answer.node for name in SCHEDULERS for answer in demo.answers(name))
    asked = sum(len(demo.answers(name)) for name in SCHEDULERS)
    show(
        "Look around",
        f"{asked} requests, {lost} of them lost. The plot as a picture: {path}\n\n"
        f"export KUBECONFIG={demo.cluster.kubeconfig}\n"
        "export PATH=$(hack/cluster bin):$PATH\n"
        f"kubectl get events -n {NAMESPACE} --field-selector involvedObject.kind=LatencyPolicy\n"
        f"kubectl describe latencypolicy web -n {NAMESPACE}\n\n"
        "Stop everything:     make demo-down",
    )


if __name__ == "__main__":
    sys.exit(exit_status(run))

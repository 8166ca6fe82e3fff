"""Command line of the local cluster, run as ``hack/cluster``."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hack.localcluster import tools
from hack.localcluster.cluster import LocalCluster
from hack.localcluster.components import Options
from hack.localcluster.errors import ClusterError
from hack.localcluster.kubelets import berth_image, packages
from hack.localcluster.kubelets.names import MOST_NODES

DEFAULT_NAME = "berth"
"""Instance that a command means when no name is given."""

_EPILOG = """\
examples:
  hack/cluster up --nodes-file hack/topologies/demo.yaml --with-scheduler
  export KUBECONFIG=$(hack/cluster kubeconfig)
  hack/cluster kubectl get nodes -L topology.kubernetes.io/zone
  hack/cluster up --name second            # side by side with the first
  hack/cluster logs kube-apiserver
  hack/cluster down --all

The first start builds the control plane from source, which takes minutes; see docs/local-cluster.md.
"""


def _say(message: str) -> None:
    """Progress goes to standard error: standard output is for what a script wants to read."""
    print(message, file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    """The argument parser of ``hack/cluster``."""
    root = argparse.ArgumentParser(
        prog="hack/cluster",
        allow_abbrev=False,
        description="A real Kubernetes control plane on this machine: etcd, kube-apiserver, kube-controller-manager, "
        "optionally kube-scheduler, and KWOK for simulated nodes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")

    up = _command(commands, "up", "start an instance, or what does not run of one, and print its kubeconfig")
    up.add_argument("--nodes-file", type=Path, metavar="FILE", help="topology file of simulated nodes to create")
    up.add_argument("--with-scheduler", action="store_true", help="run kube-scheduler, its client unthrottled")
    up.add_argument(
        "--scheduler-config", type=Path, metavar="FILE", help="KubeSchedulerConfiguration; implies --with-scheduler"
    )
    up.add_argument(
        "--kubelets",
        type=_count,
        default=0,
        metavar="N",
        help=f"N real nodes (at most {MOST_NODES}), each a kubelet and a containerd in a network namespace; needs root",
    )
    up.add_argument("--without-kwok", action="store_true", help="do not run KWOK: simulated pods stay Pending")
    up.add_argument(
        "--bind-address", default="127.0.0.1", metavar="IP", help="address of the API server (default: %(default)s)"
    )
    up.add_argument(
        "--enable-priority-and-fairness",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="API Priority and Fairness (default: on); off leaves plain limits of requests in flight",
    )
    up.add_argument(
        "--apiserver-arg",
        action="append",
        default=[],
        metavar="FLAG",
        help="further kube-apiserver flag, as in --apiserver-arg=--v=4; may be repeated",
    )
    up.add_argument(
        "--controller-manager-arg",
        action="append",
        default=[],
        metavar="FLAG",
        help="further kube-controller-manager flag; may be repeated",
    )
    up.add_argument("--json", action="store_true", help="print facts as JSON instead of the kubeconfig path")

    down = _command(commands, "down", "kill everything of an instance and remove its directory")
    down.add_argument("--all", action="store_true", help="all instances")
    down.add_argument("--keep-logs", action="store_true", help="leave the logs directory")

    status = _command(commands, "status", "show the components of an instance; exit status 1 unless all run")
    status.add_argument("--json", action="store_true", help="print JSON")

    listing = _command(commands, "list", "list all instances", named=False)
    listing.add_argument("--json", action="store_true", help="print JSON")

    nodes = _command(commands, "nodes", "add the simulated nodes of a topology file")
    nodes.add_argument("-f", "--nodes-file", type=Path, required=True, metavar="FILE", help="topology file")
    nodes.add_argument("--delete", action="store_true", help="delete these nodes instead")

    image = _command(commands, "image", "make Berth's image of this environment and import it on the real nodes")
    image.add_argument("--tag", default=berth_image.TAG, help="name and tag of the image (default: %(default)s)")

    _command(commands, "bin", "print the directory of the tools, for PATH", named=False)
    _command(commands, "kubeconfig", "print the path of an instance's kubeconfig")
    logs = _command(commands, "logs", "print a component's log, or the paths of all logs")
    logs.add_argument("component", nargs="?", help="component, as in kube-apiserver")
    kubectl = _command(commands, "kubectl", "run kubectl against an instance; --name, if given, comes first")
    kubectl.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of kubectl")

    build = _command(
        commands, "build", "build the tools (or make sure they are there) and print their paths", named=False
    )
    build.add_argument(
        "tool", nargs="*", metavar="TOOL", help=f"tools to build (default: {' '.join(tools.STANDARD)}; also kubelet)"
    )
    return root


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) > MOST_NODES:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to {MOST_NODES}")
    return int(text)


def _command(commands: Any, name: str, description: str, *, named: bool = True) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name, allow_abbrev=False, help=description, description=f"{description[0].upper()}{description[1:]}."
    )
    if named:
        made.add_argument("--name", default=DEFAULT_NAME, help="instance (default: %(default)s)")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    args = parser().parse_args(argv)
    try:
        return int(_COMMANDS[args.command](args))
    except ClusterError as error:
        _say(f"hack/cluster: {error}")
        return 1
    except OSError as error:
        _say(f"hack/cluster: {error}; does the cluster run? (hack/cluster status)")
        return 1
    except KeyboardInterrupt:
        _say("interrupted")
        return 130


def _up(args: argparse.Namespace) -> int:
    options = replace(
        Options(),
        bind_address=args.bind_address,
        kubelets=args.kubelets,
        priority_and_fairness=args.enable_priority_and_fairness,
        apiserver_args=tuple(args.apiserver_arg),
        controller_manager_args=tuple(args.controller_manager_arg),
    )
    cluster = LocalCluster.start(
        args.name,
        nodes=args.nodes_file,
        scheduler=args.scheduler_config or args.with_scheduler,
        kwok=not args.without_kwok,
        options=options,
        report=_say,
    )
    print(json.dumps(_facts(cluster), indent=2) if args.json else cluster.kubeconfig)
    _say(f"use it with: export KUBECONFIG={cluster.kubeconfig}")
    _say(f"stop it with: hack/cluster down --name {cluster.name}")
    return 0


def _down(args: argparse.Namespace) -> int:
    names = LocalCluster.names() if args.all else [args.name]
    for name in names:
        removed = LocalCluster.remove(name, keep_logs=args.keep_logs)
        _say(f"cluster {name} is removed" if removed else f"there was no cluster {name}")
    return 0


def _facts(cluster: LocalCluster) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "server": cluster.server,
        "kubeconfig": str(cluster.kubeconfig),
        "caFile": str(cluster.ca_file),
        "directory": str(cluster.layout.home),
        "components": [asdict(component) for component in cluster.status()],
    }


def _status(args: argparse.Namespace) -> int:
    cluster = LocalCluster.open(args.name)
    states = cluster.status()
    if args.json:
        print(json.dumps(_facts(cluster), indent=2))
    else:
        print(f"cluster {cluster.name} at {cluster.server}, kubeconfig {cluster.kubeconfig}")
        for item in states:
            figures = f"pid {item.pid:<8} port {item.port:<6} {item.rss / 2**20:6.0f} MiB {item.cpu_seconds:8.1f} s CPU"
            print(f"  {item.name:<24} {item.state:<8} {figures if item.pid else item.log}")
    return 0 if all(item.state == "running" for item in states) else 1


def _list(args: argparse.Namespace) -> int:
    found = []
    for name in LocalCluster.names():
        try:
            cluster = LocalCluster.open(name)
            running = [item.name for item in cluster.status() if item.state == "running"]
            state = "running" if running == cluster.components else "degraded" if running else "stopped"
            found.append(
                {"name": name, "state": state, "server": cluster.server, "kubeconfig": str(cluster.kubeconfig)}
            )
        except ClusterError:
            found.append({"name": name, "state": "damaged", "server": "", "kubeconfig": ""})
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        for item in found:
            print(f"{item['name']:<20} {item['state']:<9} {item['server']:<26} {item['kubeconfig']}")
        if not found:
            _say("no clusters")
    return 0


def _nodes(args: argparse.Namespace) -> int:
    cluster = LocalCluster.open(args.name, report=_say)
    if args.delete:
        _say(f"deleted {len(cluster.delete_nodes(args.nodes_file))} nodes")
    else:
        cluster.create_nodes(args.nodes_file)
    return 0


def _kubeconfig(args: argparse.Namespace) -> int:
    print(LocalCluster.open(args.name).kubeconfig)
    return 0


def _logs(args: argparse.Namespace) -> int:
    cluster = LocalCluster.open(args.name)
    if args.component is None:
        for path in sorted((cluster.layout.home / "logs").glob("*.log")):
            print(path)
        return 0
    log = cluster.layout.log(args.component)
    if not log.exists():
        raise ClusterError(
            f"{args.component!r} has no log in {log.parent}: components are {', '.join(cluster.components)}"
        )
    with log.open(errors="replace") as lines:
        sys.stdout.writelines(lines)
    return 0


def _kubectl(args: argparse.Namespace) -> int:
    cluster = LocalCluster.open(args.name)
    kubectl = tools.ensure(["kubectl"], report=_say)["kubectl"]
    os.execv(kubectl, [str(kubectl), f"--kubeconfig={cluster.kubeconfig}", *args.arguments])


def _image(args: argparse.Namespace) -> int:
    cluster = LocalCluster.open(args.name)
    if not cluster.options.kubelets:
        raise ClusterError(f"cluster {cluster.name} has no real nodes: start one with hack/cluster up --kubelets 3")
    archive = cluster.layout.home / "berth.tar"
    berth_image.write(archive, args.tag)
    cluster.load_images([archive])
    _say(f"{args.tag} is on {cluster.options.kubelets} nodes")
    return 0


def _bin(_args: argparse.Namespace) -> int:
    print(tools.ensure(["kubectl"], report=_say)["kubectl"].parent)
    return 0


def _build(args: argparse.Namespace) -> int:
    if "kubelet" in args.tool:
        try:
            packages.ensure(report=_say)
        except (ClusterError, OSError, subprocess.TimeoutExpired) as error:
            # The tools serve simulated nodes as well, which need nothing of this.
            _say(f"real nodes will not start here: {error}")
    for name, path in tools.ensure(args.tool or tools.STANDARD, report=_say).items():
        print(f"{name:<24} {path}")
    return 0


_COMMANDS = {
    "up": _up,
    "down": _down,
    "status": _status,
    "list": _list,
    "nodes": _nodes,
    "kubeconfig": _kubeconfig,
    "logs": _logs,
    "kubectl": _kubectl,
    "image": _image,
    "bin": _bin,
    "build": _build,
}

"""A place where users are: a network namespace beside real nodes, with round trips of its own to each of them.

Users in it reach nodes and pods by their addresses, and are outside of the cluster to these, each place in a network of
its own: who is of one network counts as about as far as others of it. A request goes to a pod that is ready, as
kube-proxy would send it (`hack.harness.asking`); each by a connection of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from hack.harness.asking import Answer
from hack.localcluster import LocalCluster, processes
from hack.localcluster.kubelets import delay, network
from hack.localcluster.kubelets.names import MOST_NODES, Node, nodes
from hack.localcluster.paths import REPOSITORY

ADDRESS: Final = "172.31.{}.1"
"""Of users, by number of their place; known in the instance's namespaces alone."""


class UserPlace:
    """The place, as long as it is there."""

    def __init__(self, cluster: LocalCluster, node: Node, delaying: subprocess.Popen[str]) -> None:
        """Keep what belongs to it."""
        self._cluster = cluster
        self._node = node
        self._delaying = delaying

    def move(self, distances: Mapping[str, float], *, agents: Mapping[str, float] | None = None) -> None:
        """Have the users be elsewhere.

        Args:
            distances: round trips to nodes and their pods in milliseconds, by name of the node.
            agents: of nodes themselves, where these differ from those to their pods: their agents are wrong.
        """
        assert self._delaying.stdin is not None
        assert self._delaying.stdout is not None
        self._delaying.stdin.write(" ".join(_words(self._cluster, distances, agents or {})) + "\n")
        self._delaying.stdin.flush()
        self._delaying.stdout.readline()

    def run(self, *arguments: str, text: str = "") -> str:
        """Run a program of Python where the users are, which reads a text; what it prints."""
        command = [*network.enter(self._node), sys.executable, *arguments]
        found = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=REPOSITORY, timeout=120, input=text
        )
        return found.stdout

    @contextmanager
    def asking(
        self,
        namespace: str,
        service: str,
        file: Path,
        *,
        interval: float = 0.2,
        users: Sequence[str] = (),
        method: str = "GET",
    ) -> Iterator[Users]:
        """Inside the block users ask a Service.

        Args:
            namespace: of the Service.
            service: its name.
            file: answers are written to it.
            interval: seconds between requests.
            users: their names, if they have some; they ask in turn.
            method: POST for requests that do harm twice.
        """
        home = self._cluster.layout.home
        arguments = [home.name, str(home.parent), namespace, service, str(interval), method, *users]
        command = [*network.enter(self._node), sys.executable, "-m", "hack.harness.asking", *arguments]
        with file.open("w") as output, _marked(self._cluster, command, stdout=output) as process:
            found = Users(file, process)
            try:
                yield found
            finally:
                found.stop()


class Users:
    """Users who ask, and what they were answered."""

    def __init__(self, file: Path, process: subprocess.Popen[str]) -> None:
        """Keep what belongs to them."""
        self._file = file
        self._process = process

    def answers(self) -> list[Answer]:
        """What came of each request so far, in order."""
        lines = self._file.read_text().splitlines(keepends=True)
        return [Answer(**json.loads(line)) for line in lines if line.endswith("\n")]

    def stop(self) -> None:
        """End with the request that is under way."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout=60)


@contextmanager
def user_place(cluster: LocalCluster, distances: Mapping[str, float], *, number: int = 1) -> Iterator[UserPlace]:
    """Make a place.

    Args:
        cluster: of real nodes.
        distances: round trips to them and their pods in milliseconds, by name.
        number: tells places of one cluster from each other, from 1.
    """
    home, gateway = cluster.layout.home, cluster.options.bind_address
    node = Node(home=home, number=MOST_NODES + number)
    network.create(home, gateway, [*nodes(home, cluster.options.kubelets), node])
    for route in _routes(cluster, node, ADDRESS.format(number)):
        subprocess.run(["ip", *route], check=True)
    words = _words(cluster, distances, {})
    command = [*network.enter(node), sys.executable, "-I", str(delay.__file__), *words]
    with _marked(cluster, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as delaying:
        try:
            assert delaying.stdout is not None
            delaying.stdout.readline()
            yield UserPlace(cluster, node, delaying)
        finally:
            delaying.kill()
            subprocess.run(["ip", "netns", "delete", node.namespace], check=False)


def _routes(cluster: LocalCluster, place: Node, address: str) -> Iterator[list[str]]:
    """Arguments of commands by which users of a place come from such an address."""
    gateway, inside = cluster.options.bind_address, ["-netns", place.namespace]
    yield [*inside, "address", "add", f"{address}/32", "dev", "lo"]
    for node in nodes(cluster.layout.home, cluster.options.kubelets):
        there = node.address(gateway)
        yield [*inside, "route", "replace", there, "dev", "eth0", "src", address]
        yield [*inside, "route", "replace", node.pods, "via", there, "src", address]
        yield ["-netns", node.namespace, "route", "replace", address, "via", place.address(gateway)]


def _words(cluster: LocalCluster, distances: Mapping[str, float], agents: Mapping[str, float]) -> list[str]:
    """What `hack.localcluster.kubelets.delay` is told."""
    words = []
    for node in nodes(cluster.layout.home, cluster.options.kubelets):
        far = distances[node.name]
        words += [f"{node.address(cluster.options.bind_address)}={agents.get(node.name, far)}", f"{node.pods}={far}"]
    return words


def _marked(
    cluster: LocalCluster, command: list[str], *, stdin: int | None = None, stdout: int | TextIO
) -> subprocess.Popen[str]:
    """A process that ends with the cluster, whatever becomes of this one."""
    environment = {**os.environ, processes.MARK: str(cluster.layout.home)}
    return subprocess.Popen(command, env=environment, text=True, cwd=REPOSITORY, stdin=stdin, stdout=stdout)

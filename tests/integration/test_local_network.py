"""The network of real nodes, made on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.localcluster.kubelets import network
from hack.localcluster.kubelets.names import Node

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    yield Node(home=tmp_path, number=1)
    network.delete(tmp_path)


def _addresses(node: Node) -> str:
    return subprocess.run([*network.enter(node), "ip", "address"], capture_output=True, text=True, check=True).stdout


def test_a_namespace_that_went_is_made_anew_though_its_link_is_there_for_a_moment(node: Node) -> None:
    """The kernel takes a link away some time after its namespace, and only once no process has that."""
    gateway = network.choose_gateway(node.home, network.used_networks())
    network.create(node.home, gateway, [node])
    with node.namespace_file.open("rb"):
        subprocess.run(["ip", "netns", "delete", node.namespace], check=True)
        network.create(node.home, gateway, [node])
    assert node.address(gateway) in _addresses(node)


def test_what_is_there_is_left_as_it_is(node: Node) -> None:
    gateway = network.choose_gateway(node.home, network.used_networks())
    network.create(node.home, gateway, [node])
    before = node.namespace_file.stat()
    network.create(node.home, gateway, [node])
    assert node.namespace_file.stat().st_ino == before.st_ino
    network.delete(node.home)
    assert not node.namespace_file.exists()


CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5).close()"


def _connect(node: Node, server: socket.socket) -> None:
    address, port = server.getsockname()
    subprocess.run([*network.enter(node), sys.executable, "-c", CONNECT, address, str(port)], check=True)


def _set_address(node: Node, address: str) -> None:
    subprocess.run(["ip", "link", "set", node.interface, "address", address], check=True)


@pytest.mark.parametrize("goes", [False, True], ids=["comes", "comes and goes"])
def test_a_node_reaches_the_machine_though_a_link_with_the_least_address_of_all_comes(node: Node, goes: bool) -> None:
    """A bridge without an address of its own takes that one, which who has looked up the former does not know."""
    gateway = network.choose_gateway(node.home, network.used_networks())
    second, third = (Node(home=node.home, number=number) for number in (2, 3))
    network.create(node.home, gateway, [node, second])
    _set_address(second, "00:00:00:00:00:02")
    with socket.create_server((gateway, 0)) as server:
        _connect(node, server)
        network.create(node.home, gateway, [node, second, third])
        _set_address(third, "00:00:00:00:00:01")
        if goes:
            _connect(second, server)
            subprocess.run(["ip", "link", "delete", third.interface], check=True)
            _connect(second, server)
        _connect(node, server)

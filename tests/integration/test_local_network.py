"""The network of real nodes, made on this machine."""

from __future__ import annotations

import os
import subprocess
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

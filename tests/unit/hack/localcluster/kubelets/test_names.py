"""What the parts of nodes are called: short enough for the kernel, of their instance alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.localcluster.kubelets import names
from hack.localcluster.kubelets.names import Node

INTERFACE_LENGTH = 15


@given(st.from_regex(r"/[a-z0-9/]{1,60}", fullmatch=True), st.integers(1, 99))
def test_names_of_interfaces_fit_the_kernel(home: str, number: int) -> None:
    node = Node(home=Path(home), number=number)
    assert len(node.interface) <= INTERFACE_LENGTH
    assert len(names.bridge(node.home)) <= INTERFACE_LENGTH


def test_instances_and_nodes_share_no_name() -> None:
    found = [node for home in ("/a/one", "/a/two") for node in names.nodes(Path(home), 3)]
    for attribute in ("namespace", "interface", "directory", "socket", "kubeconfig", "namespace_file"):
        assert len({getattr(node, attribute) for node in found}) == len(found), attribute


def test_nodes_of_an_instance_differ_in_address_pods_zone_and_user() -> None:
    found = names.nodes(Path("/a/one"), 3)
    assert [node.address("10.250.7.1") for node in found] == ["10.250.7.12", "10.250.7.13", "10.250.7.14"]
    assert [node.pods for node in found] == ["10.244.1.0/24", "10.244.2.0/24", "10.244.3.0/24"]
    assert [node.zone for node in found] == ["local-a", "local-b", "local-c"]
    assert [node.user for node in found] == ["system:node:node-1", "system:node:node-2", "system:node:node-3"]


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        pytest.param("kubelet-1", ("kubelet", 1), id="kubelet"),
        pytest.param("service-relay-12", ("service-relay", 12), id="name with a hyphen"),
        pytest.param("kube-apiserver", None, id="control plane"),
        pytest.param("etcd", None, id="no hyphen"),
        pytest.param("kubelet", None, id="no number"),
        pytest.param("kubelet-x", None, id="no figure"),
    ],
)
def test_parse(component: str, expected: tuple[str, int] | None) -> None:
    assert names.parse(component) == expected

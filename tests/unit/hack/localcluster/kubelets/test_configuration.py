"""Configuration of a node's processes: every file is the node's own. Whether they work: end-to-end tests."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from hack.localcluster import ClusterError
from hack.localcluster.kubelets import configuration
from hack.localcluster.kubelets.names import PARTS, Node

NODE = Node(home=Path("/clusters/one"), number=2)
PLUGINS = Path("/usr/lib/cni")
GATEWAY = "10.250.7.1"


@pytest.mark.parametrize(
    ("part", "argument"),
    [
        pytest.param("containerd", "/clusters/one/nodes/2/containerd.toml", id="containerd's configuration"),
        pytest.param("service-relay", "10.96.0.1", id="where pods look for the API server"),
        pytest.param("service-relay", GATEWAY, id="where it is"),
        pytest.param("service-relay", "20002", id="its port"),
        pytest.param("kubelet", "--hostname-override=node-2", id="name"),
        pytest.param("kubelet", "--node-ip=10.250.7.13", id="address"),
        pytest.param("kubelet", "--kubeconfig=/clusters/one/nodes/2/kubeconfig", id="credentials"),
        pytest.param(
            "kubelet",
            "--node-labels=topology.kubernetes.io/region=local,topology.kubernetes.io/zone=local-b",
            id="zone",
        ),
    ],
)
def test_arguments(part: str, argument: str) -> None:
    assert argument in configuration.arguments(part, NODE, GATEWAY, 20002)


def test_unknown_part() -> None:
    with pytest.raises(ClusterError, match=f"'etcd': known are {', '.join(PARTS)}"):
        configuration.arguments("etcd", NODE, GATEWAY, 20002)


def test_every_path_lies_in_the_nodes_directory() -> None:
    files = configuration.files(NODE, PLUGINS)
    assert all(path.is_relative_to(NODE.directory) for path in files)
    written = " ".join([*files.values(), *configuration.arguments("kubelet", NODE, GATEWAY, 20002)])
    paths = {path for path in re.findall(r'(?<=["=/])/[a-z][^"\s]*', written) if not path.startswith("/clusters/one")}
    # The plugins are programs, and the cgroup is named after the node.
    assert paths == {str(PLUGINS), f"/{NODE.namespace}"}


def test_containerd_keeps_its_state_and_its_pods_namespaces_where_they_are_removed() -> None:
    config = tomllib.loads(configuration.containerd(NODE, PLUGINS))
    cri = config["plugins"]["io.containerd.grpc.v1.cri"]
    assert (config["root"], config["state"]) == ("/clusters/one/nodes/2/containerd", "/clusters/one/nodes/2/run")
    assert cri["netns_mounts_under_state_dir"] is True
    assert cri["sandbox_image"] == configuration.PAUSE_IMAGE
    assert cri["cni"] == {"bin_dir": "/usr/lib/cni", "conf_dir": "/clusters/one/nodes/2/cni"}


def test_pods_get_addresses_of_their_nodes_network() -> None:
    (plugin,) = configuration.cni(NODE)["plugins"]
    assert plugin["ipam"]["ranges"] == [[{"subnet": "10.244.2.0/24"}]]


def test_kubelets_configuration_is_in_a_file_that_yaml_readers_take() -> None:
    text = configuration.files(NODE, PLUGINS)[NODE.directory / "kubelet.yaml"]
    config = json.loads(text)
    assert config["kind"] == "KubeletConfiguration"
    assert config["containerRuntimeEndpoint"] == "unix:///clusters/one/nodes/2/containerd.sock"

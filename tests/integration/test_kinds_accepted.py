"""What the API server accepts: upstream's manifests unchanged, the examples, and large groups."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.api.appgroup import API_VERSION, PLURAL, AppGroup
from hack.harness.cluster import REPOSITORY, Kubectl
from hack.localcluster import LocalCluster
from hack.localcluster.rest import Api, ApiError
from tests.support.kinds import app_group, network_topology, ref, weight_set, workload

UPSTREAM = sorted((REPOSITORY / "tests" / "data" / "upstream").glob("*.yaml"))
WORKLOADS = 10_000
EXAMPLES = sorted((REPOSITORY / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", UPSTREAM, ids=[path.stem for path in UPSTREAM])
def test_upstream_manifest_applies_unchanged(path: Path, kubectl: Kubectl) -> None:
    wanted = yaml.safe_load(path.read_text())
    kubectl("apply", "-f", str(path))
    # Nothing is dropped, added or rewritten: what a person wrote is what upstream's plugins read.
    assert kubectl.get(wanted["kind"].lower(), wanted["metadata"]["name"])["spec"] == wanted["spec"]


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_example_applies_without_a_warning(path: Path, kubectl: Kubectl) -> None:
    kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(path))
    kubectl("apply", "-f", str(path))


def test_the_command_in_example_four_makes_example_two_use_it(kubectl: Kubectl) -> None:
    text = (REPOSITORY / "examples" / "04-configmap-netperf.yaml").read_text()
    [command] = re.findall(r"^#   kubectl (patch .*)$", text, re.MULTILINE)
    for name in ("02-networktopology.yaml", "04-configmap-netperf.yaml"):
        kubectl("apply", "-f", str(REPOSITORY / "examples" / name))
    kubectl(*shlex.split(command))
    [only] = kubectl.get("nt")["items"]
    source = only["spec"]["configmapName"]
    assert len(kubectl.get("configmap", source)["data"]) == 12


LENIENT = [
    pytest.param({k: v for k, v in app_group().items() if k != "spec"}, id="appgroup-without-spec"),
    pytest.param(app_group(), id="no-workloads"),
    pytest.param(app_group(workload("a"), numMembers=2_147_483_647), id="more-members-than-workloads"),
    pytest.param(app_group(workload("a", "b"), workload("b", "a")), id="cycle"),
    pytest.param(app_group(workload("a", "b", "b"), workload("b")), id="same-dependency-twice"),
    pytest.param(app_group(workload("a", "b", minBandwidth=0), workload("b")), id="bandwidth-zero"),
    pytest.param(
        app_group(workload("a", "b", minBandwidth="9223372036854775807"), workload("b")), id="bandwidth-largest"
    ),
    pytest.param(app_group({"workload": ref("a"), "dependencies": []}), id="empty-dependencies"),
    pytest.param({k: v for k, v in network_topology().items() if k != "spec"}, id="networktopology-without-spec"),
    pytest.param(network_topology(weight_set(a={"b": 2**62})), id="cost-of-64-bits"),
    pytest.param(
        network_topology(weight_set(a={"b": {"networkCost": 1, "bandwidthCapacity": "0.000000000000000000000001E"}})),
        id="long-capacity",
    ),
]


@pytest.mark.parametrize("raw", LENIENT)
def test_unusual_objects_that_upstream_accepts(raw: dict[str, Any], kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", input=json.dumps(raw))
    assert kubectl.get(raw["kind"].lower(), raw["metadata"]["name"]).get("spec") == raw.get("spec")


@pytest.fixture
def write(cluster: LocalCluster, namespace: str) -> Iterator[Callable[..., Any]]:
    """``write(method, body, suffix)`` on the namespace's AppGroups, past kubectl's slow checks of large objects."""
    api = Api(cluster.server, token=cluster.token, ca_file=cluster.ca_file, timeout=240)
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}"
    types = {"POST": "application/json", "PATCH": "application/merge-patch+json"}

    def request(method: str, body: dict[str, Any], suffix: str = "") -> Any:
        return api.request(method, path + suffix, body, content_type=types[method])

    yield request
    api.close()


def test_the_longest_list_of_workloads_is_accepted_and_ordered_in_the_status(write: Callable[..., Any]) -> None:
    # 10,000 workloads by short names, in the spec and in the status, just fit into etcd's 1.5 MiB.
    names = [f"w{number}" for number in range(WORKLOADS)]
    slim = [{"workload": {"kind": "D", "name": name, "selector": name}} for name in names]
    write("POST", app_group(*slim, name="large"))
    order = [{"workload": item["workload"], "index": index} for index, item in enumerate(slim, start=1)]
    stored = AppGroup.parse(write("PATCH", {"status": {"topologyOrder": order}}, "/large/status"))
    assert len(stored.spec.workloads) == WORKLOADS
    assert [entry.index for entry in stored.status.topology_order] == list(range(1, WORKLOADS + 1))


def test_a_group_beyond_etcds_limit_is_refused_in_words(write: Callable[..., Any]) -> None:
    long = [workload(f"{number:05}-{'x' * 57}") for number in range(WORKLOADS)]
    with pytest.raises(ApiError, match="too large"):
        write("POST", app_group(*long, name="huge"))

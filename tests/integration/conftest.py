"""Fixtures of the integration tests: a real control plane, started once per run.

cluster
    Session. A `LocalCluster` (etcd, kube-apiserver with RBAC, kube-controller-manager, KWOK; no kube-scheduler) with
    everything in crds/ installed. It has no nodes until somebody asks for `simulated_nodes`. Removed at the end, after
    Ctrl-C as well; if pytest itself is killed, the kernel kills the components with it. Shared by all tests: do not
    stop, restart or reconfigure it, use `fresh_cluster` for that.
simulated_nodes
    Session. Names of the 24 nodes of hack/topologies/demo.yaml in `cluster`: zones eu-west-a, eu-west-b, us-east-a,
    us-east-b, six nodes of 4 CPUs and 16 GiB each. Shared: a test that changes a node uses its own cluster.
namespace
    Function. Name of a fresh namespace in `cluster`, with its default service account; deleted afterwards, unawaited.
kubectl
    Function. `Kubectl` bound to `cluster` and `namespace`.
fresh_cluster
    Function. ``fresh_cluster(**arguments)`` starts a further control plane, with the arguments of `LocalCluster.start`
    (``nodes=``, ``scheduler=``, ...) and ``crds=False`` to leave the kinds out; removed at the end of the test.
module_cluster
    Module. The same factory, its clusters living until the module's end.
eight_nodes
    Module. A control plane without KWOK, with the eight nodes of `tests.support.costs`.
networktopology_controller
    Module. The networktopology controller that leads in `eight_nodes`, at the pace `BRISK`; tests that need it say so
    with ``usefixtures``.
lively
    Module. A control plane of the module's own, with KWOK.
latency_process
    Module. The latency controller that works in `lively`.
costs
    Function. `Costs` of a fresh namespace in `eight_nodes`, whichever controller runs there.

The logs of every component stay in pytest's temporary directory, whose path a failing start names;
``BERTH_KEEP_CLUSTERS=1`` leaves the clusters of fixtures running for a look around.
"""

from __future__ import annotations

import itertools
import os
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from hack.harness.cluster import DEMO_TOPOLOGY, Kubectl, eventually, install_crds
from hack.harness.forks import forking
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.chosen_constants import BRISK, chosen_constants
from tests.support.costs import Costs, create_nodes
from tests.support.placing import BARE

LONG: Final = (
    "placement_restarts",
    "etcd_restore",
    "networktopology_recovery",
    "latency_controller",
    "latency_recovery",
    "latency_published",
    "pinning_faults",
    "networktopology_segments",
    "placement_bandwidth",
    "networktopology_clock",
    "node_agent",
    "node_agent_clock",
    "latency_each_user",
    "placement_races",
)
"""Files of few tests that take longest, most of a minute or more: they begin first, since one of them that is left for
the end is waited for by processes that have nothing to do."""

_numbers = itertools.count(1)

# A quarter of what a control plane does until it is ready is to collect garbage.
os.environ.setdefault("GOGC", "400")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, then those of most tests."""
    tests = Counter(item.path for item in items)
    ranks = {path: (rank_of(path), -count) for path, count in tests.items()}
    items.sort(key=lambda item: ranks[item.path])


def rank_of(path: Path) -> int:
    """Place of a file among the longest."""
    name = path.stem.removeprefix("test_")
    return LONG.index(name) if name in LONG else len(LONG)


def _report(message: str) -> None:
    # sys.__stderr__ is the real one: a first build takes minutes, and pytest would show nothing of it.
    print(message, file=sys.__stderr__, flush=True)


@contextmanager
def _clusters(root: Path) -> Iterator[Callable[..., LocalCluster]]:
    """A factory of clusters below *root*, all of them removed at the end."""
    keep = bool(os.environ.get("BERTH_KEEP_CLUSTERS"))
    made: list[str] = []

    def start(*, crds: bool = True, **arguments: Any) -> LocalCluster:
        name = f"test-{os.getpid()}-{next(_numbers)}"
        made.append(name)
        arguments = {"die_with_parent": not keep, "report": _report, **arguments}
        cluster = LocalCluster.start(name, root=root, **arguments)
        if crds:
            install_crds(cluster)
        return cluster

    try:
        yield start
    finally:
        for name in made:
            if keep:
                _report(f"left running: KUBECONFIG={root / name / 'kubeconfig'}")
            else:
                LocalCluster.remove(name, root=root, keep_logs=True)


@pytest.fixture(scope="session", autouse=True)
def _forking() -> Iterator[None]:
    """Controllers are forked, of which some two hundred start."""
    with forking():
        yield


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """The control plane that the tests share."""
    with _clusters(tmp_path_factory.mktemp("clusters")) as start:
        yield start()


@pytest.fixture(scope="session")
def simulated_nodes(cluster: LocalCluster) -> list[str]:
    """Names of the shared simulated nodes."""
    return cluster.create_nodes(DEMO_TOPOLOGY)


@pytest.fixture
def namespace(cluster: LocalCluster) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"t-{secrets.token_hex(5)}"
    api = cluster.api()
    api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    eventually(lambda: api.healthy(account), what=f"default service account of {name}")
    api.close()  # the API server does by itself what the test takes longer than
    yield name
    api.request("DELETE", f"/api/v1/namespaces/{name}")
    api.close()


@pytest.fixture
def kubectl(cluster: LocalCluster, namespace: str) -> Kubectl:
    """Run kubectl in the test's namespace."""
    return Kubectl(cluster, namespace)


@pytest.fixture
def fresh_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., LocalCluster]]:
    """Factory of clusters that live as long as the test."""
    with _clusters(tmp_path_factory.mktemp("clusters")) as start:
        yield start


@pytest.fixture(scope="module")
def module_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., LocalCluster]]:
    """Factory of clusters that live as long as the module."""
    with _clusters(tmp_path_factory.mktemp("clusters")) as start:
        yield start


@pytest.fixture(scope="module")
def own_cluster(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A control plane of the module's own, for what works on all objects of a kind."""
    return module_cluster(**BARE)


@pytest.fixture(scope="module")
def lively(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A control plane of the module's own, with KWOK."""
    return module_cluster()


@pytest.fixture(scope="module")
def latency_process(lively: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    """The latency controller, working."""
    directory = tmp_path_factory.mktemp("controller")
    arguments = ["--no-leader-elect", "--latency-listen", "127.0.0.1", "--latency-port", "0"]
    with ControllerProcess.start(
        ["latency"], kubeconfig=lively.kubeconfig, directory=directory, arguments=arguments
    ) as process:
        yield process.wait_ready(timeout=180)


@pytest.fixture(scope="module")
def eight_nodes(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A control plane with eight nodes."""
    cluster = module_cluster(kwok=False)
    create_nodes(cluster)
    return cluster


@pytest.fixture(scope="module")
def networktopology_controller(
    eight_nodes: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerProcess]:
    """The networktopology controller, working."""
    directory = tmp_path_factory.mktemp("controller")
    brisk = chosen_constants(directory / "constants", **BRISK)
    with ControllerProcess.start(
        ["networktopology"], kubeconfig=eight_nodes.kubeconfig, directory=directory, environment=brisk
    ) as process:
        yield process.wait_leader().wait_ready()


@pytest.fixture
def costs(eight_nodes: LocalCluster) -> Iterator[Costs]:
    """A namespace of the test's own for a NetworkTopology."""
    name = f"t-{secrets.token_hex(5)}"
    eight_nodes.kubectl("create", "namespace", name)
    yield Costs(Kubectl(eight_nodes, name))
    eight_nodes.kubectl("delete", "namespace", name, "--wait=false")

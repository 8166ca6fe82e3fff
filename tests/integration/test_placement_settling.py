"""Everything applied at once, in any order: the first placement uses the network data that came with it.

Who waits, how long and what ends it: tests/unit/berth/scheduling/test_settling.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from hack.harness.cluster import DEMO_TOPOLOGY, REPOSITORY, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.chosen_constants import PATIENT, chosen_constants
from tests.support.placing import Stage

FILES = ("01-appgroup-online-boutique", "02-networktopology", "03-online-boutique-deployments")
CONTROLLERS = ["appgroup", "networktopology", "placement"]
TRIES = 12


@pytest.fixture(scope="module")
def controllers(
    module_cluster: Callable[..., LocalCluster], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LocalCluster, ControllerProcess]]:
    """A cluster with the demo's nodes and all controllers; within the usual seconds a busy machine does little."""
    cluster = module_cluster()
    cluster.create_nodes(DEMO_TOPOLOGY)
    directory = tmp_path_factory.mktemp("controllers")
    with ControllerProcess.start(
        CONTROLLERS,
        kubeconfig=cluster.kubeconfig,
        directory=directory,
        arguments=["--no-leader-elect"],
        environment=chosen_constants(directory / "constants", **PATIENT),
    ) as process:
        yield cluster, process.wait_ready()


@pytest.mark.parametrize("seed", range(TRIES))
def test_whatever_the_order_of_files_the_plan_uses_the_network(
    controllers: tuple[LocalCluster, ControllerProcess], seed: int
) -> None:
    cluster, process = controllers
    stage = Stage(cluster)
    files = random.Random(seed).sample(FILES, k=len(FILES))
    arguments = [f"--filename={REPOSITORY / 'examples' / name}.yaml" for name in files]
    cluster.kubectl("-n", stage.name, "apply", *arguments)
    eventually(lambda: len(stage.bound()) == 11, timeout=150, what="eleven pods bound")
    for name in stage.pods():
        network = stage.decision(name)["network"]
        assert network["topology"] == f"{stage.name}/net-topology", files
        assert "Dijkstra" in network["weights"], files
    forget(stage, cluster, process)


def test_measurements_and_edits_applied_with_an_application_are_used_as_well(
    controllers: tuple[LocalCluster, ControllerProcess],
) -> None:
    """The NetworkTopology is there, with weights computed; its edit, the application and the measurements come now."""
    cluster, process = controllers
    stage = Stage(cluster)
    examples = REPOSITORY / "examples"
    cluster.kubectl("-n", stage.name, "apply", f"--filename={examples / FILES[1]}.yaml")
    weights = ("-n", stage.name, "get", "networktopology", "net-topology", "--output=jsonpath={.status.weightSets}")
    eventually(lambda: "Dijkstra" in cluster.kubectl(*weights).stdout, timeout=150, what="weights of the first spec")
    documents: list[dict[str, Any]] = []
    for name in FILES:
        documents += yaml.safe_load_all((examples / f"{name}.yaml").read_text())
    documents += yaml.safe_load_all((examples / "04-configmap-netperf.yaml").read_text())
    next(item for item in documents if item["kind"] == "NetworkTopology")["spec"]["configmapName"] = "netperf-metrics"
    applied = yaml.safe_dump_all(documents)
    cluster.kubectl("-n", stage.name, "apply", "--server-side", "--force-conflicts", "--filename=-", input=applied)
    eventually(lambda: len(stage.bound()) == 11, timeout=150, what="eleven pods bound")
    for name in stage.pods():
        assert stage.decision(name)["network"]["weights"] == ["Dijkstra", "NetperfCosts"]
    forget(stage, cluster, process)


def forget(stage: Stage, cluster: LocalCluster, process: ControllerProcess) -> None:
    """The next try has to do without this network."""
    cluster.kubectl("-n", stage.name, "delete", "deployments,appgroups,networktopologies", "--all")
    eventually(
        lambda: process.metric("berth_cached_objects", resource="networktopologies") == 0,
        timeout=150,
        what="the network is gone",
    )

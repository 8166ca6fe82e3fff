"""Fixtures of the end-to-end tests: Berth on real nodes, started once for all files that need it.

deployed
    Package. Three real nodes with all of Berth, available. Whoever disturbs them puts them in order again.
latency
    Package. The same with the latency controller, which leads from then on.
stage
    Package. A `Stage` there: a namespace with the NetworkTopology ``net`` of what is measured.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hack.harness.cluster import REPOSITORY
from hack.localcluster import LocalCluster, Options
from hack.localcluster.kubelets import berth_image
from tests.support.berth_nodes import roll_out
from tests.support.near_users import latency_deployed
from tests.support.placing import Stage
from tests.support.real_nodes import require_real_nodes


@pytest.fixture(scope="package")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three real nodes with all of Berth."""
    root = tmp_path_factory.mktemp("k")
    require_real_nodes(root)
    with LocalCluster.start("berth", root=root, options=Options(kubelets=3)) as cluster:
        archive = root / "berth.tar"
        berth_image.write(archive, berth_image.TAG)
        cluster.load_images([archive])
        archive.unlink()
        cluster.kubectl("apply", "--server-side", "-k", str(REPOSITORY / "deploy"))
        roll_out(cluster)
        yield cluster


@pytest.fixture(scope="package")
def latency(deployed: LocalCluster) -> Iterator[LocalCluster]:
    """The nodes with the latency controller."""
    with latency_deployed(deployed):
        yield deployed


@pytest.fixture(scope="package")
def stage(deployed: LocalCluster) -> Iterator[Stage]:
    """A namespace with a NetworkTopology of what is measured, and what its applications cost in three zones."""
    stage = Stage(deployed)
    stage.apply(
        {
            "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
            "kind": "NetworkTopology",
            "metadata": {"name": "net"},
            "spec": {"configmapName": "", "weights": []},
        }
    )
    yield stage
    # The server has closed a connection that was idle for long.
    stage.api.close()
    stage.close()

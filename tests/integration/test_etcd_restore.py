"""etcd restored from a backup under running controllers: what they know is what the API server has then.

The plainest restore there is, without the options that make all watches expire: the API server takes watches from
versions that it has not reached yet, says nothing until it has, and leaves out what was in between.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.appgroups import AppGroups
from tests.support.backups import Backup
from tests.support.faults import Fault, FaultProxy
from tests.support.placing import BARE, Stage, chain

CONTROLLERS = ["placement", "appgroup", "networktopology"]


def test_what_comes_after_a_restore_is_placed_and_reported(
    fresh_cluster: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    cluster = fresh_cluster(**BARE)
    stage = Stage(cluster)
    groups = AppGroups(cluster, stage.name)

    def order(name: str) -> list[str]:
        document = groups.get(name)
        status = document.get("status", {})
        if status.get("observedGeneration") != document["metadata"]["generation"]:
            return []
        return sorted(entry["workload"]["name"] for entry in status["topologyOrder"])

    def reconnect() -> None:
        stage.api.close()
        groups.reconnect()

    stage.nodes("n1", cpu="1")
    stage.costs()
    with ControllerProcess.start(
        CONTROLLERS, kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=["--no-leader-elect"]
    ) as controllers:
        controllers.wait_ready()
        stage.apply(chain("web", "db"))
        eventually(lambda: order("shop"), accept=lambda names: names == ["db", "web"], what="the first status")
        backup = Backup(cluster, tmp_path)
        reconnect()
        # More versions than are given anew by the time that the watches go on.
        for number in range(100):
            body = {"metadata": {"name": f"c{number}"}}
            stage.api.request("POST", f"/api/v1/namespaces/{stage.name}/configmaps", body)
        stage.pod("unmade", cpu="900m")
        stage.wait_bound("unmade")
        stage.apply(chain("web", "db", "cache"))
        eventually(lambda: len(order("shop")), accept=lambda count: count == 3, what="a status of three workloads")
        backup.restore()
        reconnect()
        assert list(stage.pods()) == []
        # Its room is free again, and one that nobody bound any more is there.
        stage.pod("after", cpu="900m")
        stage.apply(chain("x", "y", name="later"))
        stage.apply(chain("web", "queue"))
        stage.wait_bound("after", timeout=150)
        eventually(lambda: order("later"), accept=lambda names: names == ["x", "y"], timeout=150, what="a new AppGroup")
        eventually(lambda: order("shop"), accept=lambda names: names == ["queue", "web"], timeout=150, what="an edit")
        assert controllers.running


def test_a_history_that_is_beyond_that_of_the_watches_is_noticed_by_the_lease(
    fresh_cluster: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    """The API server is reached only when its versions have passed those of before: watches would go on."""
    cluster = fresh_cluster(**BARE)
    stage = Stage(cluster)
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{stage.name}/leases/berth-placement"
    arguments = ["--lease-namespace", stage.name, "--lease-duration", "60"]

    def placing(kubeconfig: Path) -> ControllerProcess:
        return ControllerProcess.start(["placement"], kubeconfig=kubeconfig, directory=tmp_path, arguments=arguments)

    def renewed() -> str:
        return str(stage.api.request("GET", lease)["spec"]["renewTime"])

    stage.nodes("n1")
    with FaultProxy(cluster, directory=tmp_path) as proxy, placing(proxy.kubeconfig) as controller:
        controller.wait_leader().wait_ready()
        backup = Backup(cluster, tmp_path)
        stage.api.close()
        before = renewed()
        eventually(renewed, accept=lambda time: time != before, what="a renewal that the backup does not have")
        stage.pod("unmade")
        stage.wait_bound("unmade")
        unreached = proxy.add(Fault.RESET, method="GET", path=r"(?!.*/leases/).*")
        backup.restore()
        stage.api.close()
        stage.pod("missed")
        for number in range(100):
            body = {"metadata": {"name": f"c{number}"}}
            stage.api.request("POST", f"/api/v1/namespaces/{stage.name}/configmaps", body)
        proxy.release(unreached)
        eventually(lambda: controller.running, accept=lambda running: not running, timeout=150, what="its end")
        assert "it was restored from a backup" in controller.tail()
    with placing(Path(cluster.kubeconfig)):
        stage.wait_bound("missed", timeout=150)


def test_a_binding_that_is_lost_before_the_watch_shows_it_is_made_again(
    fresh_cluster: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    """The pod is in the backup, its Binding is not; the watches that go on afterwards list the pod as it was known."""
    cluster = fresh_cluster(**BARE)
    stage = Stage(cluster)
    pods = "/api/v1/pods"
    stage.nodes("n1", cpu="1")
    with (
        FaultProxy(cluster, directory=tmp_path) as proxy,
        ControllerProcess.start(
            ["placement"], kubeconfig=proxy.kubeconfig, directory=tmp_path, arguments=["--no-leader-elect"]
        ) as controller,
    ):
        controller.wait_ready()
        held = proxy.add(Fault.HOLD)
        stage.pod("lost", cpu="900m")
        proxy.wait_hits(held)
        backup = Backup(cluster, tmp_path)
        stage.api.close()
        # From here on the watch of pods tells nothing.
        silent = proxy.add(Fault.SILENCE, method="GET", path=pods)
        proxy.cut_watches()
        proxy.wait_hits(silent, 2)
        proxy.release(held)
        eventually(
            lambda: controller.metric("berth_placement_bindings_total", outcome="bound"),
            accept=lambda count: count == 1,
            what="an answer to the binding",
        )
        assert stage.bound() == {"lost": "n1"}
        stage.api.close()
        backup.restore()
        stage.api.close()
        assert stage.bound() == {}
        proxy.release(silent)
        proxy.cut_watches()
        assert stage.wait_bound("lost", timeout=120) == {"lost": "n1"}
        # The proxy notes a binding once it has its answer, which is after others can see it.
        eventually(
            lambda: [binding.pod for binding in proxy.bindings],
            accept=lambda pods: pods == ["lost", "lost"],
            what="two bindings",
        )
        assert "binding lost" in controller.tail()

"""The schedulers that are compared, each as a process of its own."""

from __future__ import annotations

import re
from pathlib import Path

from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster


class KubeScheduler:
    """The peer: kube-scheduler with clientConnection qps and burst of 5000."""

    scheduler_name = "default-scheduler"

    def __init__(self, cluster: LocalCluster, _directory: Path) -> None:
        """Remember the cluster."""
        self._cluster = cluster
        self._started = False

    def start(self) -> list[int]:
        """Start it; returns its pid."""
        self._cluster.start_scheduler()
        self._started = True
        return [self._cluster.process("kube-scheduler").pid]

    def decision_p99(self) -> float:
        """Not comparable: its own metric leaves out what ours includes."""
        return float("nan")

    def stop(self) -> None:
        """Stop it."""
        if self._started:
            self._cluster.stop_scheduler()


class Berth:
    """``berth run placement`` as a process of its own."""

    scheduler_name = "berth-scheduler"

    def __init__(
        self, cluster: LocalCluster, directory: Path, *, checkout: Path | None = None, config: Path | None = None
    ) -> None:
        """Remember the cluster, the checkout whose code runs if it is not this one's, and the configuration file."""
        self._cluster = cluster
        self._arguments = ("--placement-config", str(config.resolve())) if config is not None else ()
        self._directory = directory
        self._checkout = checkout
        self._process: ControllerProcess | None = None

    def start(self) -> list[int]:
        """Start it and wait until it is ready; returns its pid."""
        self._process = ControllerProcess.start(
            ["placement"],
            kubeconfig=self._cluster.kubeconfig,
            directory=self._directory,
            checkout=self._checkout,
            arguments=self._arguments,
        )
        self._process.wait_ready(timeout=120)
        return [self._process.process.pid]

    def decision_p99(self) -> float:
        """Planning time per pod, from its metrics."""
        return histogram_bound(self.metrics(), "berth_placement_decision_per_pod_seconds", 0.99)

    def metrics(self) -> str:
        """Everything that it measures; empty before its start."""
        return self._process.get("/metrics")[1] if self._process is not None else ""

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None:
            self._process.stop()


def histogram_bound(metrics: str, name: str, share: float) -> float:
    """Upper bound of the bucket that holds the given share of a Prometheus histogram's observations."""
    buckets = [
        (float(bound), float(count))
        for bound, count in re.findall(rf'^{name}_bucket{{le="([^"]+)"}} (\S+)$', metrics, flags=re.MULTILINE)
    ]
    total = max((count for _, count in buckets), default=0.0)
    return next((bound for bound, count in sorted(buckets) if total and count >= share * total), float("nan"))


BASELINE = "berth-before"
"""Label of Berth from another checkout."""
CONTENDERS = ("kube-scheduler", "berth")
"""Labels of those that are compared by default."""


def contender(
    label: str, cluster: LocalCluster, directory: Path, *, baseline: Path | None, config: Path | None = None
) -> KubeScheduler | Berth:
    """Make a contender by its label; `config` is Berth's."""
    if label == "kube-scheduler":
        return KubeScheduler(cluster, directory)
    return Berth(cluster, directory, checkout=baseline if label == BASELINE else None, config=config)

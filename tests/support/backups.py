"""Backups of a cluster's etcd, and what happens when one is put back under running controllers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.localcluster import LocalCluster


class Backup:
    """The data of a cluster's etcd, as it was at one moment."""

    def __init__(self, cluster: LocalCluster, directory: Path) -> None:
        """Take it; the API server is away meanwhile, and its callers have to connect again."""
        self._cluster = cluster
        self._kept = directory / "etcd-backup"
        self._data = cluster.layout.home / "etcd"
        with self._stopped():
            shutil.copytree(self._data, self._kept)

    def restore(self) -> None:
        """Put it back: whatever was written since has never been, and versions are given anew."""
        with self._stopped():
            shutil.rmtree(self._data)
            shutil.copytree(self._kept, self._data)

    @contextmanager
    def _stopped(self) -> Iterator[None]:
        self._cluster.stop_component("kube-apiserver", grace=0)
        self._cluster.stop_component("etcd")
        yield
        self._cluster.start_component("etcd")
        self._cluster.start_component("kube-apiserver")

"""What integration tests share: their control plane, its simulated nodes, and small things to do with kubectl.

The fixtures themselves are in tests/integration/conftest.py, which also documents them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from hack.harness.reading import Reader
from hack.localcluster import LocalCluster

REPOSITORY = Path(__file__).resolve().parents[2]
DEMO_TOPOLOGY = REPOSITORY / "hack" / "topologies" / "demo.yaml"
CRDS = REPOSITORY / "crds"
PATIENCE = 120.0
"""Seconds that a state is waited for which takes a second or two, however busy the machine is."""

_readers: WeakKeyDictionary[LocalCluster, Reader] = WeakKeyDictionary()

Result = TypeVar("Result")


def _reader(cluster: LocalCluster) -> Reader:
    if cluster not in _readers:
        _readers[cluster] = Reader(cluster.api())
    return _readers[cluster]


class Kubectl:
    """kubectl against one cluster and one namespace, as the administrator."""

    def __init__(self, cluster: LocalCluster, namespace: str) -> None:
        """Remember where the commands go."""
        self._cluster = cluster
        self.namespace = namespace

    def __call__(self, *args: str, input: str | None = None, check: bool = True) -> str:  # noqa: A002
        """Run it and return its standard output; ClusterError with kubectl's message if it fails and *check* is set."""
        return self._cluster.kubectl("-n", self.namespace, *args, input=input, check=check).stdout

    def refused(self, *args: str, input: str | None = None) -> str:  # noqa: A002
        """Run it, expect that it fails, and return its error output."""
        answer = self._cluster.kubectl("-n", self.namespace, *args, input=input, check=False)
        assert answer.returncode != 0, f"kubectl {' '.join(args)} succeeded:\n{answer.stdout}"
        return answer.stderr

    def get(self, *args: str) -> Any:
        """``kubectl get ARGS -o json``, decoded; mostly without a process, see :mod:`hack.harness.reading`."""
        found = None
        with suppress(OSError):  # kubectl says what is wrong
            found = _reader(self._cluster).get(self.namespace, args)
        return json.loads(self("get", *args, "-o", "json")) if found is None else found

    def apply(self, *objects: dict[str, Any]) -> None:
        """Apply *objects* on the server's side, taking over fields that conflict."""
        document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self("apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(document))


def install_crds(cluster: LocalCluster, directory: Path = CRDS) -> list[str]:
    """Apply every manifest in *directory* and wait until its kinds are served; return the file names."""
    files = sorted(directory.glob("*.yaml"))
    if files:
        cluster.kubectl("apply", "--server-side", *(f"--filename={path}" for path in files))
        cluster.kubectl(
            "wait", "--for=condition=Established", "--timeout=100s", *(f"--filename={path}" for path in files)
        )
    return [path.name for path in files]


def eventually(
    probe: Callable[[], Result],
    *,
    accept: Callable[[Result], bool] = bool,
    timeout: float = PATIENCE,
    what: str = "condition",
) -> Result:
    """Call *probe* until *accept* takes its result and return that; AssertionError after *timeout* seconds."""
    deadline = time.monotonic() + timeout
    while True:
        result = probe()
        if accept(result):
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} not reached within {timeout:.0f} s; last seen: {result!r}")
        time.sleep(0.05)


def bound_pod(name: str, node: str, **spec: Any) -> dict[str, Any]:
    """Pod that is bound to *node* from its creation, past any scheduler."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "registry.invalid/main:1"}], **spec},
    }

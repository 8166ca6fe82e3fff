"""One local control plane: started, inspected, disturbed and removed."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from hack.localcluster import nodes as simulated
from hack.localcluster import processes, topology
from hack.localcluster.components import Layout, Options
from hack.localcluster.errors import ClusterError
from hack.localcluster.instance import Instance, locked
from hack.localcluster.kubelets import images
from hack.localcluster.kubelets import processes as real_nodes
from hack.localcluster.launch import Launcher
from hack.localcluster.paths import check_name, clusters_root
from hack.localcluster.processes import ProcessRecord
from hack.localcluster.removal import kill_all
from hack.localcluster.rest import Api

Nodes = Path | str | Sequence[topology.NodeSpec]
"""A topology file, or the nodes parsed from one."""


def _quiet(_message: str) -> None:
    """Report nothing."""


@dataclass(frozen=True, kw_only=True)
class ComponentStatus:
    """State of one component."""

    name: str
    """Component, as in ``etcd``."""
    state: str
    """``running``, ``dead`` (was started and is gone) or ``absent`` (never started)."""
    port: int
    """Its port, 0 if it has none of its own on this machine."""
    pid: int
    """Its process id, 0 unless running."""
    rss: int
    """Resident memory in bytes."""
    cpu_seconds: float
    """Processor time used so far in seconds."""
    log: str
    """Its log file."""


class LocalCluster:
    """A control plane of its own in a directory of its own.

    `start` makes one, `open` finds one that was started before; as a context manager
    it is stopped and removed at the end of the block.
    """

    def __init__(
        self, instance: Instance, *, die_with_parent: bool = False, report: Callable[[str], None] = _quiet
    ) -> None:
        """Use `start` or `open` instead."""
        self._instance = instance
        self._report = report
        self._launcher = Launcher(instance, die_with_parent=die_with_parent, report=report)

    # -- making, finding, removing ------------------------------------------------------------------------------

    @classmethod
    def start(
        cls,
        name: str | None = None,
        *,
        root: Path | None = None,
        nodes: Nodes | None = None,
        scheduler: bool | Path | str = False,
        kwok: bool = True,
        options: Options | None = None,
        die_with_parent: bool = False,
        report: Callable[[str], None] = _quiet,
    ) -> LocalCluster:
        """Start an instance and return when it is ready.

        An instance of that name that exists already is completed: what does not run is started again with the
        options it was made with (and kube-scheduler, if asked for now), so its objects are still there.

        Args:
            name: name of the instance; a random one by default.
            root: directory that holds the instance's directory; the shared one of ``hack/cluster`` by default.
            nodes: simulated nodes to create.
            scheduler: run kube-scheduler; a path is its KubeSchedulerConfiguration.
            kwok: run KWOK, without which no simulated node or pod ever changes.
            options: the finer choices; *scheduler* and *kwok* are added to them.
            die_with_parent: the kernel kills every component when the calling thread ends, however it ends (Linux).
            report: receives progress lines.

        Raises:
            ClusterError: a tool cannot be built, or a component does not become ready; its log's end is in the message.
        """
        chosen = options or Options()
        own_config = None if isinstance(scheduler, bool) else str(Path(scheduler).resolve())
        chosen = replace(
            chosen,
            scheduler=bool(scheduler) or chosen.scheduler,
            scheduler_config=own_config or chosen.scheduler_config,
            kwok=kwok and chosen.kwok,
        )
        # Everything that can be wrong with the input is looked at before anything starts.
        specs = _specs(nodes) if nodes is not None else []
        home = (root or clusters_root()).resolve() / check_name(name or f"c{secrets.token_hex(4)}")
        if chosen.kubelets:
            real_nodes.check(home)
            if specs:
                raise ClusterError("real nodes and simulated ones do not mix: give either kubelets or a topology file")
        home.mkdir(parents=True, exist_ok=True)
        with locked(home):
            if Instance.exists(home):
                instance = Instance.load(home)
                if chosen.kubelets not in (0, instance.options.kubelets):
                    raise ClusterError(
                        f"cluster {home.name} has {instance.options.kubelets} real nodes, not {chosen.kubelets}: "
                        "remove it first, or start it without a number"
                    )
                if chosen.scheduler and not instance.options.scheduler:
                    instance.options = replace(
                        instance.options, scheduler=True, scheduler_config=chosen.scheduler_config
                    )
                    instance.save()
            else:
                instance = Instance.create(home, real_nodes.options(chosen, home) if chosen.kubelets else chosen)
            cluster = cls(instance, die_with_parent=die_with_parent, report=report)
            try:
                cluster._launcher.start_all()
                if specs:
                    cluster.create_nodes(specs)
            except BaseException:
                # Nothing half-started goes on; the directory stays, for whoever looks for the reason in the logs.
                kill_all(home)
                raise
        return cluster

    @classmethod
    def open(cls, name: str, *, root: Path | None = None, report: Callable[[str], None] = _quiet) -> LocalCluster:
        """The instance *name* that was started before, running or not.

        Raises:
            ClusterError: there is none, or it is damaged.
        """
        return cls(Instance.load((root or clusters_root()).resolve() / check_name(name)), report=report)

    @staticmethod
    def names(root: Path | None = None) -> list[str]:
        """Names of all instances, running or not, also half-made ones."""
        directory = (root or clusters_root()).resolve()
        return sorted(entry.name for entry in directory.iterdir() if entry.is_dir()) if directory.is_dir() else []

    @staticmethod
    def remove(name: str, *, root: Path | None = None, keep_logs: bool = False) -> bool:
        """Kill everything of instance *name* and delete its directory, whatever state it is in.

        Args:
            name: the instance.
            root: directory that holds it.
            keep_logs: leave the ``logs`` directory.

        Returns:
            False if there was nothing to remove.
        """
        home = (root or clusters_root()).resolve() / check_name(name)
        survivors = kill_all(home)
        existed = home.exists()
        for entry in home.iterdir() if existed else ():
            if keep_logs and entry.name == "logs":
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink(missing_ok=True)
        if existed and not keep_logs:
            home.rmdir()
        return existed or survivors

    def stop(self, *, keep_logs: bool = False) -> None:
        """Kill every component and delete the instance's directory (except ``logs`` when *keep_logs*)."""
        self.remove(self.name, root=self.layout.home.parent, keep_logs=keep_logs)

    def __enter__(self) -> Self:
        """Return the instance itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop and remove the instance."""
        self.stop()

    # -- facts --------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the instance."""
        return self._instance.name

    @property
    def layout(self) -> Layout:
        """Its files."""
        return self._instance.layout

    @property
    def options(self) -> Options:
        """Its options."""
        return self._instance.options

    @property
    def server(self) -> str:
        """URL of the API server."""
        return self._instance.server

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig file of the administrator."""
        return self.layout.kubeconfig

    @property
    def ca_file(self) -> Path:
        """Certificate of the authority that signed the API server's certificate."""
        return self.layout.authority

    @property
    def token(self) -> str:
        """Bearer token of the administrator (group system:masters)."""
        return self._instance.token("admin")

    @property
    def components(self) -> list[str]:
        """Components this instance runs, in start order."""
        return self._instance.components

    def process(self, component: str) -> ProcessRecord:
        """Process of *component*: its ``pid``, ``alive``, ``rss`` (bytes) and ``cpu_seconds``.

        Raises:
            ClusterError: it was never started.
        """
        record = self._instance.record(component)
        if record is None:
            raise ClusterError(f"{component} was never started in {self.name}: it runs {', '.join(self.components)}")
        return record

    def status(self) -> list[ComponentStatus]:
        """State of every component of this instance."""
        found = []
        for name in self.components:
            record = self._instance.record(name)
            alive = record is not None and record.alive
            found.append(
                ComponentStatus(
                    name=name,
                    state="running" if alive else "dead" if record else "absent",
                    port=self._instance.ports.get(name, 0),
                    pid=record.pid if record and alive else 0,
                    rss=record.rss if record else 0,
                    cpu_seconds=record.cpu_seconds if record else 0.0,
                    log=str(self.layout.log(name)),
                )
            )
        return found

    # -- use ----------------------------------------------------------------------------------------------------

    def api(self, *, token: str | None = None) -> Api:
        """A connection to the API server as the administrator, or with *token*."""
        return Api(self.server, token=self.token if token is None else token, ca_file=self.ca_file)

    def kubectl(
        self,
        *args: str,
        input: str | None = None,  # noqa: A002 (as subprocess.run calls it)
        check: bool = True,
        kubeconfig: Path | None = None,
        timeout: float = 120.0,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl and return its outcome, output captured as text.

        Args:
            args: its arguments.
            input: text for its standard input.
            check: raise when it fails.
            kubeconfig: whom to act as; the administrator by default.
            timeout: seconds that it may take.

        Raises:
            ClusterError: it failed and *check* is set; the message has its error output.
        """
        answer = subprocess.run(
            [str(self._launcher.tool("kubectl")), f"--kubeconfig={kubeconfig or self.kubeconfig}", *args],
            input=input,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        if check and answer.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(args)}: exit status {answer.returncode}: {answer.stderr.strip()}")
        return answer

    def service_account_kubeconfig(self, namespace: str, name: str, *, path: Path | None = None) -> Path:
        """Kubeconfig with a fresh token of that service account, which must exist; for testing what its RBAC allows.

        Args:
            namespace: the service account's namespace.
            name: the service account.
            path: the file to write; one below the instance's directory by default.
        """
        answer = self.api().request(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}},
        )
        target = path or self.layout.pki / f"{namespace}.{name}.kubeconfig"
        self._instance.write_kubeconfig(target, user=name, token=answer["status"]["token"])
        return target

    def create_nodes(self, source: Nodes) -> list[str]:
        """Create simulated nodes; return the names of the new ones (those that exist already are left alone)."""
        specs = _specs(source)
        page = self.api().request("GET", "/api/v1/nodes?limit=1")
        offset = len(page["items"]) + page["metadata"].get("remainingItemCount", 0)
        begun = time.monotonic()
        made, existing = simulated.create(self.api, simulated.manifests(specs, offset=offset))
        note = f", {len(existing)} existed already" if existing else ""
        self._report(f"created {len(made)} nodes in {time.monotonic() - begun:.1f} s{note}")
        return made

    def load_images(self, archives: Sequence[Path]) -> None:
        """Import the images in *archives*, as of `docker save`, on every real node.

        Raises:
            ClusterError: containerd refuses one.
        """
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: images.load(node, archives), self._instance.nodes))

    def delete_nodes(self, source: Nodes) -> list[str]:
        """Delete the nodes of *source*; return the names of those that were there."""
        return simulated.delete(self.api, simulated.manifests(_specs(source)))[0]

    # -- disturbing ---------------------------------------------------------------------------------------------

    def start_component(self, component: str) -> None:
        """Start *component* and return when it is ready; nothing happens if it runs."""
        self._launcher.start([component])

    def stop_component(self, component: str, *, grace: float = 10.0) -> None:
        """Stop *component*: SIGTERM, and SIGKILL after *grace* seconds (at once when 0)."""
        processes.stop([self.process(component)], grace=grace)

    def kill_apiserver(self) -> None:
        """SIGKILL kube-apiserver and leave it down; `start_component` brings it back on the same port."""
        self.stop_component("kube-apiserver", grace=0)

    def restart_apiserver(self, *, grace: float = 10.0) -> None:
        """Stop kube-apiserver and start it again on the same port; returns when it is ready."""
        self.stop_component("kube-apiserver", grace=grace)
        self.start_component("kube-apiserver")

    def start_scheduler(self, config: Path | str | None = None) -> None:
        """Start kube-scheduler, with the KubeSchedulerConfiguration file *config* if given; replaces one that runs."""
        own = str(Path(config).resolve()) if config else None
        self._instance.options = replace(self.options, scheduler=True, scheduler_config=own)
        self._instance.save()
        if self._instance.alive("kube-scheduler"):
            self.stop_component("kube-scheduler")
        self.start_component("kube-scheduler")

    def stop_scheduler(self) -> None:
        """Stop kube-scheduler for good; pods that ask for it then wait."""
        self.stop_component("kube-scheduler")
        self._instance.options = replace(self.options, scheduler=False)
        self._instance.save()


def _specs(source: Nodes) -> Sequence[topology.NodeSpec]:
    return topology.load(Path(source)) if isinstance(source, str | Path) else source

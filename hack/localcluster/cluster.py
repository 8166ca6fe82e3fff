"""One local control plane: started, inspected, disturbed and removed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from hack.localcluster import components, credentials, nodes, ports, processes, tools, topology
from hack.localcluster.components import Layout, Options
from hack.localcluster.errors import ClusterError
from hack.localcluster.paths import check_name, clusters_root
from hack.localcluster.processes import ProcessRecord
from hack.localcluster.rest import Api

READY_TIMEOUT = 60.0
"""Seconds that a component may take until it is ready."""
_ATTEMPTS = 5
"""Starts of one component when its port turns out to be taken."""
_PORT_TAKEN = ("address already in use", "bind: permission denied")


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
    """Its port."""
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

    `start` makes one, `open` finds one that runs already; as a context manager it is
    stopped and removed at the end of the block.
    """

    def __init__(
        self,
        home: Path,
        *,
        options: Options,
        allocated: dict[str, int],
        die_with_parent: bool = False,
        report: Callable[[str], None] = _quiet,
    ) -> None:
        """Use `start` or `open` instead."""
        self.layout = Layout(home=home)
        self.options = options
        self._ports = allocated
        self._die_with_parent = die_with_parent
        self._report = report
        self._tools: dict[str, Path] = {}

    # -- making and finding -------------------------------------------------------------------------------------

    @classmethod
    def start(
        cls,
        name: str | None = None,
        *,
        root: Path | None = None,
        nodes: Path | str | Sequence[topology.NodeSpec] | None = None,
        scheduler: bool | Path = False,
        kwok: bool = True,
        options: Options | None = None,
        die_with_parent: bool = False,
        report: Callable[[str], None] = _quiet,
    ) -> LocalCluster:
        """Start an instance and return when it is ready.

        An instance of that name that exists already is completed: what does not run is started again with the
        options it was made with, so its objects are still there.

        Args:
            name: name of the instance; a random one by default.
            root: directory that holds the instance's directory; the shared one of ``hack/cluster`` by default.
            nodes: topology file, or its nodes, to create as simulated nodes.
            scheduler: run kube-scheduler; a path is its KubeSchedulerConfiguration.
            kwok: run KWOK, without which no simulated node or pod ever changes.
            options: the finer choices; *scheduler* and *kwok* are added to them.
            die_with_parent: the kernel kills every component when the calling thread's process ends, however it ends.
            report: receives progress lines.

        Raises:
            ClusterError: a tool cannot be built, or a component does not become ready; its log's end is in the message.
        """
        chosen = options or Options()
        chosen = replace(
            chosen,
            scheduler=bool(scheduler) or chosen.scheduler,
            scheduler_config=str(Path(scheduler).resolve())
            if isinstance(scheduler, str | Path)
            else chosen.scheduler_config,
            kwok=kwok and chosen.kwok,
        )
        specs = topology.load(Path(nodes)) if isinstance(nodes, str | Path) else nodes
        home = (root or clusters_root()).resolve() / check_name(name or f"c{secrets.token_hex(4)}")
        home.mkdir(parents=True, exist_ok=True)
        with _locked(home):
            if (home / "instance.json").exists():
                cluster = cls.open(home.name, root=home.parent, report=report)
                cluster._die_with_parent = die_with_parent
                if chosen.scheduler and not cluster.options.scheduler:
                    cluster.options = replace(cluster.options, scheduler=True, scheduler_config=chosen.scheduler_config)
            else:
                held = _reserved_ports(home.parent)
                free = ports.allocate(len(components.PORTS), avoid=held)
                allocated = dict(zip(components.PORTS, free, strict=True))
                cluster = cls(home, options=chosen, allocated=allocated, die_with_parent=die_with_parent, report=report)
                cluster._create_credentials()
                cluster._save()
            try:
                cluster._start_all()
                if specs:
                    cluster.create_nodes(specs)
            except BaseException:
                # Nothing half-started stays behind; directory and logs do, for whoever looks for the reason.
                processes.kill_marked(cluster._mark)
                raise
        return cluster

    @classmethod
    def open(cls, name: str, *, root: Path | None = None, report: Callable[[str], None] = _quiet) -> LocalCluster:
        """The instance *name* that was started before, running or not.

        Raises:
            ClusterError: there is none.
        """
        home = (root or clusters_root()).resolve() / check_name(name)
        try:
            document = json.loads((home / "instance.json").read_text())
            for key in ("apiserver_args", "controller_manager_args"):
                document["options"][key] = tuple(document["options"][key])
            return cls(home, options=Options(**document["options"]), allocated=document["ports"], report=report)
        except FileNotFoundError as error:
            raise ClusterError(f"there is no cluster {name!r} in {home.parent}: see hack/cluster list") from error
        except (ValueError, KeyError, TypeError) as error:
            raise ClusterError(
                f"{home} is damaged ({error!r}): remove it with hack/cluster down --name {name}"
            ) from error

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
        survivors = processes.kill_marked(str(home))
        records: list[ProcessRecord] = []
        for path in (home / "processes").glob("*.json"):
            # A damaged record has nothing to tell; the mark above found its process.
            with contextlib.suppress(ClusterError):
                records.append(ProcessRecord.load(path))
        processes.stop(records)
        existed = home.exists()
        for entry in home.iterdir() if existed else ():
            if keep_logs and entry.name == "logs":
                continue
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink(missing_ok=True)
        if existed and not keep_logs:
            home.rmdir()
        return existed or bool(survivors)

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
        return self.layout.home.name

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://{self.options.bind_address}:{self._ports['kube-apiserver']}"

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
        return self._token("admin")

    def _token(self, user: str) -> str:
        for line in self.layout.tokens.read_text().splitlines():
            token, owner, _ = line.split(",", 2)
            if owner == user:
                return token
        raise ClusterError(f"{self.layout.tokens} has no token of {user}: remove the cluster and start it again")

    @property
    def _mark(self) -> str:
        return str(self.layout.home)

    @property
    def components(self) -> list[str]:
        """Components this instance runs, in start order."""
        wanted = {
            "kube-controller-manager": self.options.controller_manager,
            "kube-scheduler": self.options.scheduler,
            "kwok": self.options.kwok,
        }
        return [name for name in components.PORTS if wanted.get(name, True)]

    def process(self, component: str) -> ProcessRecord:
        """Process of *component*: its ``pid``, ``alive``, ``rss`` (bytes) and ``cpu_seconds``.

        Raises:
            ClusterError: it was never started.
        """
        path = self.layout.record(component)
        if not path.exists():
            raise ClusterError(f"{component} was never started in {self.name}: it runs {', '.join(self.components)}")
        return ProcessRecord.load(path)

    def status(self) -> list[ComponentStatus]:
        """State of every component of this instance."""
        found = []
        for name in self.components:
            record = self.process(name) if self.layout.record(name).exists() else None
            alive = record is not None and record.alive
            found.append(
                ComponentStatus(
                    name=name,
                    state="running" if alive else "dead" if record else "absent",
                    port=self._ports[name],
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
        return Api(self.server, token=token if token is not None else self.token, ca_file=self.ca_file)

    def kubectl(
        self,
        *args: str,
        input: str | None = None,
        check: bool = True,
        timeout: float = 120.0,  # noqa: A002
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator and return its outcome, output captured as text.

        Args:
            args: its arguments.
            input: text for its standard input.
            check: raise when it fails.
            timeout: seconds that it may take.

        Raises:
            ClusterError: it failed and *check* is set; the message has its error output.
        """
        answer = subprocess.run(
            [str(self._tool("kubectl")), f"--kubeconfig={self.kubeconfig}", *args],
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
        self._write_kubeconfig(target, user=name, token=answer["status"]["token"])
        return target

    def create_nodes(self, source: Path | str | Sequence[topology.NodeSpec]) -> list[str]:
        """Create the simulated nodes of a topology file (or its parsed nodes); return the names of the new ones."""
        specs = topology.load(Path(source)) if isinstance(source, str | Path) else source
        page = self.api().request("GET", "/api/v1/nodes?limit=1")
        offset = len(page["items"]) + page["metadata"].get("remainingItemCount", 0)
        begun = time.monotonic()
        made, existing = nodes.create(self.api, nodes.manifests(specs, offset=offset))
        note = f", {len(existing)} existed already" if existing else ""
        self._report(f"created {len(made)} nodes in {time.monotonic() - begun:.1f} s{note}")
        return made

    def delete_nodes(self, source: Path | str | Sequence[topology.NodeSpec]) -> list[str]:
        """Delete the nodes of a topology file (or its parsed nodes); return the names of those that were there."""
        specs = topology.load(Path(source)) if isinstance(source, str | Path) else source
        return nodes.delete(self.api, nodes.manifests(specs))[0]

    # -- starting and disturbing --------------------------------------------------------------------------------

    def start_component(self, component: str) -> None:
        """Start *component* and return when it is ready; nothing happens if it runs.

        Raises:
            ClusterError: it ends or does not become ready.
        """
        if self.layout.record(component).exists() and self.process(component).alive:
            return
        for attempt in range(_ATTEMPTS):
            try:
                self._launch(component)
                return
            except _PortTakenError:
                if attempt == _ATTEMPTS - 1:
                    raise
                self._ports[component] = ports.allocate(1, avoid=_reserved_ports(self.layout.home.parent))[0]
                self._report(f"{component}: its port was taken meanwhile, trying {self._ports[component]}")
                self._save()

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
        self.options = replace(
            self.options, scheduler=True, scheduler_config=str(Path(config).resolve()) if config else None
        )
        self._save()
        if self.layout.record("kube-scheduler").exists():
            self.stop_component("kube-scheduler")
        self.start_component("kube-scheduler")

    def stop_scheduler(self) -> None:
        """Stop kube-scheduler; pods that ask for it then wait."""
        self.stop_component("kube-scheduler")
        self.layout.record("kube-scheduler").unlink(missing_ok=True)
        self.options = replace(self.options, scheduler=False)
        self._save()

    def _start_all(self) -> None:
        begun = time.monotonic()
        # Building may take minutes, so it all happens before the first process starts.
        self._tools = tools.ensure([*self.components, "kubectl"], report=self._report)
        begun = time.monotonic()
        for component in self.components:
            self.start_component(component)
        if self.options.controller_manager:
            api = self.api()
            self._wait(
                "the service account of namespace default",
                lambda: api.healthy("/api/v1/namespaces/default/serviceaccounts/default"),
            )
        self._save()
        self._report(f"cluster {self.name} is ready after {time.monotonic() - begun:.1f} s")

    def _launch(self, component: str) -> None:
        layout = self.layout
        if component == "kube-scheduler":
            layout.config(component).write_text(components.scheduler_config(layout, self.options.scheduler_config))
        log = layout.log(component)
        offset = log.stat().st_size if log.exists() else 0
        record = processes.spawn(
            component,
            [
                str(self._tool(component)),
                *components.arguments(component, layout, self._ports, self.options),
            ],
            mark=self._mark,
            log=log,
            record=layout.record(component),
            cwd=layout.home,
            die_with_parent=self._die_with_parent,
        )
        self._wait(component, self._probe(component), record=record, offset=offset)
        self._report(f"{component} is ready (pid {record.pid}, port {self._ports[component]})")

    def _probe(self, component: str) -> Callable[[], bool]:
        port = self._ports[component]
        if component == "kube-apiserver":
            return self._apiserver_ready
        if component in ("etcd", "kwok"):
            path = "/health" if component == "etcd" else "/healthz"
            return lambda: Api(f"http://127.0.0.1:{port}", timeout=2).healthy(path)
        return lambda: Api(f"https://127.0.0.1:{port}", timeout=2).healthy("/healthz")

    def _apiserver_ready(self) -> bool:
        certificate = self.layout.pki / "apiserver.crt"
        if not certificate.exists():
            return False
        try:
            authority = credentials.authority_of(certificate.read_text())
        except ClusterError:
            return False  # still being written
        if not self.layout.authority.exists() or self.layout.authority.read_text() != authority:
            self.layout.authority.write_text(authority)
        if not self.api().healthy("/readyz"):
            return False
        self._write_kubeconfigs()
        return True

    def _wait(
        self, what: str, ready: Callable[[], bool], *, record: ProcessRecord | None = None, offset: int = 0
    ) -> None:
        deadline = time.monotonic() + READY_TIMEOUT
        while not ready():
            if record is not None and not record.alive:
                output = _tail(Path(record.log), offset)
                error = _PortTakenError if any(sign in output for sign in _PORT_TAKEN) else ClusterError
                raise error(f"{what} ended during its start; the end of {record.log}:\n{output[-1500:]}")
            if time.monotonic() > deadline:
                end = f"; the end of {record.log}:\n{_tail(Path(record.log), offset)[-1500:]}" if record else ""
                raise ClusterError(f"{what} is not ready after {READY_TIMEOUT:.0f} s{end}")
            time.sleep(0.03)

    def _tool(self, name: str) -> Path:
        if name not in self._tools:
            self._tools.update(tools.ensure([name], report=self._report))
        return self._tools[name]

    # -- files --------------------------------------------------------------------------------------------------

    def _create_credentials(self) -> None:
        for directory in ("logs", "processes", "pki"):
            (self.layout.home / directory).mkdir(exist_ok=True)
        self.layout.pki.chmod(0o700)
        credentials.write_private(self.layout.service_account_key, credentials.new_service_account_key())
        credentials.write_tokens(self.layout.tokens)

    def _write_kubeconfigs(self) -> None:
        self._write_kubeconfig(self.kubeconfig, user="admin", token=self.token)
        for component, user in (
            ("kube-controller-manager", "system:kube-controller-manager"),
            ("kube-scheduler", "system:kube-scheduler"),
            ("kwok", "kwok"),
        ):
            self._write_kubeconfig(self.layout.component_kubeconfig(component), user=user, token=self._token(user))

    def _write_kubeconfig(self, path: Path, *, user: str, token: str) -> None:
        credentials.write_kubeconfig(
            path,
            server=self.server,
            authority=self.ca_file.read_text(),
            token=token,
            user=user,
            name=f"berth-{self.name}",
        )

    def _save(self) -> None:
        document: Mapping[str, Any] = {"name": self.name, "ports": self._ports, "options": asdict(self.options)}
        temporary = self.layout.home / "instance.tmp"
        temporary.write_text(json.dumps(document, indent=1))
        temporary.replace(self.layout.home / "instance.json")


class _PortTakenError(ClusterError):
    """A component could not bind its port."""


def _tail(log: Path, offset: int) -> str:
    with log.open("rb") as content:
        content.seek(offset)
        return content.read().decode(errors="replace")


def _reserved_ports(root: Path) -> set[int]:
    """Ports of all instances below *root*, running or not: a stopped one may come back."""
    found: set[int] = set()
    for path in root.glob("*/instance.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            found.update(json.loads(path.read_text())["ports"].values())
    return found


@contextlib.contextmanager
def _locked(home: Path) -> Iterator[None]:
    """One starter of an instance at a time; the kernel frees the lock when its holder dies."""
    descriptor = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

"""Starting the components of an instance: spawn, wait until ready, change the port when somebody else has it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from hack.localcluster import components, processes, tools
from hack.localcluster.errors import ClusterError
from hack.localcluster.instance import Instance
from hack.localcluster.kubelets import packages
from hack.localcluster.kubelets import processes as nodes
from hack.localcluster.processes import ProcessRecord
from hack.localcluster.rest import Api

READY_TIMEOUT = 180.0
"""Seconds that a component may take until it is ready."""
ATTEMPTS = 5
"""Starts of one component when its port turns out to be taken."""
_PORT_TAKEN = "address already in use"
_POLL = 0.03


class _PortTakenError(ClusterError):
    """A component could not bind its port."""


class Launcher:
    """Starts components of one instance."""

    def __init__(self, instance: Instance, *, die_with_parent: bool, report: Callable[[str], None]) -> None:
        """Prepare; nothing starts yet.

        Args:
            instance: whose components.
            die_with_parent: see `processes.spawn`.
            report: receives progress lines.
        """
        self._instance = instance
        self._die_with_parent = die_with_parent
        self._report = report
        self._tools: dict[str, Path] = {}

    def tool(self, name: str) -> Path:
        """Path of a program, built if need be."""
        if name not in self._tools:
            self._tools.update(tools.ensure([name], report=self._report))
        return self._tools[name]

    def start_all(self) -> None:
        """Start every component that does not run and return when all are ready."""
        # Building may take minutes, so all of it happens before the first process starts.
        wanted = [name for name in self._instance.components if name in components.PORTS]
        real = nodes.TOOLS if self._instance.nodes else ()
        self._tools = tools.ensure([*wanted, *real, "kubectl"], report=self._report)
        begun = time.monotonic()
        if self._instance.nodes:
            nodes.prepare(self._instance)
        first = [name for name in wanted if name in ("etcd", "kube-apiserver")]
        for component in first:
            self.start([component])
        last = [name for name in self._instance.components if name.startswith("kubelet-")]
        self.start([name for name in self._instance.components if name not in (*first, *last)])
        if self._instance.nodes:
            nodes.load_pause(self._instance, self.tool("pause"))
            self.start(last)
        if self._instance.options.controller_manager:
            api = self.admin()
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            self._wait("the service account of namespace default", lambda: api.healthy(account))
            api.close()
        self._report(f"cluster {self._instance.name} is ready after {time.monotonic() - begun:.1f} s")

    def start(self, names: Iterable[str]) -> None:
        """Start those of *names* that do not run, all at once, and return when they are ready.

        Raises:
            ClusterError: one ends or does not become ready; the message has the end of its log.
        """
        spawned = [(name, *self._spawn(name)) for name in names if not self._instance.alive(name)]
        for name, first, offset in spawned:
            record = self._wait_or_move(name, first, offset)
            port = self._instance.ports.get(name)
            self._report(f"{name} is ready (pid {record.pid}{f', port {port}' if port else ''})")

    def _wait_or_move(self, component: str, record: ProcessRecord, offset: int) -> ProcessRecord:
        """Wait until *component* is ready, on another port if its own is taken; return the record of what runs now."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._wait(component, self._probe(component, offset), record=record, offset=offset)
                break
            except _PortTakenError:
                # The port of an API server that ran before is in kubeconfigs out there, so it is never changed.
                fixed = component == "kube-apiserver" and self._instance.layout.kubeconfig.exists()
                if fixed or attempt == ATTEMPTS:
                    raise
                self._report(f"{component}: its port is taken, trying port {self._instance.new_port(component)}")
                record, offset = self._spawn(component)
        return record

    def _spawn(self, component: str) -> tuple[ProcessRecord, int]:
        """Start the process; return its record and where in its log this run begins."""
        instance, layout = self._instance, self._instance.layout
        if component == "kube-scheduler":
            text = components.scheduler_config(layout, instance.options.scheduler_config)
            layout.config(component).write_text(text)
        log = layout.log(component)
        offset = log.stat().st_size if log.exists() else 0
        record = processes.spawn(
            component,
            self._command(component),
            mark=instance.mark,
            log=log,
            record=layout.record(component),
            cwd=layout.home,
            die_with_parent=self._die_with_parent,
            env={"PATH": packages.search_path()},
        )
        return record, offset

    def _command(self, component: str) -> list[str]:
        instance = self._instance
        part = nodes.node_of(instance, component)
        if part:
            return nodes.command(instance, *part, kubelet=self.tool("kubelet"))
        arguments = components.arguments(component, instance.layout, instance.ports, instance.options)
        return [str(self.tool(component)), *arguments]

    def admin(self) -> Api:
        """A connection to the API server as the administrator."""
        return Api(self._instance.server, token=self._instance.token("admin"), ca_file=self._instance.layout.authority)

    def _probe(self, component: str, offset: int) -> Callable[[], bool]:
        part = nodes.node_of(self._instance, component)
        if part:
            log = self._instance.layout.log(component)
            return lambda: nodes.ready(*part, api=self.admin(), log=log, offset=offset)
        port = self._instance.ports[component]
        if component == "kube-apiserver":
            return self._apiserver_ready
        if component in ("etcd", "kwok"):
            path = "/health" if component == "etcd" else "/healthz"
            return lambda: Api(f"http://127.0.0.1:{port}", timeout=2).healthy(path)
        return lambda: Api(f"https://127.0.0.1:{port}", timeout=2).healthy("/healthz")

    def _apiserver_ready(self) -> bool:
        if not self._instance.take_authority() or not self.admin().healthy("/readyz"):
            return False
        self._instance.write_kubeconfigs()
        return True

    def _wait(
        self, what: str, ready: Callable[[], bool], *, record: ProcessRecord | None = None, offset: int = 0
    ) -> None:
        deadline = time.monotonic() + READY_TIMEOUT
        while True:
            # Looked at before the probe: a healthy answer of somebody else's server on our port must not count.
            ended = record is not None and not record.alive
            if record is not None and ended:
                output = tail(Path(record.log), offset)
                error = _PortTakenError if _PORT_TAKEN in output else ClusterError
                raise error(f"{what} ended during its start; the end of {record.log}:\n{output[-1500:]}")
            if ready() and (record is None or record.alive):
                return
            if time.monotonic() > deadline:
                end = f"; the end of {record.log}:\n{tail(Path(record.log), offset)[-1500:]}" if record else ""
                raise ClusterError(f"{what} is not ready after {READY_TIMEOUT:.0f} s{end}")
            time.sleep(_POLL)


def tail(log: Path, offset: int) -> str:
    """Text of *log* from byte *offset* on."""
    with log.open("rb") as content:
        content.seek(offset)
        return content.read().decode(errors="replace")

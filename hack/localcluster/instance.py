"""The directory of an instance: its options, ports, credentials and process records. Starts and stops nothing."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hack.localcluster import components, credentials, ports
from hack.localcluster.components import Layout, Options
from hack.localcluster.errors import ClusterError
from hack.localcluster.kubelets import names
from hack.localcluster.processes import ProcessRecord


class Instance:
    """What is known about an instance, kept in ``instance.json`` and the files around it."""

    def __init__(self, layout: Layout, *, options: Options, allocated: dict[str, int]) -> None:
        """Use `create` or `load` instead.

        Args:
            layout: its files.
            options: its options.
            allocated: port of every component, also of those that do not run.
        """
        self.layout = layout
        self.options = options
        self.ports = allocated

    @classmethod
    def create(cls, home: Path, options: Options) -> Instance:
        """Lay out the directory *home*, which exists, with fresh ports and credentials."""
        free = ports.allocate(len(components.PORTS), avoid=reserved_ports(home.parent))
        made = cls(Layout(home=home), options=options, allocated=dict(zip(components.PORTS, free, strict=True)))
        for directory in ("logs", "processes", "pki"):
            (home / directory).mkdir(exist_ok=True)
        made.layout.pki.chmod(0o700)
        credentials.write_private(made.layout.service_account_key, credentials.new_service_account_key())
        credentials.write_tokens(made.layout.tokens, [node.name for node in made.nodes])
        made.save()
        return made

    @classmethod
    def load(cls, home: Path) -> Instance:
        """Read the instance in *home*.

        Raises:
            ClusterError: there is none, or its file is damaged.
        """
        try:
            document = json.loads((home / "instance.json").read_text())
            for key in ("apiserver_args", "controller_manager_args"):
                document["options"][key] = tuple(document["options"][key])
            return cls(Layout(home=home), options=Options(**document["options"]), allocated=document["ports"])
        except FileNotFoundError as error:
            raise ClusterError(f"there is no cluster {home.name!r} in {home.parent}: see hack/cluster list") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            remedy = f"remove it with hack/cluster down --name {home.name}"
            raise ClusterError(f"{home} is damaged ({error!r}): {remedy}") from error

    @staticmethod
    def exists(home: Path) -> bool:
        """Whether *home* holds an instance."""
        return (home / "instance.json").exists()

    def save(self) -> None:
        """Write options and ports, atomically."""
        document = {"name": self.name, "ports": self.ports, "options": asdict(self.options)}
        temporary = self.layout.home / "instance.tmp"
        temporary.write_text(json.dumps(document, indent=1))
        temporary.replace(self.layout.home / "instance.json")

    @property
    def name(self) -> str:
        """Name of the instance."""
        return self.layout.home.name

    @property
    def mark(self) -> str:
        """Value of `processes.MARK` in the environment of its processes."""
        return str(self.layout.home)

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://{self.options.bind_address}:{self.ports['kube-apiserver']}"

    @property
    def components(self) -> list[str]:
        """Components it runs, in start order."""
        wanted = {
            "kube-controller-manager": self.options.controller_manager,
            "kube-scheduler": self.options.scheduler,
            "kwok": self.options.kwok,
        }
        parts = [f"{part}-{node.number}" for part in names.PARTS for node in self.nodes]
        return [*(name for name in components.PORTS if wanted.get(name, True)), *parts]

    @property
    def nodes(self) -> list[names.Node]:
        """Its real nodes."""
        return names.nodes(self.layout.home, self.options.kubelets)

    def record(self, component: str) -> ProcessRecord | None:
        """Record of the last start of *component*, None if it was never started."""
        path = self.layout.record(component)
        return ProcessRecord.load(path) if path.exists() else None

    def alive(self, component: str) -> bool:
        """Whether *component* runs."""
        record = self.record(component)
        return record is not None and record.alive

    def new_port(self, component: str) -> int:
        """Give *component* another port, save and return it."""
        self.ports[component] = ports.allocate(1, avoid=reserved_ports(self.layout.home.parent))[0]
        self.save()
        return self.ports[component]

    def token(self, user: str) -> str:
        """Bearer token of *user*.

        Raises:
            ClusterError: there is no such user.
        """
        for line in self.layout.tokens.read_text().splitlines():
            token, owner, _ = line.split(",", 2)
            if owner == user:
                return token
        raise ClusterError(f"{self.layout.tokens} has no token of {user}: remove the cluster and start it again")

    def take_authority(self) -> bool:
        """Copy the authority out of the API server's serving certificate; False while there is no complete one."""
        try:
            authority = credentials.authority_of((self.layout.pki / "apiserver.crt").read_text())
        except (OSError, ClusterError):
            return False
        if not self.layout.authority.exists() or self.layout.authority.read_text() != authority:
            self.layout.authority.write_text(authority)
        return True

    def write_kubeconfigs(self) -> None:
        """Write the kubeconfig files of the administrator and of the components."""
        self.write_kubeconfig(self.layout.kubeconfig, user="admin", token=self.token("admin"))
        for component in ("kube-controller-manager", "kube-scheduler", "kwok"):
            user = component if component in credentials.USERS else f"system:{component}"
            self.write_kubeconfig(self.layout.component_kubeconfig(component), user=user, token=self.token(user))
        for node in self.nodes:
            self.write_kubeconfig(node.kubeconfig, user=node.user, token=self.token(node.user))

    def write_kubeconfig(self, path: Path, *, user: str, token: str) -> None:
        """Write a kubeconfig of this API server for *user* with *token* to *path*."""
        credentials.write_kubeconfig(
            path,
            server=self.server,
            authority=self.layout.authority.read_text(),
            token=token,
            user=user,
            name=f"berth-{self.name}",
        )


def reserved_ports(root: Path) -> set[int]:
    """Ports of all instances below *root*, running or not: a stopped one may come back."""
    return {port for found in _reserved(root) for port in found["ports"]}


def reserved_addresses(root: Path) -> set[str]:
    """Addresses of the API servers of all instances below *root*, running or not."""
    return {found["address"] for found in _reserved(root)}


def _reserved(root: Path) -> Iterator[dict[str, Any]]:
    """Address and ports of the instances below *root* that can be read."""
    for path in root.glob("*/instance.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            document = json.loads(path.read_text())
            yield {"address": document["options"]["bind_address"], "ports": set(document["ports"].values())}


@contextlib.contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold the lock of the instance in *home*: one starter at a time; the kernel frees it when its holder dies."""
    descriptor = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

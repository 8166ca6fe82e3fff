"""Command lines and configuration files of the control plane's components. Nothing here starts anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hack.localcluster.errors import ClusterError

KWOK_STAGES = Path(__file__).with_name("kwok-stages.yaml")
"""What KWOK plays on simulated nodes and their pods."""

SIMULATED_NODE = ("kwok.x-k8s.io/node", "fake")
"""Annotation by which KWOK knows its nodes; it leaves all others alone."""

SCHEDULER_RATE = 5000
"""Requests per second and burst of kube-scheduler's client; its default of 50 would be what a comparison measures."""

PORTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
"""Components that listen, in start order."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What can be chosen about an instance."""

    bind_address: str = "127.0.0.1"
    """Address the API server listens on and is reached at; every other component stays on loopback."""
    scheduler: bool = False
    """Whether kube-scheduler runs."""
    scheduler_config: str | None = None
    """KubeSchedulerConfiguration file to use instead of the built-in one."""
    controller_manager: bool = True
    """Whether kube-controller-manager runs; without it, no service accounts, endpoints or garbage collection."""
    kwok: bool = True
    """Whether KWOK runs."""
    kubelets: int = 0
    """Number of real nodes."""
    priority_and_fairness: bool = True
    """API Priority and Fairness; when off, the plain limits on requests in flight apply."""
    max_requests_inflight: int = 3000
    """Reads that the API server serves at a time; its default of 400 is little for a benchmark of many clients."""
    max_mutating_requests_inflight: int = 1500
    """Writes that the API server serves at a time."""
    apiserver_args: tuple[str, ...] = field(default=())
    """Further flags of kube-apiserver; they come last and win."""
    controller_manager_args: tuple[str, ...] = field(default=())
    """Further flags of kube-controller-manager."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Files of an instance, all below its directory."""

    home: Path
    """The instance's directory."""

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator."""
        return self.home / "kubeconfig"

    @property
    def pki(self) -> Path:
        """Directory of kube-apiserver's certificate and all keys."""
        return self.home / "pki"

    @property
    def authority(self) -> Path:
        """Certificate of the authority that signed the API server's."""
        return self.pki / "ca.crt"

    @property
    def service_account_key(self) -> Path:
        """Private key that signs service account tokens."""
        return self.pki / "service-account.key"

    @property
    def tokens(self) -> Path:
        """Static token file."""
        return self.pki / "tokens.csv"

    def component_kubeconfig(self, component: str) -> Path:
        """Kubeconfig of a component."""
        return self.pki / f"{component}.kubeconfig"

    def config(self, component: str) -> Path:
        """Configuration file of a component."""
        return self.home / f"{component}.yaml"

    def log(self, component: str) -> Path:
        """Log of a component; restarts append."""
        return self.home / "logs" / f"{component}.log"

    def record(self, component: str) -> Path:
        """Process record of a component."""
        return self.home / "processes" / f"{component}.json"


def etcd_args(layout: Layout, ports: Mapping[str, int]) -> list[str]:
    """Flags of etcd: one member, durability traded for speed."""
    url = f"http://127.0.0.1:{ports['etcd']}"
    return [
        f"--data-dir={layout.home / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        "--listen-peer-urls=http://127.0.0.1:0",
        "--unsafe-no-fsync",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    ]


def apiserver_args(layout: Layout, ports: Mapping[str, int], options: Options) -> list[str]:
    """Flags of kube-apiserver."""
    key = layout.service_account_key
    fairness = str(options.priority_and_fairness).lower()
    return [
        f"--etcd-servers=http://127.0.0.1:{ports['etcd']}",
        f"--bind-address={options.bind_address}",
        f"--advertise-address={options.bind_address}",
        f"--secure-port={ports['kube-apiserver']}",
        f"--cert-dir={layout.pki}",
        # The kubernetes Service would need an endpoint, and loopback is not a valid one.
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.96.0.0/12",
        # A kubelet reads what its own pods name and nothing else.
        f"--authorization-mode={'Node,RBAC' if options.kubelets else 'RBAC'}",
        *(["--enable-admission-plugins=NodeRestriction"] if options.kubelets else []),
        # No name service knows the names of real nodes, by which it would ask for logs.
        *(["--kubelet-preferred-address-types=InternalIP"] if options.kubelets else []),
        "--anonymous-auth=false",
        f"--token-auth-file={layout.tokens}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        # Simulated nodes are created Ready; the plugin would taint them until the node controller has seen each one.
        "--disable-admission-plugins=TaintNodesByCondition",
        "--allow-privileged=true",
        # A restart takes a second or two: without these it waits up to a minute for open watches.
        "--shutdown-delay-duration=0s",
        "--shutdown-send-retry-after=true",
        "--shutdown-watch-termination-grace-period=1s",
        "--profiling=false",
        f"--enable-priority-and-fairness={fairness}",
        f"--max-requests-inflight={options.max_requests_inflight}",
        f"--max-mutating-requests-inflight={options.max_mutating_requests_inflight}",
        *options.apiserver_args,
    ]


def controller_manager_args(layout: Layout, ports: Mapping[str, int], options: Options) -> list[str]:
    """Flags of kube-controller-manager."""
    config = layout.component_kubeconfig("kube-controller-manager")
    return [
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports['kube-controller-manager']}",
        f"--cert-dir={layout.pki / 'kube-controller-manager'}",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={layout.service_account_key}",
        f"--root-ca-file={layout.authority}",
        # It writes a cache hint for kubelets on every node, again each time the cluster outgrows a threshold.
        "--controllers=*,-ttl-controller",
        "--kube-api-qps=2000",
        "--kube-api-burst=4000",
        "--concurrent-deployment-syncs=20",
        "--concurrent-replicaset-syncs=20",
        "--concurrent-gc-syncs=40",
        "--concurrent-namespace-syncs=20",
        # KWOK reports rarely, so that thousands of heartbeats do not drown a benchmark: no node is dead for that.
        *([] if options.kubelets else ["--node-monitor-grace-period=1h"]),
        *options.controller_manager_args,
    ]


def scheduler_args(layout: Layout, ports: Mapping[str, int], config: Path) -> list[str]:
    """Flags of kube-scheduler with the configuration file *config*."""
    kubeconfig = layout.component_kubeconfig("kube-scheduler")
    return [
        f"--config={config}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports['kube-scheduler']}",
        f"--cert-dir={layout.pki / 'kube-scheduler'}",
    ]


def scheduler_config(layout: Layout, own: str | None) -> str:
    """KubeSchedulerConfiguration as YAML: the file *own*, or the default, with what the instance decides filled in.

    Raises:
        ClusterError: *own* cannot be read or is of another kind.
    """
    document: dict[str, Any] = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    if own is not None:
        try:
            loaded = yaml.safe_load(Path(own).read_text())
        except (OSError, yaml.YAMLError) as error:
            raise ClusterError(f"{own}: cannot read the scheduler configuration: {error}") from error
        if not isinstance(loaded, dict) or loaded.get("kind") != document["kind"]:
            raise ClusterError(f"{own}: kind must be KubeSchedulerConfiguration")
        document = loaded
    connection = document.setdefault("clientConnection", {})
    connection.setdefault("qps", SCHEDULER_RATE)
    connection.setdefault("burst", SCHEDULER_RATE)
    connection["kubeconfig"] = str(layout.component_kubeconfig("kube-scheduler"))
    document.setdefault("leaderElection", {})["leaderElect"] = False
    return yaml.safe_dump(document, sort_keys=False)


def kwok_args(layout: Layout, ports: Mapping[str, int]) -> list[str]:
    """Flags of KWOK."""
    return [
        f"--kubeconfig={layout.component_kubeconfig('kwok')}",
        f"--config={KWOK_STAGES}",
        f"--manage-nodes-with-annotation-selector={'='.join(SIMULATED_NODE)}",
        "--manage-all-nodes=false",
        f"--server-address=127.0.0.1:{ports['kwok']}",
        "--cidr=10.0.0.0/8",
    ]


def arguments(component: str, layout: Layout, ports: Mapping[str, int], options: Options) -> Sequence[str]:
    """Flags of *component*, one of `PORTS`."""
    match component:
        case "etcd":
            return etcd_args(layout, ports)
        case "kube-apiserver":
            return apiserver_args(layout, ports, options)
        case "kube-controller-manager":
            return controller_manager_args(layout, ports, options)
        case "kube-scheduler":
            return scheduler_args(layout, ports, layout.config("kube-scheduler"))
        case "kwok":
            return kwok_args(layout, ports)
        case _:
            raise ClusterError(f"unknown component {component!r}: known are {', '.join(PORTS)}")

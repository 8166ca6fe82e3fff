"""A real Kubernetes control plane on this machine, without containers: see docs/local-cluster.md.

``hack/cluster`` is its command line; tests and benchmarks use `LocalCluster`.
"""

from hack.localcluster.cluster import ComponentStatus, LocalCluster
from hack.localcluster.components import Options
from hack.localcluster.errors import ClusterError
from hack.localcluster.processes import ProcessRecord
from hack.localcluster.topology import NodeSpec, TopologyError

__all__ = ["ClusterError", "ComponentStatus", "LocalCluster", "NodeSpec", "Options", "ProcessRecord", "TopologyError"]

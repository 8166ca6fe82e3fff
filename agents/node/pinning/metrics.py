"""Every metric of pinning."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

WRITES = Counter(
    "berth_pinning_writes", "Cpusets written: by the runtime, directly into the cgroup, or failed.", ["way"]
)
DRIFTS = Counter("berth_pinning_drifts", "Cpusets that somebody else had changed, written again.")
PODS = Gauge(
    "berth_pinning_pods", "Pods of the node that are wanted on a socket, by whether they have its CPUs.", ["state"]
)
GIVEN_UP = Gauge("berth_pinning_given_up_containers", "Containers whose CPUs somebody else changes again and again.")
OBSERVE_ONLY = Gauge("berth_pinning_observe_only", "1 while nothing is written since somebody else pins on the node.")
STATUS_WRITES = Counter("berth_socketstatus_writes", "Writes of the SocketStatus: written, failed.", ["outcome"])

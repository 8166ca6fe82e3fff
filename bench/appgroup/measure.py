"""Times between sending an AppGroup and seeing its status, taken on one clock in one process."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from berth.api.appgroup import API_VERSION, PLURAL
from hack.localcluster import LocalCluster

COLLECTION = f"/apis/{API_VERSION}/{PLURAL}"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Sample:
    """One apply and the status that followed."""

    acknowledged: float
    """seconds from sending the apply to the API server's answer"""
    status: float
    """seconds from sending the apply to a watch showing the status of that generation"""


class StatusWatch:
    """A watch of all AppGroups in a thread, which notes when each status of a generation was first seen."""

    def __init__(self, cluster: LocalCluster) -> None:
        """Begin with the present state of the collection."""
        api = cluster.api()
        version = api.request("GET", f"{COLLECTION}?limit=1")["metadata"]["resourceVersion"]
        api.close()
        server = urllib.parse.urlsplit(cluster.server)
        context = ssl.create_default_context(cafile=str(cluster.ca_file))
        self._connection = http.client.HTTPSConnection(server.hostname or "", server.port, context=context)
        self._connection.request(
            "GET",
            f"{COLLECTION}?watch=true&resourceVersion={version}&timeoutSeconds=3600",
            headers={"Authorization": f"Bearer {cluster.token}"},
        )
        self._stream = self._connection.getresponse()
        self._seen: dict[tuple[str, int], float] = {}
        self._arrived = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait(self, uid: str, generation: int, *, timeout: float = 60.0) -> float:
        """Return when the status of a generation was seen.

        Raises:
            TimeoutError: it was not seen in time.
        """
        key = (uid, generation)
        with self._arrived:
            if not self._arrived.wait_for(lambda: key in self._seen, timeout):
                raise TimeoutError(f"no status of generation {generation} of {uid} within {timeout:.0f} s")
            return self._seen[key]

    def close(self) -> None:
        """End the watch."""
        if self._connection.sock is not None:
            self._connection.sock.close()

    def _read(self) -> None:
        try:
            for line in self._stream:
                now = time.perf_counter()
                document = json.loads(line)["object"]
                observed = document.get("status", {}).get("observedGeneration")
                if observed is not None:
                    with self._arrived:
                        self._seen.setdefault((document["metadata"]["uid"], observed), now)
                        self._arrived.notify_all()
        except (OSError, ValueError):
            return  # closed


def measure(
    cluster: LocalCluster, watch: StatusWatch, *, manifests: Sequence[dict[str, Any]], pause: float
) -> list[Sample]:
    """Apply manifests one after the other, each when the status of the one before has been seen.

    Args:
        cluster: where.
        watch: running watch.
        manifests: what to apply; each must be a new generation of its object.
        pause: seconds between two applies, so that each meets a controller at rest.
    """
    api = cluster.api()
    found: list[Sample] = []
    for body in manifests:
        metadata = body["metadata"]
        path = f"/apis/{API_VERSION}/namespaces/{metadata['namespace']}/{PLURAL}/{metadata['name']}"
        sent = time.perf_counter()
        answer = api.request("PATCH", f"{path}?fieldManager=bench&force=true", body, content_type=APPLY)
        acknowledged = time.perf_counter()
        seen = watch.wait(answer["metadata"]["uid"], answer["metadata"]["generation"])
        found.append(Sample(acknowledged=acknowledged - sent, status=seen - sent))
        time.sleep(pause)
    api.close()
    return found


def percentile(values: list[float], share: float) -> float:
    """Return the nearest-rank percentile: the smallest value that at least ``share`` of all do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, -(-len(ranked) * round(share * 1000) // 1000) - 1)]

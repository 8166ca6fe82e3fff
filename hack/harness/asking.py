"""Users who ask a Service, one request after the other: ``python -m hack.harness.asking``, where the users are.

A pod that is ready is asked by lot, as kube-proxy does; nothing stands between, so that the pod sees the user's
connection. What fails is asked again, for a while, as browsers do, and is told. Where users have names, they ask in
turn, each with the name in the header `USER_HEADER`. Requests that do harm twice (POST) have one attempt, each with a
name of its own as body. A line of JSON for each request, until SIGTERM.
"""

from __future__ import annotations

import http.client
import itertools
import json
import random
import secrets
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from agents.router.endpoints import Backend, backends
from berth.kube.endpoint_slices import EndpointSlice
from hack.harness.metered import SERVED_BY
from hack.localcluster import ClusterError, LocalCluster
from hack.localcluster.rest import Api

USER_HEADER: Final = "X-User"
PATIENCE: Final = 20.0
"""Seconds after which a request has failed that nobody has answered."""
PAUSE: Final = 0.1
"""Seconds between attempts of a request, and before a watch that has ended is begun anew."""
_TIMEOUT: Final = 10.0


class Answer(NamedTuple):
    """What came of one request."""

    time: float
    """seconds since 1970 at which it began"""
    round_trip: float
    """milliseconds until the connection was made that was answered: one round trip"""
    node: str
    """node of the pod that answered; empty: none did"""
    failures: list[str]
    """why attempts before that failed"""
    user: str = ""
    """name of the user; empty: all are one"""
    served: str = ""
    """node of the application that answered, by its own words, where routers are asked"""
    sent: str = ""
    """name of a request that does harm twice; empty: it does none"""
    oldest: float = 0.0
    """seconds for which nothing had been heard of pods when an attempt began that failed; the most of all attempts"""
    unseen: str = ""
    """why nothing was heard"""


class _Event(msgspec.Struct):
    """metav1.WatchEvent."""

    type: str = ""
    object: Any = None


class Service:
    """Pods that are ready, by a watch, as kube-proxy hears of them."""

    def __init__(self, cluster: LocalCluster, namespace: str, name: str) -> None:
        """List them.

        Raises:
            ClusterError, OSError, ValueError: they could not be listed.
        """
        self._api = Api(cluster.server, token=cluster.token, ca_file=cluster.ca_file, timeout=_TIMEOUT)
        self._path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        self._path += f"?labelSelector=kubernetes.io/service-name%3D{name}"
        self._slices: dict[str, EndpointSlice] = {}
        self._blind_since: float | None = None
        self.backends: tuple[Backend, ...] = ()
        """those now"""
        self.unseen = ""
        """why nothing is heard at the moment; empty: all is"""
        self._list()

    @property
    def age(self) -> float:
        """Seconds for which nothing has been heard; 0 while a watch tells of all that changes."""
        return time.monotonic() - self._blind_since if self._blind_since is not None else 0.0

    def follow(self, stop: threading.Event) -> None:
        """Hear until `stop`, whatever comes in between."""
        while not stop.wait(PAUSE):
            self.hear()

    def hear(self) -> None:
        """List, and hear of changes until the watch ends; where the API server does not answer, all is as before."""
        begun = time.monotonic()
        try:
            version = self._list()
            for line in self._api.lines(f"{self._path}&watch=1&resourceVersion={version}"):
                begun = time.monotonic()
                self._take(line)
            self._blind_since = begun
        except (ClusterError, OSError, ValueError) as error:
            self._blind_since = begun if self._blind_since is None else self._blind_since
            self.unseen = f"{time.monotonic() - begun:.1f} s: {error!r}"

    def _list(self) -> str:
        """Take in what there is; returns its version."""
        found = self._api.request("GET", self._path)
        self._slices = {each.metadata.name: each for each in msgspec.convert(found["items"], list[EndpointSlice])}
        self.backends = backends(self._slices.values())
        self._blind_since, self.unseen = None, ""
        return str(found["metadata"]["resourceVersion"])

    def _take(self, line: bytes) -> None:
        """Take in a change."""
        event = msgspec.json.decode(line, type=_Event)
        if event.type == "ERROR":
            raise ClusterError(f"the watch ended: {line.decode(errors='replace').strip()}")
        found = msgspec.convert(event.object, EndpointSlice)
        self._slices.pop(found.metadata.name, None)
        if event.type != "DELETED":
            self._slices[found.metadata.name] = found
        self.backends = backends(self._slices.values())


def ask(service: Service, user: str = "", method: str = "GET") -> Answer:
    """Make one request, of a user who has a name or of anybody."""
    begun, failures, oldest, unseen = time.time(), list[str](), 0.0, ""
    sent = "" if method == "GET" else secrets.token_hex(8)
    while time.time() < begun + PATIENCE:
        age = service.age
        if service.backends:
            backend = random.choice(service.backends)
            try:
                seconds, served = _round_trip(backend, {USER_HEADER: user} if user else {}, method, sent)
                return Answer(begun, 1000 * seconds, backend.node, failures, user, served, sent, oldest, unseen)
            except (OSError, http.client.HTTPException) as error:
                failures.append(f"{backend.pod}: {error!r}")
                if sent:
                    oldest, unseen = age, service.unseen
                    break
        else:
            failures.append("no pod is ready")
        oldest, unseen = max(oldest, age), service.unseen or unseen
        time.sleep(PAUSE)
    return Answer(begun, 0.0, "", failures, user, "", sent, oldest, unseen)


def _round_trip(backend: Backend, headers: dict[str, str], method: str, body: str) -> tuple[float, str]:
    """Ask one pod; seconds that its connection took to be made, and what the answer says of who has served it.

    Raises:
        OSError, http.client.HTTPException: it did not answer, or with an error.
    """
    connection = http.client.HTTPConnection(*backend.address, timeout=_TIMEOUT)
    begun = time.monotonic()
    try:
        connection.connect()
        seconds = time.monotonic() - begun
        connection.request(method, "/", body=body or None, headers=headers)
        answer = connection.getresponse()
        answer.read()
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise http.client.HTTPException(f"status {answer.status}")
    return seconds, answer.getheader(SERVED_BY, "")


def main(name: str, root: str, namespace: str, service_name: str, interval: str, method: str, *users: str) -> None:
    """Ask until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    service = Service(LocalCluster.open(name, root=Path(root)), namespace, service_name)
    threading.Thread(target=service.follow, args=(stop,), daemon=True).start()
    for user in itertools.cycle(users or [""]):
        if stop.wait(float(interval)):
            return
        print(json.dumps(ask(service, user, method)._asdict()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

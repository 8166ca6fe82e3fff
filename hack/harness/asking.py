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
"""Seconds between attempts of a request, and between looks at what is ready."""
LOOK_SECONDS: Final = 2.0
"""Seconds that a look may take; then there is another one."""
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
    """seconds since the pods were last looked at when an attempt began that failed; the most of all attempts"""
    unseen: str = ""
    """why looks have failed since then"""


class Service:
    """Pods that are ready, looked at again and again."""

    def __init__(self, cluster: LocalCluster, namespace: str, name: str) -> None:
        """Look once."""
        # kube-proxy hears by itself. Who asks must not wait for an answer that does not come, as on a busy machine.
        self._api = Api(cluster.server, token=cluster.token, ca_file=cluster.ca_file, timeout=LOOK_SECONDS, retries=0)
        self._path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        self._path += f"?labelSelector=kubernetes.io/service-name%3D{name}"
        self.backends: tuple[Backend, ...] = ()
        """those now"""
        self.looked = time.monotonic()
        """when that was asked for, on the monotonic clock"""
        self.unseen = ""
        """why looks have failed since then"""
        self.look()

    def look(self) -> None:
        """Look; where the API server does not answer, all is as before."""
        now = time.monotonic()
        try:
            items: list[Any] = self._api.request("GET", self._path)["items"]
            self.backends = backends(msgspec.convert(items, list[EndpointSlice]))
        except (ClusterError, OSError, ValueError) as error:
            self.unseen = f"{time.monotonic() - now:.1f} s: {error!r}"
            return
        self.looked, self.unseen = now, ""

    def follow(self, stop: threading.Event) -> None:
        """Look until `stop`."""
        while not stop.wait(PAUSE):
            self.look()


def ask(service: Service, user: str = "", method: str = "GET") -> Answer:
    """Make one request, of a user who has a name or of anybody."""
    begun, failures, oldest, unseen = time.time(), list[str](), 0.0, ""
    sent = "" if method == "GET" else secrets.token_hex(8)
    while time.time() < begun + PATIENCE:
        age = time.monotonic() - service.looked
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

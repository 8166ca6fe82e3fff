"""What latency meters, routers and node agents tell the latency controller, and its answers: JSON over HTTPS.

Whoever asks shows the token of its service account, bound to its pod and made for :data:`AUDIENCE`; by that the
controller knows which pod, and which node, speaks. Where the controller is stands in a ConfigMap, :data:`CONFIGMAP`,
to be read again when it does not answer, or followed; 429 and 503 have a Retry-After. Users are keyed hashes. The
address of a user is told for reverse probes alone, and only where the policy allows these.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from enum import StrEnum
from typing import Final

import msgspec

AUDIENCE: Final = "latency.berth.dev"
"""Audience of the tokens that the controller accepts."""
ROUND_TRIPS_PATH: Final = "/v1/round-trips"
"""Where meters and routers post a :class:`RoundTrips`; the answer is :class:`Instructions`."""
PROBES_PATH: Final = "/v1/probes"
"""Where node agents post :class:`ProbeAnswers`; the answer is :class:`ProbeOrders`: of a message without answers, once
there are any."""
CONFIGMAP: Final = "berth-latency"
"""ConfigMap in the controller's namespace that says where it is; every service account may read it."""
CONFIGMAP_URL: Final = "url"
"""Its key for the address of the controller that leads, such as ``https://10.0.0.7:8443``."""
CONFIGMAP_CA: Final = "ca.crt"
"""Its key for the certificate that the controller shows, in PEM: trust it and no other."""
CONFIGMAP_INSTANCE: Final = "instance"
"""Its key for a random name of the controller's process: one that begins anew at the same address has another."""
SERVER_NAME: Final = "berth-latency"
"""Name in that certificate, to be expected whatever the address."""
PROBES_WAIT: Final = 30.0
"""Seconds after which a node agent that waits for orders is answered without any; it asks again."""
MAX_USERS: Final = 1000
"""Users of one message at most; more are told in several."""
MAX_SAMPLES: Final = 15
"""Round trips of one user in a message at most, the newest."""
MAX_INSTANCE: Final = 64
"""Characters of the name of a process at most."""
MAX_ADDRESS: Final = 45
"""Characters of an address at most; longer ones are none."""
HEADER_NAME: Final = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
"""Regular expression for names of headers (RFC 9110, 5.6.2)."""
MAX_IDENTITY_BYTES: Final = 4096
"""Bytes of an identity that are looked at."""


class IdentitySource(StrEnum):
    """What tells users from each other."""

    ADDRESS = "Address"
    """the address that the connection comes from"""
    HEADER = "Header"
    """a header of the request"""
    COOKIE = "Cookie"
    """a cookie of the request"""
    QUERY = "Query"
    """a parameter of the request's query"""


TRAVELS: Final = (IdentitySource.ADDRESS, IdentitySource.QUERY)
"""Identities that the router of another name sees, too: browsers send cookies to the name that set them, and drop
headers of scripts."""


class Identity(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """How a user is told from others."""

    source: IdentitySource = IdentitySource.ADDRESS
    """where to look; requests without it count by their address"""
    name: str = ""
    """name of the header, cookie or parameter"""


class UserRoundTrips(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """What was measured of one user since the last message."""

    user: str
    """keyed hash of the identity, :func:`hash_identity`"""
    microseconds: tuple[int, ...]
    """round trips, oldest first"""
    age: float = 0.0
    """seconds since the newest of them; ages and not times, so that no clocks are compared"""
    address: str = ""
    """IP address that the user's connection came from; empty where it is not told"""


class RoundTrips(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """A meter's or a router's report."""

    instance: str
    """random name of the process, told again in every message"""
    sequence: int
    """number of the message, one more each time; one that was told before is not counted twice"""
    users: tuple[UserRoundTrips, ...] = ()
    """users of whom there is news, :data:`MAX_USERS` at most"""
    policy: str = ""
    """of a router: the LatencyPolicy that it routes for, in its pod's namespace; empty: a meter, whose pod's workload
    says which"""
    steers: bool = False
    """of a router: whether it sends users to the routers of other nodes where :attr:`Instructions.steer` says so"""
    naming: str = ""
    """how users are named in it, :func:`naming_of`; empty: not told"""


class Instructions(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """What a meter or a router is to do from now on."""

    policy: str = ""
    """name of the LatencyPolicy of the pod's workload, in the pod's namespace; empty: none, nothing is to be told"""
    key: str = ""
    """base64 of the key of the hashes; one for each policy, the same for its meters and routers"""
    identity: Identity = Identity()
    """how users are told from each other"""
    tell_addresses: bool = False
    """whether addresses are to be told"""
    interval: float = 5.0
    """seconds between messages; sooner when a new user comes"""
    steer: dict[str, str] = {}
    """for routers: node by user's hash, through which the next request of the user is to go"""


class ProbeOrder(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """An address that a node is to measure its round trip to."""

    id: str
    """told again in the answer"""
    address: str
    """IP address of a user"""
    count: int = 3
    """round trips to measure"""


class ProbeOrders(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """What a node agent is to measure now."""

    orders: tuple[ProbeOrder, ...] = ()


class ProbeAnswer(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """What came of an order."""

    id: str
    """that of the order"""
    microseconds: tuple[int, ...] = ()
    """round trips; none: the user did not answer"""
    refused: str = ""
    """why the agent did not measure; empty: it did"""
    no_turn: bool = False
    """whether it did not because its turn did not come: it may be asked again"""


class ProbeAnswers(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """A node agent's message; empty to ask for orders."""

    answers: tuple[ProbeAnswer, ...] = ()


def naming_of(key: str, identity: Identity) -> str:
    """Return what tells names by one key, as in :attr:`Instructions.key`, and identity from those by another."""
    return hashlib.sha256("\0".join(("naming", key, identity.source, identity.name)).encode()).hexdigest()[:16]


def hash_identity(key: bytes, identity: str) -> str:
    """Return the name of a user outside of meter and router: 128 bits of HMAC-SHA256, as base32 in lower case."""
    digest = hmac.new(key, identity.encode(errors="surrogateescape")[:MAX_IDENTITY_BYTES], hashlib.sha256).digest()
    return base64.b32encode(digest[:16]).decode().rstrip("=").lower()

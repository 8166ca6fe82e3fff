"""Free TCP ports for instances that run side by side.

Ports are taken below the kernel's ephemeral range, because a port in that range
can be handed to any outgoing connection between our check and the server's bind.
Two instances that start at the same moment may still pick the same port; the
loser's server fails to bind and the caller starts it again on another one.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

from hack.localcluster.errors import ClusterError

LOWEST = 20000
"""First port considered."""
HIGHEST = 32000
"""Last port considered; Linux hands out ephemeral ports from 32768 upwards."""


def is_free(port: int, *, host: str = "127.0.0.1") -> bool:
    """Whether a listener on *host*:*port* can be opened right now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as listener:
        # A server that just stopped leaves connections in TIME_WAIT; Go's listeners reuse the address, so do we.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(1)
        except OSError:
            return False
        return True


def allocate(
    count: int, *, host: str = "127.0.0.1", avoid: Collection[int] = (), rng: random.Random | None = None
) -> list[int]:
    """Return *count* distinct ports that are free on *host* and not in *avoid*.

    Args:
        count: how many ports.
        host: the address the servers will listen on.
        avoid: ports promised to somebody else, whether or not they listen yet.
        rng: source of randomness; ports are drawn at random so that callers at the same time rarely collide.

    Raises:
        ClusterError: the range has fewer free ports than asked for.
    """
    taken = set(avoid)
    candidates = [port for port in range(LOWEST, HIGHEST + 1) if port not in taken]
    (rng or random.SystemRandom()).shuffle(candidates)
    found: list[int] = []
    for port in candidates:
        if len(found) == count:
            break
        if is_free(port, host=host):
            found.append(port)
    if len(found) < count:
        raise ClusterError(
            f"only {len(found)} of {count} ports are free on {host} between {LOWEST} and {HIGHEST}: "
            "stop other clusters (hack/cluster list) and try again"
        )
    return found

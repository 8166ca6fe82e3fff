"""Which addresses of users may be probed: those that are somebody's, outside of the cluster. No I/O.

Who reaches a meter chooses the address that agents send packets to, so that it must be none of the cluster's own:
neither a pod's nor a node's, nor the metadata service of a cloud, which is link-local (169.254.169.254, fe80::/10) or
among the addresses of its own that are named here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_SERVICES: Final = tuple(
    map(
        ip_network,
        (
            "fd00:ec2::/32",  # AWS: metadata and identities
            "fd20:ce::254",  # Google Cloud
            "168.63.129.16",  # Azure
            "fd00:c1::a9fe:a9fe",  # Oracle Cloud
            "192.0.0.192",
            "100.100.100.200",  # Alibaba Cloud
            "fd00:100::100:200",
            "fd00:42::42",  # Scaleway
            "fd00:a9fe:a9fe::1",  # Linode
        ),
    )
)
"""Metadata services of clouds that are not link-local, and what is beside them."""


class ProbeRange:
    """What may be probed."""

    def __init__(self, never: Iterable[Network]) -> None:
        """Begin; `never` are networks that are left out whatever nodes there are."""
        self._never = tuple(never)
        self._addresses: Counter[str] = Counter()
        self._nodes: dict[str, tuple[Network, ...]] = {}
        # Nodes may share one; by their lengths each is found at once, however many there are.
        self._networks: Counter[Network] = Counter()
        self._lengths: Counter[tuple[int, int]] = Counter()

    def node(self, name: str, networks: Iterable[str]) -> None:
        """A node has these networks of pods, and addresses; none: it is gone."""
        found = tuple(network for text in networks if (network := _network(text)) is not None)
        for network in found:
            self._count(network, 1)
        for network in self._nodes.pop(name, ()):
            self._count(network, -1)
        if found:
            self._nodes[name] = found

    def addresses(self, old: Iterable[str], new: Iterable[str]) -> None:
        """Something in the cluster has new addresses instead of the old ones, which others may have as well."""
        self._addresses.update(map(_canonical, new))
        for text in map(_canonical, old):
            self._addresses[text] -= 1
            if self._addresses[text] <= 0:
                del self._addresses[text]

    def refusal(self, text: str) -> str | None:
        """Return why an address is not probed; None if it may be."""
        try:
            found = ip_address(text)
        except ValueError:
            return "no IP address"
        address: Address = found
        if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
            address = found.ipv4_mapped
        # Whoever sends packets on takes the IPv4 address out of such a one by itself (RFC 3056).
        elif (
            isinstance(found, IPv6Address)
            and found.sixtofour is not None
            and (why := self.refusal(str(found.sixtofour)))
        ):
            return why
        special = address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified
        # No user's address names a link, and one that does is equal to no other (fd00:ec2::254%eth0).
        linked = isinstance(address, IPv6Address) and address.scope_id is not None
        if special or linked or address.is_reserved or any(address in network for network in _SERVICES):
            return "a special address"
        if any(address in network for network in self._never):
            return "a network that is never probed"
        if str(address) in self._addresses:
            return "an address of the cluster"
        number, kind = int(address), IPv4Network if address.version == 4 else IPv6Network
        lengths = (length for version, length in self._lengths if version == address.version)
        if any(kind((number, length), strict=False) in self._networks for length in lengths):
            return "an address of the cluster"
        return None

    def _count(self, network: Network, change: int) -> None:
        length = network.version, network.prefixlen
        self._networks[network] += change
        self._lengths[length] += change
        if not self._networks[network]:
            del self._networks[network]
        if not self._lengths[length]:
            del self._lengths[length]


def _canonical(text: str) -> str:
    """An address as it is compared; what is none, as `None`, is equal to no address."""
    try:
        found = ip_address(text)
    except ValueError:
        return ""
    return str(found.ipv4_mapped or found) if isinstance(found, IPv6Address) else str(found)


def _network(text: str) -> Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None

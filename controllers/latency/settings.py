"""What people may set of the latency controller on the command line."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from pydantic import Field, field_validator

from berth.runtime.settings import ComponentSettings, NamespaceName


class LatencySettings(ComponentSettings):
    """Settings of the latency controller."""

    listen: str = "0.0.0.0"  # noqa: S104 - meters and agents come from other nodes
    """Address that meters, routers and node agents are listened to on."""
    port: int = Field(default=8443, ge=0, le=65535)
    """Port of the same; 0 picks a free one."""
    address: str = "127.0.0.1"
    """IP address that they are told to reach this process at; in a pod, the pod's."""
    namespace: NamespaceName | None = None
    """Namespace of its Secret and ConfigMap, and of the node agents; unset: the namespace of the connection."""
    agent_account: str = "berth-node"
    """Service account of the node agents; nobody else gets orders to probe."""
    never_probe: str = ""
    """Networks that users are never probed in, such as 10.96.0.0/12,fd00::/8, with commas; nodes, pods,
    Services, link-local and special addresses are left out in any case. Name those of clusters that are joined here."""
    status_interval: float = Field(default=10.0, ge=1.0, le=600.0)
    """Seconds between writes of figures that change nothing else, 1 to 600."""

    @field_validator("address")
    @classmethod
    def _address(cls, text: str) -> str:
        try:
            leads_nowhere = ip_address(text).is_unspecified
        except ValueError:
            leads_nowhere = True
        if leads_nowhere:
            raise ValueError("write an IP address, as of the pod's status.podIP")
        return text

    @field_validator("never_probe")
    @classmethod
    def _networks(cls, text: str) -> str:
        try:
            networks_of(text)
        except ValueError as error:
            raise ValueError(f"{error}; write networks such as 10.96.0.0/12,fd00::/8") from error
        return text


def networks_of(text: str) -> list[IPv4Network | IPv6Network]:
    """Return the networks that a list with commas names.

    Raises:
        ValueError: one is none.
    """
    return [ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip()]

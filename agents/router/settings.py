"""What people may set of the router on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from berth.runtime.settings import ComponentSettings, NamespaceName


class RouterSettings(ComponentSettings):
    """Settings of the router."""

    leader_elected: ClassVar[bool] = False

    service: str = ""
    """Service that it stands in front of; has to be given."""
    service_port: str = ""
    """Name or number, as in EndpointSlices, of the port that pods are asked at; needed if the Service has several."""
    namespace: NamespaceName | None = None
    """Namespace of the Service and of the policy; unset: that of the connection."""
    policy: str = ""
    """LatencyPolicy that says which node serves whom; empty: requests go to the pod with the least to do."""
    node: str = ""
    """Name of the node that it runs on; needed for steering."""
    address: str = ""
    """Address that clients are listened to on; empty: all of them."""
    port: int = Field(default=8000, ge=0, le=65535)
    """Port of the same; 0 picks a free one."""
    connections: int = Field(default=10_000, ge=1, le=1_000_000)
    """Connections of clients at a time at most."""
    timeout: float = Field(default=300.0, ge=0.1, le=86_400.0)
    """Seconds that a pod has until the head of its answer; then users get 504."""
    linger: float = Field(default=5.0, ge=0.0, le=7.0)
    """Seconds for which requests are still taken after SIGTERM."""
    access_log: bool = False
    """Log each request, without anything that says who asked or for what."""
    controller: str | None = None
    """URL of the latency controller, such as https://berth-latency.example:8443; unset: see the next."""
    controller_namespace: NamespaceName | None = None
    """Namespace whose ConfigMap says where the controller is; unset: users are not known."""
    token_file: Path = Path("/var/run/secrets/berth.dev/token")
    """File with the pod's token for it, of the audience latency.berth.dev."""
    ca_file: Path | None = None
    """File with the certificates to trust for --router-controller; unset: the system's."""
    users: int = Field(default=10_000, ge=5, le=1_000_000)
    """Users that are remembered at a time at most."""
    steer_service: str = ""
    """Service of the routers, in whose EndpointSlices those of other nodes are found; empty: nobody is steered."""
    steer_url: str = ""
    """How users reach the router on another node: a URL with {address} or {node} in it; empty: nobody is steered."""
    admin_address: str = "127.0.0.1"
    """Address of the admin API; others than the pod's own loopback get its token unencrypted."""
    admin_port: int = Field(default=8001, ge=0, le=65535)
    """Port of the same; 0 picks a free one."""
    admin_token_file: Path | None = None
    """File with the token that opens the admin API; unset: there is none."""

    @field_validator("steer_url")
    @classmethod
    def _names_a_router(cls, url: str) -> str:
        if url and not (url.startswith(("http://", "https://")) and ("{address}" in url or "{node}" in url)):
            raise ValueError("write a URL with {address} or {node} in it, such as http://{address}:8000")
        return url

    @field_validator("controller")
    @classmethod
    def _is_secure(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith("https://"):
            raise ValueError("write a URL with https://: a token goes there")
        return url

"""What people may set of the meter on the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator
from yarl import URL

from berth.api.latency_exchange import HEADER_NAME, Identity, IdentitySource
from berth.runtime.proxy.upstream import Address
from berth.runtime.settings import ComponentSettings, NamespaceName

LINGER_SECONDS = 5.0
"""Seconds for which requests are still taken after SIGTERM, unless stated: so long clients may be sent here."""
MAX_LINGER = 7.0
"""Seconds that may be stated for that."""
END_SECONDS = 12.0
"""Seconds that requests under way have then."""


class MeterSettings(ComponentSettings):
    """Settings of the meter."""

    leader_elected: ClassVar[bool] = False
    asks_api_server: ClassVar[bool] = False

    address: str = ""
    """Address that it listens on for users; empty: all of them."""
    port: int = Field(default=9480, ge=0, le=65535)
    """Port for users; 0 picks a free one."""
    application: str = "127.0.0.1:8080"
    """Host and port of the application."""
    timeout: float = Field(default=300.0, ge=0.1, le=86_400.0)
    """Seconds that the application has until the head of its answer; then users get 504."""
    identity: Literal["Address", "Header", "Cookie", "Query"] = "Address"
    """What tells users from each other, until the controller says it."""
    identity_name: str = ""
    """Name of that header, cookie or parameter."""
    timestamp_header: str = Field(default="X-Timestamp", pattern=r"^[A-Za-z0-9-]*$")
    """Header with the time of sending in milliseconds since 1970, as second source; empty: none."""
    users: int = Field(default=10_000, ge=5, le=1_000_000)
    """Users that are remembered at most."""
    expiry: float = Field(default=300.0, ge=1.0, le=86_400.0)
    """Seconds without a request after which a user is forgotten."""
    controller: str | None = None
    """URL of the latency controller, such as https://berth-latency.example:8443; unset: see the next."""
    controller_namespace: NamespaceName | None = None
    """Namespace whose ConfigMap says where the controller is, read by the pod's account; unset: nobody is told."""
    token_file: Path = Path("/var/run/secrets/berth.dev/token")
    """File with the pod's token for it, of the audience latency.berth.dev."""
    ca_file: Path | None = None
    """File with the certificates to trust for --meter-controller; unset: the system's."""
    measurements_address: str = "127.0.0.1"
    """Address of GET /measurements; others than the pod's own loopback get its token unencrypted."""
    measurements_port: int = Field(default=9482, ge=0, le=65535)
    """Port of GET /measurements; 0 picks a free one."""
    measurements_token_file: Path | None = None
    """File with the token that readers of /measurements show; unset: nobody may read."""
    linger: float = Field(default=LINGER_SECONDS, ge=0.0, le=MAX_LINGER)
    """Seconds for which requests are still taken after SIGTERM."""

    @field_validator("application")
    @classmethod
    def _is_host_and_port(cls, text: str) -> str:
        host_and_port(text)
        return text

    @field_validator("identity_name")
    @classmethod
    def _names_something(cls, name: str, info: ValidationInfo) -> str:
        source = info.data.get("identity", "Address")
        if source == "Address" and name:
            raise ValueError("addresses have no name; state --meter-identity as well")
        if name and source == "Header" and not re.fullmatch(HEADER_NAME, name):
            raise ValueError("no header has that name; write one of letters, digits and !#$%&'*+-.^_`|~ alone")
        if source == "Cookie" and (set(name) & {";", "="} or name != name.strip()):
            raise ValueError("no cookie has that name; write one without ; and =, and without spaces around it")
        return name

    @field_validator("controller")
    @classmethod
    def _is_https(cls, text: str | None) -> str | None:
        if text is None:
            return None
        url = URL(text)
        if url.scheme != "https" or not url.host or url.query_string or url.fragment or url.user or url.password:
            raise ValueError("write a URL such as https://berth-latency.example:8443; a token is sent over https only")
        return text

    def identity_stated(self) -> Identity:
        """How users are told from each other.

        Raises:
            ValueError: something without a name.
        """
        source = IdentitySource(self.identity)
        if source is not IdentitySource.ADDRESS and not self.identity_name:
            raise ValueError(f"which {self.identity.lower()} tells users from each other? Write --meter-identity-name")
        return Identity(source, self.identity_name)


def host_and_port(text: str) -> Address:
    """Return host and port of a text such as ``127.0.0.1:8080`` or ``[::1]:8080``.

    Raises:
        ValueError: it is none.
    """
    host, _, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if (
        not bare
        or (":" in bare and bare == host)
        or not port.isascii()
        or not port.isdigit()
        or not 0 < int(port) < 65536
    ):
        raise ValueError("write a host and a port, such as 127.0.0.1:8080")
    return Address(bare, int(port))

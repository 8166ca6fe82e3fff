"""The credentials of a pod: what the kubelet puts into its containers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

TOKEN_SECONDS: Final = 60.0
"""Seconds after which the token is read again: the kubelet replaces it long before it expires."""


class ServiceAccount:
    """A pod's service account, in the shape of kubernetes_asyncio's Configuration as far as connections read it."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        """Read it.

        Args:
            directory: where ``token`` and ``ca.crt`` are.
            environment: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are read.

        Raises:
            OSError: a file cannot be read.
            ValueError: a file or variable is empty.
        """
        host, port = (environment.get(f"KUBERNETES_SERVICE_{name}") for name in ("HOST", "PORT"))
        if not host or not port:
            raise ValueError("KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is unset or empty")
        self._token_file = directory / "token"
        self._token = _text(self._token_file)
        self._read_at = time.monotonic()
        authority = directory / "ca.crt"
        _text(authority)
        self.host = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        """URL of the API server"""
        self.ssl_ca_cert: str | None = str(authority)
        """file with the certificates of its authority"""
        self.verify_ssl = True
        """whether its certificate is verified"""
        self.cert_file: str | None = None
        """client certificate: a pod has none"""
        self.key_file: str | None = None
        """its key"""
        self.tls_server_name: str | None = None
        """name in the API server's certificate: that of the URL"""
        self.proxy: str | None = None
        """HTTP proxy on the way to it, None for a direct connection"""

    async def auth_settings(self) -> dict[str, dict[str, Any]]:
        """Return the header that authenticates requests; the token is read again when it is a minute old.

        One that cannot be read leaves the one before, until the API server refuses that.
        """
        now = time.monotonic()
        if now - self._read_at >= TOKEN_SECONDS:
            with contextlib.suppress(OSError, ValueError):
                self._token = _text(self._token_file)
                self._read_at = now
        return {"BearerToken": {"in": "header", "key": "authorization", "value": f"Bearer {self._token}"}}


class NoAccount(ServiceAccount):
    """That of a process which asks no API server: there is none, and so every request fails."""

    def __init__(self) -> None:
        """Read nothing."""
        self.host = ""
        self.ssl_ca_cert = None
        self.verify_ssl = True
        self.cert_file = self.key_file = self.tls_server_name = self.proxy = None

    async def auth_settings(self) -> dict[str, dict[str, Any]]:
        """Return that nothing authenticates requests."""
        return {}


def _text(file: Path) -> str:
    text = file.read_text().strip()
    if not text:
        raise ValueError(f"{file.name} is empty")
    return text

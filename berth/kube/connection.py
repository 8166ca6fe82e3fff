"""Where the API server is and how to prove who we are.

A :class:`Connection` is the few values that Berth's own client and kopf need, from a kubeconfig or a service account.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from multidict import CIMultiDict

from berth.kube.proxies import proxy_for
from berth.kube.service_account import NoAccount, ServiceAccount

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts token, ca.crt and namespace of a pod's service account."""
RELOAD_INTERVAL = 5.0
"""Least seconds between two readings of the credentials: a refused identity must not run a plugin per request."""


class ConnectionConfigError(Exception):
    """No usable kubeconfig or service account; the text says what to do about it."""


@dataclass(slots=True)
class Connection:
    """One API server with one identity."""

    configuration: Configuration | ServiceAccount
    """The credentials; of a kubeconfig as kubernetes_asyncio reads it. Replaced by :meth:`reload`."""

    namespace: str
    """Namespace used where none is named: the kubeconfig context's, or the service account's."""

    kubeconfig: str | None = None
    """File it was read from, None inside a cluster."""

    context: str | None = None
    """Context of the kubeconfig, None inside a cluster. Later readings stay with it, whatever becomes the current one:
    that may be one of another cluster."""

    generation: int = 0
    """How often the credentials were read again."""

    impersonation: tuple[tuple[str, str], ...] = ()
    """Headers that ask the API server to act for somebody else (``as`` and its kin of the kubeconfig's user)."""

    _ssl: ssl.SSLContext | None = field(default=None, repr=False)
    _reloading: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    _reloaded_at: float | None = field(default=None, repr=False)

    @property
    def server(self) -> str:
        """URL of the API server without a trailing slash."""
        return str(self.configuration.host).rstrip("/")

    @property
    def server_hostname(self) -> str | None:
        """Name to expect in the server's certificate (``tls-server-name``), None for the one in the URL."""
        return self.configuration.tls_server_name or None

    @property
    def proxy(self) -> str | None:
        """HTTP proxy on the way to the server (``proxy-url``, or from the environment)."""
        return self.configuration.proxy or None

    def ssl_context(self) -> ssl.SSLContext:
        """The TLS settings, made once: reading certificates is slow, and files of a kubeconfig's data are gone then.

        Raises:
            ConnectionConfigError: a certificate or key cannot be read or does not belong together.
        """
        if self._ssl is None:
            configuration = self.configuration
            try:
                context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
                # Python 3.13 turns on checks that the authorities of many clusters fail; kubectl has none of them.
                context.verify_flags &= ~ssl.VERIFY_X509_STRICT
                if not configuration.verify_ssl:
                    context.check_hostname = False
                    context.verify_mode = ssl.CERT_NONE
                if configuration.cert_file:
                    context.load_cert_chain(configuration.cert_file, configuration.key_file)
            except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
                raise ConnectionConfigError(
                    f"{self._source()}: certificates are unusable: {error}; "
                    "check certificate-authority, client-certificate and client-key"
                ) from error
            self._ssl = context
        return self._ssl

    async def headers(self) -> CIMultiDict[str]:
        """Headers that authenticate a request; tokens from files are re-read as they rotate.

        Raises:
            ConnectionConfigError: a kubeconfig's token cannot be read, or a token is none.
        """
        try:
            settings = await self.configuration.auth_settings()
        except (OSError, ValueError) as error:
            raise ConnectionConfigError(f"{self._source()}: {error}") from error
        # Token files usually end in a newline, which a header cannot hold.
        found = [(str(auth["key"]), str(auth["value"]).strip()) for auth in settings.values() if auth["in"] == "header"]
        if any(not value.isprintable() for _, value in found):
            raise ConnectionConfigError(f"{self._source()}: the token is no line of text; log in or mend its file")
        return CIMultiDict([*found, *self.impersonation])

    async def reload(self, *, seen: int | None = None) -> bool:
        """Read the credentials again, after the API server has refused them.

        Args:
            seen: :attr:`generation` that was refused; nothing is read if the credentials are newer already, so that
                many refused requests run a credential plugin once, nor within :data:`RELOAD_INTERVAL` of the last time.

        Returns:
            True if the credentials are newer than those that were refused.

        Raises:
            ConnectionConfigError: the kubeconfig or service account is gone or unusable.
        """
        async with self._reloading:
            if seen is not None and seen != self.generation:
                return True
            now = time.monotonic()
            if seen is not None and self._reloaded_at is not None and now - self._reloaded_at < RELOAD_INTERVAL:
                return False
            self._reloaded_at = now
            fresh = await self.another()
            self.configuration, self.impersonation = fresh.configuration, fresh.impersonation
            self._ssl = fresh._ssl
            self.generation += 1
            return True

    async def another(self) -> Connection:
        """The same server and identity, read anew: for an event loop in another thread, which cannot share this one.

        Raises:
            ConnectionConfigError: the kubeconfig or service account is gone or unusable.
        """
        if self.kubeconfig:
            return await load_connection(kubeconfig=self.kubeconfig, context=self.context)
        return _service_account()

    def _source(self) -> str:
        return f"kubeconfig {self.kubeconfig}" if self.kubeconfig else f"service account in {SERVICE_ACCOUNT}"


async def load_connection(*, kubeconfig: str | None = None, context: str | None = None) -> Connection:
    """Find the API server: the named kubeconfig, then $KUBECONFIG, then the service account, then ~/.kube/config.

    Args:
        kubeconfig: file, or several separated by ``:``, which are merged as kubectl does.
        context: context to use instead of the file's current one.

    Raises:
        ConnectionConfigError: none of them is usable.
    """
    path = kubeconfig or os.environ.get("KUBECONFIG") or None
    if path is None and context is None and _inside_cluster():
        return _service_account()
    # The library that reads kubeconfigs takes 37 MiB, which pods, an agent on every node among them, never need.
    from berth.kube.kubeconfig import from_kubeconfig

    return await from_kubeconfig(path, context)


def no_connection() -> Connection:
    """Return the connection of a process that asks no API server."""
    return Connection(configuration=NoAccount(), namespace="default")


def _inside_cluster() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and (SERVICE_ACCOUNT / "token").exists()


def _service_account() -> Connection:
    try:
        account = ServiceAccount(SERVICE_ACCOUNT, os.environ)
        file = SERVICE_ACCOUNT / "namespace"
        namespace = file.read_text().strip() if file.exists() else "default"
    except (OSError, ValueError) as error:
        raise ConnectionConfigError(
            f"service account in {SERVICE_ACCOUNT}: {error}; check automountServiceAccountToken of the pod"
        ) from error
    try:
        account.proxy = proxy_for(account.host, stated=None, environment=os.environ)
    except ValueError as error:
        raise ConnectionConfigError(str(error)) from error
    return Connection(configuration=account, namespace=namespace)

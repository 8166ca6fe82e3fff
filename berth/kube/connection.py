"""Where the API server is and how to prove who we are.

kubernetes_asyncio reads kubeconfig files, in-cluster service accounts and credential plugins; this
module turns its result into the few values that Berth's own client and kopf need.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from kubernetes_asyncio import config as kube_config
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.incluster_config import InClusterConfigLoader

SERVICE_ACCOUNT_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class ConnectionConfigError(Exception):
    """No usable kubeconfig or service account; the text says what to do about it."""


@dataclass(slots=True)
class Connection:
    """One API server with one identity."""

    configuration: Configuration
    """kubernetes_asyncio's view of the credentials; refreshed in place."""

    namespace: str
    """Namespace used where none is named: the kubeconfig context's, or the service account's."""

    kubeconfig: str | None = None
    """File it was read from, None inside a cluster."""

    context: str | None = None
    """Context of the kubeconfig, None for its current one."""

    _ssl: ssl.SSLContext | None = field(default=None, repr=False)

    @property
    def server(self) -> str:
        """URL of the API server without a trailing slash."""
        return str(self.configuration.host).rstrip("/")

    def ssl_context(self) -> ssl.SSLContext:
        """The TLS settings, made once: reading certificates is slow."""
        if self._ssl is None:
            configuration = self.configuration
            context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
            if not configuration.verify_ssl:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if configuration.cert_file:
                context.load_cert_chain(configuration.cert_file, configuration.key_file)
            self._ssl = context
        return self._ssl

    async def headers(self) -> dict[str, str]:
        """Headers that authenticate a request; tokens from files are re-read as they rotate."""
        settings = await self.configuration.auth_settings()
        return {str(auth["key"]): str(auth["value"]) for auth in settings.values() if auth["in"] == "header"}

    async def reload(self) -> None:
        """Read the credentials again, after the API server has refused them.

        Raises:
            ConnectionConfigError: the kubeconfig or service account is gone or unusable.
        """
        fresh = await load_connection(kubeconfig=self.kubeconfig, context=self.context)
        self.configuration = fresh.configuration
        self._ssl = None


async def load_connection(*, kubeconfig: str | None = None, context: str | None = None) -> Connection:
    """Find the API server: the named kubeconfig, then $KUBECONFIG, then the service account, then ~/.kube/config.

    Raises:
        ConnectionConfigError: none of them is usable.
    """
    path = kubeconfig or os.environ.get("KUBECONFIG") or None
    if path is None and context is None and _inside_cluster():
        return _service_account()
    configuration = Configuration()
    path = path or _default_kubeconfig()
    try:
        await kube_config.load_kube_config(config_file=path, context=context, client_configuration=configuration)
        _, active = kube_config.list_kube_config_contexts(config_file=path)
    except (ConfigException, OSError, KeyError, TypeError, ValueError) as error:
        raise ConnectionConfigError(
            f"kubeconfig {path}: {error}; name a readable file with --kubeconfig or $KUBECONFIG"
        ) from error
    namespace = (active or {}).get("context", {}).get("namespace") or "default"
    return Connection(configuration=configuration, namespace=namespace, kubeconfig=path, context=context)


def _default_kubeconfig() -> str:
    return str(Path("~/.kube/config").expanduser())


def _inside_cluster() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and SERVICE_ACCOUNT_TOKEN.exists()


def _service_account() -> Connection:
    configuration = Configuration()
    loader = InClusterConfigLoader(
        token_filename=str(SERVICE_ACCOUNT_TOKEN), cert_filename=str(SERVICE_ACCOUNT_TOKEN.parent / "ca.crt")
    )
    loader.load_and_set(configuration)
    namespace = SERVICE_ACCOUNT_NAMESPACE.read_text().strip() if SERVICE_ACCOUNT_NAMESPACE.exists() else "default"
    return Connection(configuration=configuration, namespace=namespace)

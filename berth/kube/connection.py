"""Where the API server is and how to prove who we are.

kubernetes_asyncio reads kubeconfig files, in-cluster service accounts and credential plugins; this
module turns its result into the few values that Berth's own client and kopf need.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml
from kubernetes_asyncio import config as kube_config
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.incluster_config import InClusterConfigLoader
from multidict import CIMultiDict
from yarl import URL

from berth.kube.proxies import SCHEMES, proxy_for

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts token, ca.crt and namespace of a pod's service account."""
RELOAD_INTERVAL = 5.0
"""Least seconds between two readings of the credentials: a refused identity must not run a plugin per request."""


class ConnectionConfigError(Exception):
    """No usable kubeconfig or service account; the text says what to do about it."""


@dataclass(slots=True)
class Connection:
    """One API server with one identity."""

    configuration: Configuration
    """kubernetes_asyncio's view of the credentials; replaced by :meth:`reload`."""

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
        """The TLS settings, made once: reading certificates is slow.

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
            ConnectionConfigError: the service account's token is gone, or a token is none.
        """
        try:
            settings = await self.configuration.auth_settings()
        except (ConfigException, OSError) as error:
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
            self._ssl = None
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
    path = path or _default_kubeconfig()
    configuration = Configuration()
    try:
        _check_files(path, context)
        loader = await kube_config.load_kube_config(
            config_file=path, context=context, client_configuration=configuration
        )
        active: Any = loader.current_context
        if not getattr(loader, "host", None):
            raise ConfigException("the context's cluster has no server")
        user: Any = getattr(loader, "_user", None)
        impersonation = _impersonation(user.value if user is not None else {})
        _check_server(str(configuration.host))
        _set_proxy(configuration)
    except ConnectionConfigError as error:
        raise ConnectionConfigError(f"kubeconfig {path}: {error}") from error
    except (ConfigException, OSError, yaml.YAMLError) as error:
        raise ConnectionConfigError(
            f"kubeconfig {path}: {error}; name a readable file with --kubeconfig or $KUBECONFIG"
        ) from error
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError) as error:
        # How kubernetes_asyncio meets files that are YAML but no kubeconfig; these errors say nothing to people.
        raise ConnectionConfigError(
            f"kubeconfig {path}: not a kubeconfig with clusters, contexts and users ({error!r}); "
            "name another file with --kubeconfig or $KUBECONFIG"
        ) from error
    namespace = (active or {}).get("context", {}).get("namespace") or "default"
    name = context or (active or {}).get("name")
    return Connection(configuration, namespace, kubeconfig=path, context=name, impersonation=impersonation)


def _impersonation(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Headers for the fields ``as``, ``as-uid``, ``as-groups`` and ``as-user-extra`` of a kubeconfig's user."""
    groups, extra = user.get("as-groups") or [], user.get("as-user-extra") or {}
    if not isinstance(extra, dict) or not all(isinstance(one or [], list) for one in (groups, *extra.values())):
        raise ConnectionConfigError("as-groups of the user must be a list, and as-user-extra a mapping of lists")
    headers = [
        ("Impersonate-Uid", user.get("as-uid")),
        *(("Impersonate-Group", group) for group in groups),
        *((f"Impersonate-Extra-{quote(key, safe='')}", one) for key, values in extra.items() for one in values or ()),
    ]
    headers = [(name, value) for name, value in headers if value]
    name = user.get("as")
    if headers and not name:
        raise ConnectionConfigError("as-uid, as-groups and as-user-extra need a user to act for; set as beside them")
    found = tuple((key, str(value)) for key, value in [("Impersonate-User", name), *headers]) if name else ()
    for key, value in found:
        if not value.isprintable():
            raise ConnectionConfigError(f"{key} {value!r} is what no header can hold; mend the user's as and its kin")
    return found


def _check_server(server: str) -> None:
    try:
        url = URL(server)
        host = (url.host or "").encode("idna")
        usable = url.scheme in SCHEMES and bool(host)
    except ValueError:
        usable = False
    if not usable:
        raise ConnectionConfigError(
            f"the cluster's server {server!r} is no URL; write https://HOST:PORT, "
            "or name another file with --kubeconfig or $KUBECONFIG"
        )


def _set_proxy(configuration: Configuration) -> None:
    try:
        proxy = proxy_for(str(configuration.host), stated=configuration.proxy, environment=os.environ)
    except ValueError as error:
        raise ConnectionConfigError(str(error)) from error
    configuration.proxy = proxy


def _default_kubeconfig() -> str:
    return str(Path("~/.kube/config").expanduser())


def _check_files(paths: str, context: str | None) -> None:
    """Say in plain words what kubernetes_asyncio says in those of its code."""
    files = [file for path in paths.split(os.pathsep) if path and (file := Path(path).expanduser()).exists()]
    if not files:
        raise FileNotFoundError("no such file")
    names: list[str] = []
    for file in files:
        document = yaml.safe_load(file.read_bytes())
        if not isinstance(document, dict):
            raise ConnectionConfigError(
                f"not a kubeconfig: {'it is empty' if document is None else 'it is no mapping'}; "
                "name another file with --kubeconfig or $KUBECONFIG"
            )
        listed = document.get("contexts")
        entries = listed if isinstance(listed, list) else ()
        names += [str(entry.get("name")) for entry in entries if isinstance(entry, dict)]
        context = context or document.get("current-context")
    if names and context not in names:
        problem = f"it has no context {context!r}" if context else "no context is chosen (current-context)"
        raise ConnectionConfigError(
            f"{problem}; choose one of {', '.join(sorted(set(names)))} with --context, "
            "or another file with --kubeconfig or $KUBECONFIG"
        )


def _inside_cluster() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and (SERVICE_ACCOUNT / "token").exists()


def _service_account() -> Connection:
    configuration = Configuration()
    loader = InClusterConfigLoader(
        token_filename=str(SERVICE_ACCOUNT / "token"), cert_filename=str(SERVICE_ACCOUNT / "ca.crt")
    )
    try:
        loader.load_and_set(configuration)
        file = SERVICE_ACCOUNT / "namespace"
        namespace = file.read_text().strip() if file.exists() else "default"
        _set_proxy(configuration)
    except (ConfigException, OSError) as error:
        raise ConnectionConfigError(
            f"service account in {SERVICE_ACCOUNT}: {error}; check automountServiceAccountToken of the pod"
        ) from error
    return Connection(configuration=configuration, namespace=namespace)

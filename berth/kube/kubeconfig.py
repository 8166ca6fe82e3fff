"""Connections from kubeconfig files.

kubernetes_asyncio makes the credentials of them. It brings models of all of Kubernetes along, so only
:mod:`berth.kube.connection` imports this module, and only when there is a kubeconfig to read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException, kube_config
from yarl import URL

from berth.kube.connection import Connection, ConnectionConfigError
from berth.kube.credential_plugin import CredentialPlugin
from berth.kube.kubeconfig_files import KubeconfigFiles
from berth.kube.proxies import SCHEMES, proxy_for

_files: ContextVar[list[Path]] = ContextVar("files")
"""Files written for the kubeconfig that is being read."""


def _short_lived_file(_: kube_config.FileOrData, content: str | bytes) -> str:
    """Write data of a certificate or key, which OpenSSL reads from files alone; returns the path."""
    descriptor, name = tempfile.mkstemp(prefix="berth-")
    _files.get().append(Path(name))
    with open(descriptor, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return name


kube_config.ExecProvider = CredentialPlugin  # type: ignore[assignment, attr-defined]
# Its own files are there until the process ends, or for good where it is killed, and become more whenever a credential
# plugin is asked.
kube_config.FileOrData._create_temp_file_with_content = _short_lived_file  # type: ignore[assignment, method-assign]


async def from_kubeconfig(path: str | None, context: str | None) -> Connection:
    """Read a kubeconfig, with its certificates: of those that are data in it no file stays behind.

    Args:
        path: file, or several separated by ``:``, which are merged as kubectl does; None: ~/.kube/config.
        context: context to use instead of the file's current one.

    Raises:
        ConnectionConfigError: it is gone or unusable; the text says what to do about it.
    """
    token = _files.set([])
    try:
        connection = await _read(path, context)
        if _files.get():
            connection.ssl_context()
        return connection
    finally:
        for file in _files.get():
            file.unlink(missing_ok=True)
        _files.reset(token)


async def _read(path: str | None, context: str | None) -> Connection:
    path = path or _default_kubeconfig()
    configuration = Configuration()
    try:
        files = KubeconfigFiles(path)
        name, user = _chosen(files, context)
        loader = kube_config.KubeConfigLoader(
            files.config, active_context=name, config_base_path=None, config_persister=files.save_changes
        )
        # It looks for client certificates of nobody, too.
        loader._user = loader._user or kube_config.ConfigNode("no user", {})
        await loader.load_and_set(configuration)
        if not getattr(loader, "host", None):
            raise ConfigException("the context's cluster has no server")
        if user.get("tokenFile") and not await configuration.auth_settings():
            # Requests without a token are forbidden, not refused as nobody's: the file would never be read again.
            raise ConfigException(f"the token file {user['tokenFile']} is empty")
        impersonation = _impersonation(user)
        _check_server(str(configuration.host))
        _set_proxy(configuration)
    except ConnectionConfigError as error:
        raise ConnectionConfigError(f"kubeconfig {path}: {error}") from error
    except (ConfigException, OSError) as error:
        reason = str(error)
        if isinstance(error, OSError) and error.strerror and error.filename == path:
            reason = error.strerror.lower()
        raise ConnectionConfigError(
            f"kubeconfig {path}: {reason}; name a readable file with --kubeconfig or $KUBECONFIG"
        ) from error
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError) as error:
        # How kubernetes_asyncio meets files that are YAML but no kubeconfig; these errors say nothing to people.
        raise ConnectionConfigError(
            f"kubeconfig {path}: not a kubeconfig with clusters, contexts and users ({error!r}); "
            "name another file with --kubeconfig or $KUBECONFIG"
        ) from error
    namespace = files.entries("contexts")[name].get("namespace") or "default"
    return Connection(configuration, str(namespace), kubeconfig=path, context=name, impersonation=impersonation)


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


def _chosen(files: KubeconfigFiles, context: str | None) -> tuple[str, dict[str, Any]]:
    """Name of the context to use, and its user; says in plain words what kubernetes_asyncio says in those of its code.

    Raises:
        ConnectionConfigError: there is none, or something in it cannot be used.
    """
    contexts, users = files.entries("contexts"), files.entries("users")
    name = context or files.current_context
    if name not in contexts:
        problem = f"it has no context {name!r}" if name else "no context is chosen (current-context)"
        known = f"choose one of {', '.join(sorted(map(str, contexts)))} with --context, or" if contexts else "name"
        raise ConnectionConfigError(f"{problem}; {known} another file with --kubeconfig or $KUBECONFIG")
    user = contexts[name].get("user")
    if user and user not in users:
        raise ConnectionConfigError(
            f"its context {name!r} names the user {user!r}, which it does not have; add the user, "
            "or name another file with --kubeconfig or $KUBECONFIG"
        )
    stated = users[user] if user else {}
    provider = (stated.get("auth-provider") or {}).get("name")
    if provider not in (None, "gcp", "oidc"):
        raise ConnectionConfigError(
            f"auth-provider {provider!r} of the user is not known; use a plugin (exec), "
            "or name another file with --kubeconfig or $KUBECONFIG"
        )
    cluster = files.entries("clusters").get(contexts[name].get("cluster", ""), {})
    if not isinstance(cluster.get("insecure-skip-tls-verify", False), bool):
        raise ConnectionConfigError("insecure-skip-tls-verify of the cluster must be true or false")
    return name, stated

"""Which HTTP proxy leads to a server: the one that is stated, or the environment's, by kubectl's rules."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from yarl import URL

SCHEMES = ("http", "https")


def proxy_for(server: str, *, stated: str | None, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy to use, None for a direct connection.

    Args:
        server: URL of the API server.
        stated: ``proxy-url`` of the kubeconfig, which wins.
        environment: HTTPS_PROXY, HTTP_PROXY and NO_PROXY are read, in capitals first.

    Raises:
        ValueError: it is no proxy that can be used; the text names the setting and the remedy.
    """
    if stated:
        return _checked("proxy-url", stated)
    url = URL(server)
    name = "HTTPS_PROXY" if url.scheme == "https" else "HTTP_PROXY"
    found = environment.get(name) or environment.get(name.lower())
    excepted = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if not found or _excepted(url.host or "", url.port, excepted):
        return None
    return _checked(name, found if "://" in found else f"http://{found}")


def _checked(setting: str, proxy: str) -> str:
    try:
        url = URL(proxy)
    except ValueError as error:
        raise ValueError(f"{setting} {proxy!r} is no URL: {error}; write http://HOST:PORT") from error
    shown = url.with_user(None) if url.host else proxy  # what follows the user is a password
    if url.scheme not in SCHEMES or not url.host:
        raise ValueError(
            f"{setting} {str(shown)!r} cannot be used; name a proxy by http://HOST:PORT or https://HOST:PORT"
        )
    return proxy


def _excepted(host: str, port: int | None, listed: str) -> bool:
    """Whether a host is reached directly: this machine always, others when NO_PROXY lists them."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for part in filter(None, (part.strip().lower() for part in listed.split(","))):
        entry = part
        if entry == "*":
            return True
        name, colon, number = entry.rpartition(":")
        if colon and number.isdecimal() and name and (":" not in name or name.endswith("]")):
            if int(number) != port:
                continue
            entry = name
        if address is not None:
            try:
                if address in ipaddress.ip_network(entry.removeprefix("[").removesuffix("]"), strict=False):
                    return True
            except ValueError:
                pass
        name = entry.removeprefix("*").removeprefix(".")
        if host.lower().endswith(f".{name}") or (host.lower() == name and not entry.startswith((".", "*"))):
            return True
    return False

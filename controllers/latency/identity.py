"""Who the endpoint is: its certificate and the key of users' hashes in a Secret, where it is in a ConfigMap.

Both controllers that may lead have the same: agents go on with what they trust when another takes over, and users
keep their names.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import structlog

from berth.api.latency_exchange import CONFIGMAP, CONFIGMAP_CA, CONFIGMAP_INSTANCE, CONFIGMAP_URL
from berth.api.latencypolicy import MANAGER
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.resources import CONFIGMAPS, SECRETS
from controllers.latency.certificate import KeyPair, is_usable, make_key_pair

log = structlog.get_logger(__name__)

SECRET: Final = "berth-latency"  # noqa: S105 - the name of the object
"""Secret in the controller's namespace; take its data away and restart the controller for new keys."""
_CERTIFICATE, _KEY, _USERS = "tls.crt", "tls.key", "users.key"
_KEY_BYTES: Final = 32
_ATTEMPTS: Final = 3
PUBLISH_SECONDS: Final = 20.0
"""Seconds from one write of where the endpoint is to the next; one that changes nothing is none to the API server."""
RETRY_SECONDS: Final = 10.0
"""Seconds from one attempt to have the keys to the next."""
_FORBIDDEN: Final = 403


class NoKeysError(Exception):
    """There are no keys to be had; the text says why and what to do."""


Told = Callable[[str | None], None]
"""Called with what is wrong at the moment and what to do about it, and with None once it is well."""


class Identity(NamedTuple):
    """What makes the endpoint the one that is trusted."""

    pair: KeyPair
    """certificate and its key"""
    users_key: bytes
    """what keys of policies are derived from"""

    def key_of(self, uid: str) -> str:
        """Return the key of the hashes of a policy's users, by the policy's uid, as meters are told it."""
        return base64.b64encode(hmac.new(self.users_key, uid.encode(), hashlib.sha256).digest()).decode()


async def wait_for_identity(
    client: ApiClient, namespace: str, told: Told, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> Identity:
    """Return what :func:`load_identity` does, as soon as it does; other work need not wait for it."""
    while True:
        try:
            identity = await load_identity(client, namespace, datetime.now(UTC))
        except (ApiError, NoKeysError, *TRANSPORT_ERRORS) as error:
            problem = f"no keys from Secret {namespace}/{SECRET}: {str(error) or repr(error)}"
            log.warning("the endpoint waits for its keys", secret=SECRET, error=str(error) or repr(error))
            told(problem)
            await sleep(RETRY_SECONDS)
        else:
            told(None)
            return identity


async def load_identity(client: ApiClient, namespace: str, now: datetime) -> Identity:
    """Return what the Secret has, or what was made and written there: of two that make one, the first counts.

    A Secret that is empty is written to; one that is not there is created, where that is allowed.

    Raises:
        ApiError, aiohttp.ClientError, OSError: it can be neither read nor written.
        NoKeysError: it is not there and may not be created, or others write it again and again.
    """
    for _ in range(_ATTEMPTS):
        found = await _get(client, namespace)
        identity = _read(found) if found is not None else None
        if identity is not None and is_usable(identity.pair, now):
            return identity
        users = identity.users_key if identity is not None else secrets.token_bytes(_KEY_BYTES)
        made = _data(Identity(make_key_pair(now), users))
        log.info("a certificate is made", secret=SECRET, namespace=namespace, instead=bool(found and found.get("data")))
        try:
            if found is None:
                await client.create(SECRETS, _secret(namespace, made), namespace=namespace)
            else:
                await client.replace(SECRETS, SECRET, {**found, "data": made}, namespace=namespace)
        except ApiError as refused:
            if found is None and refused.status == _FORBIDDEN:
                raise NoKeysError(f"Secret {namespace}/{SECRET} is not there; apply deploy/rbac") from refused
            if not refused.conflict and not refused.not_found:
                raise
    raise NoKeysError(f"Secret {namespace}/{SECRET} has no keys although they were just written; take its data away")


async def publish(client: ApiClient, namespace: str, url: str, certificate: bytes, instance: str) -> None:
    """Write where the endpoint is, what to trust, and which process it is."""
    body = {
        "apiVersion": CONFIGMAPS.api_version,
        "kind": CONFIGMAPS.kind,
        "metadata": {"name": CONFIGMAP, "namespace": namespace},
        "data": {CONFIGMAP_URL: url, CONFIGMAP_CA: certificate.decode(), CONFIGMAP_INSTANCE: instance},
    }
    await client.apply(CONFIGMAPS, CONFIGMAP, body, field_manager=MANAGER, namespace=namespace)


async def keep_published(
    client: ApiClient,
    namespace: str,
    url: str,
    certificate: bytes,
    told: Told,
    *,
    every: float = PUBLISH_SECONDS,
    valid: Callable[[], bool] = lambda: True,
) -> None:
    """Write it now, and again after so many seconds, whatever became of it: nobody would find the endpoint any more.

    It ends once the certificate is not valid any more, as when a clock is put right that was years behind.
    """
    instance = secrets.token_hex(8)
    while valid():
        try:
            await publish(client, namespace, url, certificate, instance)
        except (ApiError, *TRANSPORT_ERRORS) as error:
            text = str(error) or repr(error)
            log.warning("where to find the endpoint cannot be written", configmap=CONFIGMAP, error=text)
            told(f"where to find it cannot be written to ConfigMap {namespace}/{CONFIGMAP}: {text}")
        else:
            told(None)
        await asyncio.sleep(every)


async def _get(client: ApiClient, namespace: str) -> dict[str, Any] | None:
    try:
        return await client.get(SECRETS, SECRET, namespace=namespace)
    except ApiError as error:
        if not error.not_found:
            raise
        return None


def _secret(namespace: str, data: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {"name": SECRET, "namespace": namespace},
        "data": data,
    }


def _data(identity: Identity) -> dict[str, str]:
    values = {_CERTIFICATE: identity.pair.certificate, _KEY: identity.pair.key, _USERS: identity.users_key}
    return {name: base64.b64encode(value).decode() for name, value in values.items()}


def _read(secret: dict[str, Any]) -> Identity | None:
    """What a Secret has; None without a key of users."""
    data = secret.get("data") or {}
    try:
        certificate, key, users = (base64.b64decode(data.get(name) or "") for name in (_CERTIFICATE, _KEY, _USERS))
    except (binascii.Error, ValueError):
        return None
    return Identity(KeyPair(certificate, key), users) if len(users) == _KEY_BYTES else None

"""Who the endpoint is: its certificate and the key of users' hashes in a Secret, where it is in a ConfigMap.

Both controllers that may lead have the same: agents go on with what they trust when another takes over, and users
keep their names.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from datetime import datetime
from typing import Any, Final, NamedTuple

import structlog

from berth.api.latency_exchange import CONFIGMAP, CONFIGMAP_CA, CONFIGMAP_URL
from berth.api.latencypolicy import MANAGER
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.resources import CONFIGMAPS, SECRETS
from controllers.latency.certificate import KeyPair, is_usable, make_key_pair

log = structlog.get_logger(__name__)

SECRET: Final = "berth-latency"  # noqa: S105 - the name of the object
"""Secret in the controller's namespace; delete it and restart the controller for new keys."""
_CERTIFICATE, _KEY, _USERS = "tls.crt", "tls.key", "users.key"
_KEY_BYTES: Final = 32


class Identity(NamedTuple):
    """What makes the endpoint the one that is trusted."""

    pair: KeyPair
    """certificate and its key"""
    users_key: bytes
    """what keys of policies are derived from"""

    def key_of(self, uid: str) -> str:
        """Return the key of the hashes of a policy's users, by the policy's uid, as meters are told it."""
        return base64.b64encode(hmac.new(self.users_key, uid.encode(), hashlib.sha256).digest()).decode()


async def load_identity(client: ApiClient, namespace: str, now: datetime) -> Identity:
    """Return what the Secret has, or what was made and written there: of two that make one, the first counts.

    Raises:
        ApiError, aiohttp.ClientError, OSError: it can be neither read nor written.
    """
    for final in (False, True):
        try:
            found = await client.get(SECRETS, SECRET, namespace=namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            body = _secret(namespace, Identity(make_key_pair(now), secrets.token_bytes(_KEY_BYTES)))
            try:
                await client.create(SECRETS, body, namespace=namespace)
            except ApiError as refused:
                if not refused.conflict or final:
                    raise
            continue
        identity = _read(found)
        if identity is not None and is_usable(identity.pair, now):
            return identity
        log.warning("the certificate is not usable, another is made", secret=SECRET, namespace=namespace)
        users = identity.users_key if identity is not None else secrets.token_bytes(_KEY_BYTES)
        body = _secret(namespace, Identity(make_key_pair(now), users))
        body["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        await client.replace(SECRETS, SECRET, body, namespace=namespace)
    found = await client.get(SECRETS, SECRET, namespace=namespace)
    identity = _read(found)
    if identity is None:
        raise RuntimeError(f"Secret {namespace}/{SECRET} has no keys although they were just written; delete it")
    return identity


async def publish(client: ApiClient, namespace: str, url: str, certificate: bytes) -> None:
    """Write where the endpoint is, and what to trust."""
    body = {
        "apiVersion": CONFIGMAPS.api_version,
        "kind": CONFIGMAPS.kind,
        "metadata": {"name": CONFIGMAP, "namespace": namespace},
        "data": {CONFIGMAP_URL: url, CONFIGMAP_CA: certificate.decode()},
    }
    await client.apply(CONFIGMAPS, CONFIGMAP, body, field_manager=MANAGER, namespace=namespace)


def _secret(namespace: str, identity: Identity) -> dict[str, Any]:
    values = {_CERTIFICATE: identity.pair.certificate, _KEY: identity.pair.key, _USERS: identity.users_key}
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {"name": SECRET, "namespace": namespace},
        "data": {name: base64.b64encode(value).decode() for name, value in values.items()},
    }


def _read(secret: dict[str, Any]) -> Identity | None:
    """What a Secret has; None without a key of users."""
    data = secret.get("data") or {}
    try:
        certificate, key, users = (base64.b64decode(data.get(name, "")) for name in (_CERTIFICATE, _KEY, _USERS))
    except (binascii.Error, ValueError):
        return None
    return Identity(KeyPair(certificate, key), users) if len(users) == _KEY_BYTES else None

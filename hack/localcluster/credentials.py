"""Tokens, the service account key and kubeconfig files of an instance.

Nothing here needs OpenSSL: kube-apiserver makes its own serving certificate, and
the service account key is a P-256 private key, which is a random number in a DER wrapper.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hack.localcluster.errors import ClusterError

USERS: Mapping[str, tuple[str, ...]] = {
    "admin": ("system:masters",),
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
    "kwok": ("system:masters",),
}
"""Users of a new instance and their groups; the components' rights come from the default RBAC roles."""

_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_PEM_END = "-----END CERTIFICATE-----"


def write_private(path: Path, text: str) -> None:
    """Write *text* to *path*, readable by the owner only from the first byte on."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)


def new_service_account_key() -> str:
    """PEM of a fresh P-256 private key (RFC 5915; the optional public key is left out, readers derive it)."""
    number = secrets.randbelow(_P256_ORDER - 1) + 1
    version = b"\x02\x01\x01"
    private = b"\x04\x20" + number.to_bytes(32, "big")
    curve = b"\xa0\x0a\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"  # [0] OBJECT IDENTIFIER prime256v1
    body = version + private + curve
    der = b"\x30" + bytes([len(body)]) + body
    return f"-----BEGIN EC PRIVATE KEY-----\n{base64.encodebytes(der).decode()}-----END EC PRIVATE KEY-----\n"


def write_tokens(path: Path, nodes: Iterable[str] = ()) -> dict[str, str]:
    """Write a fresh static token file for `USERS` and the kubelets of *nodes* to *path*; return each user's token."""
    users = {**USERS, **{f"system:node:{name}": ("system:nodes",) for name in nodes}}
    tokens = {user: secrets.token_urlsafe(24) for user in users}
    lines = [f'{tokens[user]},{user},{user},"{",".join(groups)}"' for user, groups in users.items()]
    write_private(path, "\n".join(lines) + "\n")
    return tokens


def authority_of(chain: str) -> str:
    """The last certificate of a PEM *chain*, which is the authority that signed the first.

    Raises:
        ClusterError: the chain is incomplete.
    """
    certificates = [part.strip() for part in chain.split(_PEM_END) if part.strip()]
    if not chain.rstrip().endswith(_PEM_END) or len(certificates) < 2:
        raise ClusterError("the serving certificate of kube-apiserver has no authority in its chain: see its log")
    return f"{certificates[-1]}\n{_PEM_END}\n"


def write_kubeconfig(path: Path, *, server: str, authority: str, token: str, user: str, name: str) -> None:
    """Write a kubeconfig for *user* to *path* (JSON, which is YAML as well).

    Args:
        path: the file, created with mode 0600.
        server: URL of the API server.
        authority: PEM of the authority that signed its certificate.
        token: bearer token.
        user: name of the user entry.
        name: name of the cluster and context entries.
    """
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": server,
                    "certificate-authority-data": base64.b64encode(authority.encode()).decode(),
                },
            }
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user, "namespace": "default"}}],
    }
    write_private(path, json.dumps(config, indent=2) + "\n")

"""Kubeconfig files for tests, and connections made from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from berth.kube.connection import Connection, load_connection


def forget_environment(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """No variable of this machine says where an API server is or how to reach it; nor does the home directory."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HOME", str(home))


def config(
    *, name: str = "x", cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, namespace: str = ""
) -> dict[str, Any]:
    """A kubeconfig of one cluster, user and context."""
    context = {"cluster": name, "user": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example:6443/", **(cluster or {})}}],
        "users": [{"name": name, "user": user or {"token": "secret"}}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }


def written(path: Path, document: Any) -> str:
    """Write a document, or text as it is; returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


async def connect(tmp_path: Path, **arguments: Any) -> Connection:
    """A connection from a kubeconfig with these settings of :func:`config`, in the file ``k``."""
    return await load_connection(kubeconfig=written(tmp_path / "k", config(**arguments)))

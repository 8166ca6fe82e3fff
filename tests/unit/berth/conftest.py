"""A client that is never opened: what these tests cover needs no API server."""

from __future__ import annotations

import pytest
from kubernetes_asyncio.client import Configuration

from berth.kube.client import ApiClient
from berth.kube.connection import Connection


@pytest.fixture
def closed_client() -> ApiClient:
    """A client whose every request raises RuntimeError."""
    return ApiClient(Connection(configuration=Configuration(host="https://192.0.2.1"), namespace="default"))

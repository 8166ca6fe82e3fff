"""What objects of many kinds have in common."""

from __future__ import annotations

import pytest

from berth.kube.meta import ObjectMeta, object_key


@pytest.mark.parametrize(
    ("metadata", "key"),
    [(ObjectMeta(name="a", namespace="ns"), "ns/a"), (ObjectMeta(name="node-1"), "node-1")],
    ids=["namespaced", "cluster-scoped"],
)
def test_object_key(metadata: ObjectMeta, key: str) -> None:
    assert object_key(metadata) == key

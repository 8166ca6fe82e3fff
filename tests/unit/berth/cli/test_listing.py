"""Lists of a cluster that lacks a kind, or refuses one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth.cli.listing import list_cluster
from berth.kube.errors import ApiError
from berth.kube.resources import NAMESPACES, NODES, SERVICES, Resource
from tests.support.api_server import Answer, Request, api_server, refusal

NODE_LIST = {"kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": "n1"}}]}


def answer(request: Request) -> Answer:
    """A node; Services are refused, Namespaces not known."""
    if "/nodes" in request.path:
        return Answer(body=NODE_LIST)
    return refusal(403, "Forbidden") if "/services" in request.path else refusal(404, "NotFound")


async def names(
    directory: Path, *needed: Resource[Any], optional: tuple[Resource[Any], ...] = ()
) -> dict[str, list[str]]:
    with api_server(answer) as server:
        found, _ = await list_cluster(
            needed,
            optional=optional,
            kubeconfig=server.kubeconfig(directory),
            context=None,
            progress=lambda *_: None,
        )
    return {kind: [item.metadata.name for item in items] for kind, items in found.items()}


async def test_a_kind_that_is_not_there_has_no_objects(tmp_path: Path) -> None:
    assert await names(tmp_path, NODES, NAMESPACES) == {"Node": ["n1"], "Namespace": []}


async def test_an_optional_kind_that_may_not_be_listed_has_none_either(tmp_path: Path) -> None:
    assert await names(tmp_path, NODES, optional=(SERVICES, NAMESPACES)) == {
        "Node": ["n1"], "Service": [], "Namespace": [],
    }  # fmt: skip


async def test_any_other_must_be_listed(tmp_path: Path) -> None:
    with pytest.raises(ApiError):
        await names(tmp_path, NODES, SERVICES)

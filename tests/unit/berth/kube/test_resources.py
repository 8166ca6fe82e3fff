"""Paths of resources on the API server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from berth.kube import resources
from berth.kube.resources import APP_GROUPS, CSI_NODES, EVENTS, LEASES, NODES, PODS, Resource, version_number


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        pytest.param(PODS, (), "/api/v1/pods", id="core, all namespaces"),
        pytest.param(PODS, ("shop",), "/api/v1/namespaces/shop/pods", id="core, one namespace"),
        pytest.param(PODS, ("shop", "a"), "/api/v1/namespaces/shop/pods/a", id="core, one object"),
        pytest.param(PODS, ("shop", "a", "binding"), "/api/v1/namespaces/shop/pods/a/binding", id="core, subresource"),
        pytest.param(NODES, (), "/api/v1/nodes", id="cluster-scoped"),
        pytest.param(NODES, (None, "n1"), "/api/v1/nodes/n1", id="cluster-scoped object"),
        pytest.param(NODES, ("shop", "n1"), "/api/v1/nodes/n1", id="namespace is ignored outside namespaces"),
        pytest.param(CSI_NODES, (), "/apis/storage.k8s.io/v1/csinodes", id="group, cluster-scoped"),
        pytest.param(
            LEASES, ("kube-system", "l"), "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l", id="group"
        ),
        pytest.param(
            APP_GROUPS,
            ("shop", "boutique", "status"),
            "/apis/appgroup.diktyo.x-k8s.io/v1alpha1/namespaces/shop/appgroups/boutique/status",
            id="custom resource, status",
        ),
        pytest.param(NODES, (None, "a:b"), "/api/v1/nodes/a:b", id="colon, as in RBAC names"),
        pytest.param(PODS, ("shop", "a/../b"), "/api/v1/namespaces/shop/pods/a%2F..%2Fb", id="slash in a name"),
        pytest.param(PODS, ("..", "a"), "/api/v1/namespaces/%2E%2E/pods/a", id="dots as a namespace"),
        pytest.param(PODS, ("shop", "a?b#c"), "/api/v1/namespaces/shop/pods/a%3Fb%23c", id="query and fragment"),
    ],
)
def test_path(resource: Resource[object], arguments: tuple[str | None, ...], path: str) -> None:
    assert resource.path(*arguments) == path


@given(name=st.text(min_size=1, max_size=40))
def test_a_name_is_one_path_segment_whatever_it_holds(name: str) -> None:
    url = URL("https://server" + PODS.path("shop", name), encoded=True)
    assert url.raw_parts[:-1] == ("/", "api", "v1", "namespaces", "shop", "pods")
    assert not url.query_string
    assert not url.fragment


def test_an_object_of_a_namespaced_kind_needs_its_namespace() -> None:
    with pytest.raises(ValueError, match=r"Pod 'a' needs a namespace"):
        PODS.path(None, "a")


def test_a_subresource_needs_its_object() -> None:
    with pytest.raises(ValueError, match=r"subresource 'status' of nodes needs the name"):
        NODES.path(None, None, "status")


@pytest.mark.parametrize(
    ("resource", "api_version"),
    [(PODS, "v1"), (EVENTS, "events.k8s.io/v1"), (APP_GROUPS, "appgroup.diktyo.x-k8s.io/v1alpha1")],
)
def test_api_version(resource: Resource[object], api_version: str) -> None:
    assert resource.api_version == api_version


def test_all_declared_resources_have_distinct_paths() -> None:
    declared = [value for value in vars(resources).values() if isinstance(value, Resource)]
    assert len(declared) >= 12
    assert len({resource.path() for resource in declared}) == len(declared)


@pytest.mark.parametrize(
    ("version", "number"),
    [("5", 5), ("", -1), ("later", -1), ("18446744073709551616", 2**64), ("9" * 21, -1), ("9" * 5000, -1)],
    ids=lambda value: str(value)[:21],
)
def test_versions_are_compared_as_numbers(version: str, number: int) -> None:
    assert version_number(version) == number

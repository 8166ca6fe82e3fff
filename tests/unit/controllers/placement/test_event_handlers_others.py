"""Whom changes of one tenant have tried again: not those that they cannot help."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from berth.kube.objects import CustomObject, Namespace, ObjectMeta
from berth.scheduling.configuration import TopologyReference
from tests.support import kinds
from tests.support.desk import Desk
from tests.support.placement import lone


def network(namespace: str, cost: Any = 5) -> CustomObject:
    body = kinds.network_topology(kinds.weight_set(z1={"z2": cost}))
    return CustomObject.of({"metadata": {"name": "net", "namespace": namespace}, "spec": body["spec"]})


@pytest.mark.parametrize(
    ("configured", "namespace", "tried"),
    [
        pytest.param(None, "berth-system", ["big", "huge"], id="of-the-system"),
        pytest.param(None, "default", ["big"], id="of-the-pods-own-namespace"),
        pytest.param(None, "another", [], id="of-another-namespace"),
        pytest.param("another", "another", ["big", "huge"], id="configured"),
        pytest.param("another", "berth-system", [], id="of-the-system-while-another-is-configured"),
    ],
)
def test_topologies_wake_those_that_they_may_serve(
    desk: Desk, configured: str | None, namespace: str, tried: list[str]
) -> None:
    if configured is not None:
        handlers, reference = desk.controller.handlers, TopologyReference(namespace=configured, name="net")
        (profile,) = handlers._configuration.profiles
        profiles = (profile.model_copy(update={"network_topology": reference}),)
        handlers._configuration = handlers._configuration.model_copy(update={"profiles": profiles})
    desk.fail(lone("big", cpu="100"))
    desk.fail(lone("huge", cpu="200", namespace="shop"))
    desk.see("networktopologies", network(namespace))
    assert sorted(desk.tried()) == tried


@pytest.mark.parametrize(("field", "tried"), [("labels", ["big"]), ("annotations", [])])
def test_namespaces_wake_others_when_their_labels_change(desk: Desk, field: str, tried: list[str]) -> None:
    desk.see("namespaces", Namespace(metadata=ObjectMeta(name="team")))
    desk.fail(lone("big", cpu="100"))
    desk.see("namespaces", Namespace(metadata=replace(ObjectMeta(name="team"), **{field: {"team": "a"}})))
    assert desk.tried() == tried

"""Names on the wire, and what a pod's labels say about its application."""

import pytest

from berth.api import labels
from berth.api.labels import Membership, membership


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, None),
        ({"app": "x"}, None),
        ({"appgroup.diktyo.x-k8s.io": ""}, None),
        ({"appgroup.diktyo.x-k8s.io.workload": "w"}, None),
        ({"appgroup.diktyo.x-k8s.io": "shop"}, Membership("shop", "")),
        (
            {"appgroup.diktyo.x-k8s.io": "shop", "appgroup.diktyo.x-k8s.io.workload": "web", "app": "x"},
            Membership(appgroup="shop", workload="web"),
        ),
    ],
    ids=["no-labels", "other-labels", "empty", "workload-only", "group-only", "both"],
)
def test_membership(given: dict[str, str], expected: Membership | None) -> None:
    assert membership(given) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SCHEDULER_NAME", "berth-scheduler"),
        ("LABEL_APPGROUP", "appgroup.diktyo.x-k8s.io"),
        ("LABEL_WORKLOAD", "appgroup.diktyo.x-k8s.io.workload"),
        ("LABEL_REGION", "topology.kubernetes.io/region"),
        ("LABEL_ZONE", "topology.kubernetes.io/zone"),
        ("ANNOTATION_DECISION", "berth.dev/decision"),
        ("RESOURCE_BANDWIDTH", "network.aware.com/bandwidth"),
        ("WEIGHTS_USER_DEFINED", "UserDefined"),
        ("WEIGHTS_NETPERF", "NetperfCosts"),
    ],
)
def test_names_that_others_rely_on(name: str, value: str) -> None:
    assert getattr(labels, name) == value

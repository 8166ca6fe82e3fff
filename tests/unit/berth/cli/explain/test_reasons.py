"""Reasons and the rules they belong to: no filter may speak of a reason that explain cannot place."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from berth.cli.explain.reasons import CAPACITY, NETWORK, OTHER, counts_in, rejected_rows, rule_of
from berth.scheduling import plugins as filters
from berth.scheduling.plugins.pipeline import default_filters

CONSTANTS = [
    pytest.param(module.name, text, id=f"{module.name}.{name}")
    for module in pkgutil.iter_modules(filters.__path__)
    for name, text in vars(importlib.import_module(f"{filters.__name__}.{module.name}")).items()
    if name.startswith(("REASON", "TOO_MANY")) and isinstance(text, str)
]


@pytest.mark.parametrize(("module", "reason"), CONSTANTS)
def test_every_reason_of_a_filter_names_that_filter(module: str, reason: str) -> None:
    own = [rule.name for rule in default_filters() if type(rule).__module__.endswith(f".{module}")]
    assert [rule_of(reason)] == own


def test_there_are_reasons_to_test() -> None:
    assert len(CONSTANTS) >= 15


@pytest.mark.parametrize(
    ("reason", "rule"),
    [
        ("Insufficient nvidia.com/gpu", "NodeResourcesFit"),
        ("node(s) exceeded maxNetworkCost towards a placed dependency", NETWORK),
        ("network cost above maxNetworkCost", NETWORK),
        ("node(s) had too little bandwidth for the pod's dependencies", NETWORK),
        ("insufficient bandwidth on a shared link", NETWORK),
        ("node(s) were filled to their usage threshold", CAPACITY),
        ("usage threshold of cpu", CAPACITY),
        ("insufficient cpu", CAPACITY),
        ("node(s) took no pod as large as this one", CAPACITY),
        ("larger than the node's largest unit of cpu", CAPACITY),
        ("node(s) lately rejected a pod of the same owner", OTHER),
    ],
)
def test_rules_of_the_planner(reason: str, rule: str) -> None:
    assert rule_of(reason) == rule


@pytest.mark.parametrize(
    ("message", "counts"),
    [
        pytest.param(
            "0/9 nodes are available: 3 Insufficient cpu, 6 node(s) were unschedulable.",
            {"Insufficient cpu": 3, "node(s) were unschedulable": 6},
            id="the filters' words",
        ),
        pytest.param("0/4 nodes: 4 insufficient cpu", {"insufficient cpu": 4}, id="the joint planner's words"),
        pytest.param("FailedScheduling: 0/1 nodes are available: 1 Too many pods.", {"Too many pods": 1}, id="reason"),
        pytest.param(
            "AppGroup a is placed all or nothing and waits for pod b: 0/9 nodes are available: 9 Insufficient cpu.",
            {},
            id="the counts are another pod's",
        ),
        pytest.param("0/0 nodes are available.", {}, id="no nodes"),
        pytest.param("waits for members", {}, id="no counts"),
    ],
)
def test_counts_in_a_message(message: str, counts: dict[str, int]) -> None:
    assert counts_in(message) == counts


def test_rows_begin_with_what_rejected_most() -> None:
    rows = rejected_rows({"Insufficient cpu": 2, "node(s) were unschedulable": 7, "Too many pods": 2})
    assert [(row["filter"], row["nodes"]) for row in rows] == [
        ("NodeUnschedulable", 7),
        ("NodeResourcesFit", 2),
        ("NodeResourcesFit", 2),
    ]

"""Operations: parameters in place, and whatever is not understood named."""

from __future__ import annotations

from typing import Any

import pytest

from bench.schedperf.operations import (
    Barrier,
    Churn,
    CreateNodes,
    CreatePods,
    CreatePodSets,
    DeletePods,
    LeftOutError,
    Operation,
    Sleep,
    StopCollectingMetrics,
    UpdateAny,
    interpret,
)

PARAMS = {"initNodes": 500, "measurePods": 1000, "pause": "1m30s"}


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        pytest.param({"opcode": "createNodes", "count": 1}, CreateNodes(count=1), id="plain count"),
        pytest.param(
            {"opcode": "createNodes", "countParam": "$initNodes", "nodeTemplatePath": "n.yaml"},
            CreateNodes(count=500, node_template_path="n.yaml"),
            id="count by parameter",
        ),
        pytest.param(
            {"opcode": "createPods", "countParam": "$measurePods", "collectMetrics": True, "namespace": "sched-1"},
            CreatePods(count=1000, collect_metrics=True, namespace="sched-1"),
            id="pods",
        ),
        pytest.param(
            {
                "opcode": "createPodSets",
                "countParam": "$initNodes",
                "namespacePrefix": "init",
                "createPodsOp": {"opcode": "createPods", "countParam": "$measurePods"},
            },
            CreatePodSets(count=500, namespace_prefix="init", create_pods_op=CreatePods(count=1000)),
            id="an operation within another",
        ),
        pytest.param(
            {"opcode": "churn", "mode": "create", "templatePaths": ["a.yaml"], "intervalMilliseconds": 200},
            Churn(mode="create", template_paths=["a.yaml"], interval_milliseconds=200),
            id="churn",
        ),
        pytest.param({"opcode": "barrier"}, Barrier(stage_requirement="Scheduled"), id="barrier with defaults"),
        pytest.param(
            {"opcode": "deletePods", "namespace": "namespace-3", "deletePodsPerSecond": 50},
            DeletePods(namespace="namespace-3", delete_pods_per_second=50),
            id="deletion",
        ),
        pytest.param(
            {"opcode": "updateAny", "countParam": "$initNodes", "templatePath": "u.yaml", "subresources": ["resize"]},
            UpdateAny(count=500, template_path="u.yaml", subresources=["resize"]),
            id="update",
        ),
        pytest.param({"opcode": "sleep", "durationParam": "$pause"}, Sleep(duration="1m30s"), id="sleep"),
        pytest.param({"opcode": "stopCollectingMetrics"}, StopCollectingMetrics(), id="no fields"),
    ],
)
def test_operations_have_their_parameters_in_place(document: dict[str, Any], operation: Operation) -> None:
    assert interpret(document, PARAMS) == operation


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        pytest.param({"opcode": "createResourceDriver"}, "operation createResourceDriver", id="operation"),
        pytest.param({"opcode": "createPods", "count": 1, "steadyState": True}, "field steady_state", id="field"),
        pytest.param({"opcode": "createPods", "countParam": "$initPods"}, r"\$initPods", id="parameter"),
        pytest.param({"opcode": "createPods"}, "lacks count", id="missing field"),
        pytest.param({}, "operation None", id="no opcode"),
        pytest.param(
            {"opcode": "createPodSets", "count": 1, "namespacePrefix": "a", "createPodsOp": {"opcode": "odd"}},
            "operation odd",
            id="inner operation",
        ),
    ],
)
def test_what_is_not_understood_is_named(document: dict[str, Any], reason: str) -> None:
    with pytest.raises(LeftOutError, match=reason):
        interpret(document, PARAMS)


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("2s", 2.0), ("1m30s", 90.0), ("1.5s", 1.5), ("1h", 3600.0)]
)
def test_durations_are_in_seconds(text: str, seconds: float) -> None:
    assert Sleep(duration=text).seconds == pytest.approx(seconds)

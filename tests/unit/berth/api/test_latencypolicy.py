"""LatencyPolicy: what a spec may say, and that a status is read as it was written."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.base import ApiModel
from berth.api.errors import InvalidObjectError
from berth.api.latencypolicy import (
    Exploration,
    LatencyPolicy,
    LatencyPolicySpec,
    LatencyPolicyStatus,
    Moves,
    Objective,
    UserMode,
    Users,
)


def manifest(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "berth.dev/v1alpha1",
        "kind": "LatencyPolicy",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"targetRef": {"name": "web"}, **spec},
    }


def test_defaults() -> None:
    spec = LatencyPolicy.parse(manifest(hardMaxLatency=40)).spec
    assert (spec.target_ref.api_version, spec.target_ref.kind) == ("apps/v1", "Deployment")
    assert (spec.objective, spec.users.mode, spec.users.expiry_seconds) == (Objective.CONSTRAINTS, UserMode.SINGLE, 300)
    assert spec.exploration == tuple(Exploration)
    assert (spec.moves.max_concurrent, spec.moves.min_improvement_percent, spec.moves.dry_run) == (1, 10, False)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"hardMaxLatency": 0}, "hardMaxLatency", id="a limit of nothing"),
        pytest.param({"softMaxLatency": 60_001}, "softMaxLatency", id="a limit beyond a minute"),
        pytest.param({"objective": "Best"}, "objective", id="an objective that there is not"),
        pytest.param({"users": {"expirySeconds": 0}}, "users.expirySeconds", id="users who expire at once"),
        pytest.param({"moves": {"maxPerHour": 65}}, "moves.maxPerHour", id="more moves than are remembered"),
        pytest.param({"moves": {"maxConcurrent": 0}}, "moves.maxConcurrent", id="no pod at once"),
        pytest.param({"moves": {"minImprovementPercent": 100}}, "moves.minImprovementPercent", id="to nothing"),
        pytest.param({"minSamples": 16}, "minSamples", id="more samples than a window has"),
        pytest.param({"exploration": ["Guess"]}, "exploration", id="a way to explore that there is not"),
    ],
)
def test_what_makes_no_sense_names_its_field(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidObjectError, match=field.replace(".", r"\.")):
        LatencyPolicy.parse(manifest(**spec))


def test_a_status_is_read_as_it_was_written() -> None:
    wire = {
        "nodes": [{"node": "a", "state": "HardValid", "source": "Meter", "p50Microseconds": 35_000, "samples": 3,
                   "p90Microseconds": 36_000, "time": "2026-01-31T12:00:00Z", "rejections": 0}],
        "moves": [{"pod": "p", "sourceNode": "a", "targetNode": "b", "reason": "Nearer", "outcome": "Moved",
                   "startTime": "2026-01-31T12:00:00Z", "readyTime": "2026-01-31T12:00:05Z"}],
        "associations": [{"user": "cafe", "node": "b", "lastSeenTime": "2026-01-31T12:00:00Z"}],
        "plan": ["b"],
        "probedTime": "2026-01-31T12:00:00Z",
        "conditions": [],
    }  # fmt: skip
    assert LatencyPolicyStatus.model_validate(wire).to_api() == wire


@pytest.mark.parametrize(
    ("model", "field"),
    [
        pytest.param(model, name, id=f"{model.__name__}.{name}")
        for model in (LatencyPolicySpec, Users, Moves)
        for name, info in model.model_fields.items()
        if isinstance(info.default, int)
    ],
)
def test_what_holds_where_nothing_is_stated_is_told(model: type[ApiModel], field: str) -> None:
    """The schema has no defaults, so that what is stored is what was written: kubectl explain has to say them."""
    info = model.model_fields[field]
    text = f"Unset: {str(info.default).lower()}."
    assert info.description is not None
    assert text in info.description

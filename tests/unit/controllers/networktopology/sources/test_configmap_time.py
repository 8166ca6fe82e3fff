"""The age of the measurements is that of the ConfigMap's data, not of its labels and annotations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controllers.networktopology.sources.configmap import SourceConfigMap

CREATED = "2026-03-01T10:00:00Z"
DATA: dict[str, Any] = {"f:data": {".": {}, "f:key": {}}}
LABELS: dict[str, Any] = {"f:metadata": {"f:annotations": {"f:round": {}}}}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([], "2026-03-01T10:00:00+00:00", id="created, managers unknown"),
        pytest.param([("2026-03-01T11:00:00Z", DATA)], "2026-03-01T11:00:00+00:00", id="data written later"),
        pytest.param([("2026-03-01T12:00:00Z", LABELS)], "2026-03-01T10:00:00+00:00", id="annotated later"),
        pytest.param(
            [("2026-03-01T11:00:00Z", DATA), ("2026-03-01T12:00:00Z", LABELS)],
            "2026-03-01T11:00:00+00:00",
            id="data written, then annotated",
        ),
        pytest.param(
            [("2026-03-01T11:00:00Z", DATA), ("2026-03-01T13:00:00Z", {**DATA, **LABELS})],
            "2026-03-01T13:00:00+00:00",
            id="two writers of data",
        ),
        pytest.param([(None, DATA)], "2026-03-01T10:00:00+00:00", id="an entry without a time"),
        pytest.param([("0000-01-01T00:00:00Z", DATA)], "2026-03-01T10:00:00+00:00", id="the year 0"),
    ],
)
def test_time_of_the_data(entries: list[tuple[str | None, dict[str, Any]]], expected: str) -> None:
    fields = [{"manager": "m", "time": time, "fieldsV1": owned} for time, owned in entries]
    document = {"metadata": {"name": "n", "creationTimestamp": CREATED, "managedFields": fields}, "data": {"key": "1"}}
    time = msgspec.json.decode(msgspec.json.encode(document), type=SourceConfigMap).time
    assert time is not None
    assert time.isoformat() == expected

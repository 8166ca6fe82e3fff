"""Which assignments may be changed, by what the API server says of their owners."""

from __future__ import annotations

import json
from typing import Any

import pytest

from berth.api.socketstatus import PLACEMENT_MANAGER, REPAIRING_MANAGER
from controllers.socketstatus.ownership import movable


def owned(manager: str, *uids: str, field: str = "f:socket", **fields: Any) -> dict[str, Any]:
    keys: dict[str, Any] = {f"k:{json.dumps({'uid': uid})}": {field: {}} for uid in uids}
    return {"manager": manager, "fieldsV1": {"f:spec": {"f:assignments": keys}}, **fields}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([owned(PLACEMENT_MANAGER, "a", "b")], {"a", "b"}, id="placement's"),
        pytest.param([owned(REPAIRING_MANAGER, "a"), owned(PLACEMENT_MANAGER, "a")], {"a"}, id="of both"),
        pytest.param([owned(PLACEMENT_MANAGER, "a"), owned("kubectl-edit", "a")], set(), id="edited to the same"),
        pytest.param([owned("kubectl-edit", "a")], set(), id="edited"),
        pytest.param(
            [owned(PLACEMENT_MANAGER, "a"), owned("kubectl-edit", "a", field="f:interferenceClass")],
            {"a"},
            id="another field edited",
        ),
        pytest.param([owned("kubectl-edit", "a", field="f:name")], set(), id="nobody's socket"),
        pytest.param([owned(PLACEMENT_MANAGER, "a", subresource="status")], set(), id="of the status"),
        pytest.param([{}], set(), id="taken away"),
        pytest.param([{"manager": "x", "fieldsV1": {"f:spec": {"f:assignments": {".": {}}}}}], set(), id="the list"),
    ],
)
def test_owners(entries: list[dict[str, Any]], expected: set[str]) -> None:
    assert movable(entries) == expected

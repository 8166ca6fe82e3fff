"""What of a SocketStatus the controller takes in."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.cpulist import MAX_CPU
from berth.api.socketstatus import SocketStatus
from controllers.socketstatus.reading import read

ALL = f"0-{MAX_CPU}"
CONDITION = {
    "type": "Pinned",
    "status": "True",
    "reason": "Pinned",
    "message": "all",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
ASSIGNMENT = {"uid": "u1", "namespace": "shop", "name": "web-1", "socket": 1}
POD = {"uid": "u1", "namespace": "shop", "name": "web-1", "cpus": ALL, "effectiveCpus": ALL}


def document(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n1"}, "spec": {"assignments": [ASSIGNMENT]}, "status": status}


def test_lists_of_cpus_are_left_out() -> None:
    """A hundred thousand of them fit into an object, and no memory holds as many sets of all CPUs."""
    sockets = [
        {
            "socket": number,
            "cpus": ALL,
            "cpuCount": 4,
            "pinnedCaches": 2,
            "coreCount": 3,
            "smtSiblings": [ALL],
            "caches": [{"level": 3, "cpus": ALL}],
        }
        for number in (1, 7)
    ]
    found = read(document(sockets=sockets, pods=[POD], conditions=[CONDITION]))
    told = [(each.socket, each.cpu_count, each.pinned_caches, each.core_count) for each in found.status.sockets]
    assert told == [(1, 4, 2, 3), (7, 4, 2, 3)]
    assert not any(each.cpus or each.smt_siblings or each.caches for each in found.status.sockets)
    assert found.status.pods == ()
    assert [each.type for each in found.status.conditions] == ["Pinned"]
    assert [each.name for each in found.spec.assignments] == ["web-1"]


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param({"metadata": {"name": "n1"}}, id="nothing but a name"),
        pytest.param({"metadata": {"name": "n1"}, "status": None}, id="null"),
        pytest.param(document(), id="an empty status"),
        pytest.param(document(sockets=None, conditions=None), id="null fields"),
        pytest.param(document(sockets=[{"socket": -1, "cpus": "0", "cpuCount": 1}]), id="a number that no socket has"),
        pytest.param(document(sockets=[{}]), id="a socket without anything"),
    ],
)
def test_a_status_that_says_nothing_is_empty(obj: dict[str, Any]) -> None:
    found = read(obj)
    assert found.status == SocketStatus.parse({"metadata": {"name": "n1"}}).status
    assert found.metadata.name == "n1"

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
    ("stated", "hour"),
    [
        pytest.param("2026-01-31T12:00:00Z", 12, id="a time"),
        pytest.param("0000-01-01T00:00:00Z", None, id="a year that is none"),
        pytest.param("9999-12-31T23:00:00-05:00", None, id="beyond the last year"),
        pytest.param("2026-01-31T12:00:00+99:00", None, id="a zone that is none"),
    ],
)
def test_a_time_that_only_the_api_server_understands_is_as_none(stated: str, hour: int | None) -> None:
    """Anybody who may edit assignments can write one, and all other pods of the node are to be paired all the same."""
    others = {"uid": "u2", "namespace": "shop", "name": "web-2", "socket": 0, "time": "2026-01-31T12:00:00Z"}
    spec = {"assignments": [ASSIGNMENT | {"time": stated}, others]}
    one, other = read({"metadata": {"name": "n1"}, "spec": spec}).spec.assignments
    assert (one.name, one.time and one.time.hour) == ("web-1", hour)
    assert other.time is not None


@pytest.mark.parametrize("stated", ["0000-01-01T00:00:00Z", "9999-12-31T23:00:00-05:00"])
def test_a_condition_of_others_with_such_a_time_hides_no_sockets(stated: str) -> None:
    theirs = CONDITION | {"type": "Theirs", "lastTransitionTime": stated}
    found = read(document(sockets=[{"socket": 0, "cpus": "0-3", "cpuCount": 4}], conditions=[CONDITION, theirs]))
    assert [each.socket for each in found.status.sockets] == [0]
    assert [each.type for each in found.status.conditions] == ["Pinned", "Theirs"]


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

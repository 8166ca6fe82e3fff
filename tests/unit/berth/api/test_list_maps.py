"""Keys that stand twice in lists with keys."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.list_maps import repeated_keys
from berth.api.networktopology import NetworkTopology
from berth.api.socketstatus import SocketStatus


def status_of(assigned: Sequence[str] = (), sockets: Sequence[int] = ()) -> SocketStatus:
    assignments = [{"uid": uid, "namespace": "shop", "name": "web", "socket": 0} for uid in assigned]
    reports = [{"socket": number, "cpus": "0", "cpuCount": 1} for number in sockets]
    return SocketStatus.parse({"spec": {"assignments": assignments}, "status": {"sockets": reports}}, whole=True)


@given(st.lists(st.sampled_from("abcd")), st.lists(st.integers(0, 3)))
def test_each_item_is_named_that_has_the_key_of_one_before(uids: list[str], sockets: list[int]) -> None:
    expected = [("spec", "assignments", place) for place, uid in enumerate(uids) if uid in uids[:place]]
    expected += [("status", "sockets", place) for place, each in enumerate(sockets) if each in sockets[:place]]
    assert [problem.path for problem in repeated_keys(status_of(uids, sockets))] == expected


def test_the_text_names_key_and_the_other_item() -> None:
    (problem,) = repeated_keys(status_of("abca"))
    assert str(problem).startswith("spec.assignments[3]: uid a is stated by spec.assignments[0] as well; ")


@pytest.mark.parametrize(("second", "found"), [("Dijkstra", 0), ("UserDefined", 1)], ids=["two names", "one name"])
def test_lists_of_other_kinds(second: str, found: int) -> None:
    weights = [{"name": name, "topologyList": []} for name in ("UserDefined", second)]
    topology = NetworkTopology.parse(
        {
            "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
            "kind": "NetworkTopology",
            "spec": {"configmapName": "", "weights": weights},
        }
    )
    assert len(list(repeated_keys(topology))) == found

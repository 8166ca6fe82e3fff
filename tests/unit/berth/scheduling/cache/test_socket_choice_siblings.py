"""Sockets whose cores have SMT siblings: pods meet on these only where they need more cores than there are."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.support.seating import cache_of, place
from tests.support.sockets import classed, status


@pytest.mark.parametrize(
    ("cores", "cpu", "suffered"),
    [
        pytest.param(3, "1", 1.46, id="a core each"),
        pytest.param(2, "1", 1 + 0.46 * (1 + 1 / 3), id="of three two share one"),
        pytest.param(4, "2.1", 1.46 + 0.46 / 2, id="two cores each, of four"),
        pytest.param(8, "2.1", 1.46, id="no core has siblings"),
        pytest.param(10**9, "1", 1.46, id="more cores than there can be"),
    ],
)
def test_on_siblings_a_pod_suffers_twice(cores: int, cpu: str, suffered: float) -> None:
    cache = cache_of(status("n1", cpus=(8,), cores=(cores,)))
    place(cache, "D", "D", "D", cpu=cpu)
    found = cache.state.socket_choice.outlook("pod-default-p0")
    assert found is not None
    assert found.suffered == pytest.approx(suffered)


@pytest.mark.parametrize(("cores", "expected"), [((), {0: 4, 1: 4}), ((2, 8), {0: 3, 1: 5})], ids=["none", "siblings"])
def test_a_socket_with_more_cores_takes_more_pods(cores: tuple[int, ...], expected: dict[int, int]) -> None:
    assert Counter(place(cache_of(status("n1", cpus=(4, 16), cores=cores)), *"AAAAAAAA")) == expected


@pytest.mark.parametrize(
    "then",
    [
        pytest.param({"cores": (1, 1)}, id="siblings come to light"),
        pytest.param({"cpus": (4,), "cores": (2,)}, id="a socket goes"),
        pytest.param({"cpus": (1, 1), "cores": (1, 1)}, id="siblings go offline"),
    ],
)
def test_a_node_may_be_another_while_pods_are_there(then: dict[str, Any]) -> None:
    cache = cache_of(status("n1", cpus=(4, 4), cores=(2, 2)))
    place(cache, *"DDDDD")
    cache.update_sockets(status("n1", **then))
    sockets = range(len(then.get("cpus", (4, 4))))
    newcomer = classed("late", "D", cpu="1")
    cache.assume(newcomer, "n1")
    found = cache.state.socket_choice.outlook(newcomer.metadata.uid)
    assert found is not None
    assert found.socket is None or found.socket in sockets
    assert found.suffered >= 1.23

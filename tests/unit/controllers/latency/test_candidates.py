"""Which nodes would take one more pod, as the scheduler's filters say. Left out: the filters themselves."""

from __future__ import annotations

from berth.scheduling.cache.cache import Cache
from controllers.latency.candidates import Candidates
from tests.support import builders
from tests.support.placement import Clock


def candidates(*names: str) -> Candidates:
    made = Candidates(Cache(clock=Clock()))
    for name in names:
        made.node_changed(None, builders.node(name, cpu="2"))
    return made


def test_nodes_with_room_for_one_more_the_emptiest_first() -> None:
    made = candidates("a", "b", "c")
    web = builders.pod("web", on="a", cpu="1500m")
    other = builders.pod("other", on="b", cpu="300m")
    made.pod_changed(None, web)
    made.pod_changed(None, other)
    assert made.like(web) == ("c", "b")
    made.pod_changed(other, None)
    assert set(made.like(web)) == {"b", "c"}
    made.node_changed(builders.node("c", cpu="2"), None)
    assert made.like(web) == ("b",)


def test_its_own_node_is_none_if_there_is_no_room_beside_it() -> None:
    made = candidates("a")
    web = builders.pod("web", on="a", cpu="1500m")
    made.pod_changed(None, web)
    assert made.like(web) == ()
    small = builders.pod("small", on="a", cpu="100m")
    made.pod_changed(None, small)
    assert made.like(small) == ("a",)

"""Whatever changes in whichever order: the bandwidth that is kept up to date is what is counted anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects import Pod, Service
from berth.network.bandwidth_allocations import BandwidthAllocations
from berth.network.groups import GroupKey
from berth.scheduling.cache.cache import Cache
from tests.support import kinds
from tests.support.placement import Clock, group_object, member, zoned

Step = Callable[[Cache, dict[str, Pod]], None]
SHOP = GroupKey("default", "shop")
WORKLOADS, NODES = "abc", ("n1", "n2", "n3", "n4")
SERVICES: tuple[dict[str, Any], ...] = (
    {},
    {"trafficDistribution": "PreferSameZone"},
    {"trafficDistribution": "PreferSameNode"},
    {"internalTrafficPolicy": "Local"},
    {"clusterIP": "None"},
)
workloads, nodes = st.sampled_from(WORKLOADS), st.sampled_from(NODES)


def _service(name: str, app: str, spec: dict[str, Any]) -> Service:
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": {"app": app}, **spec}}
    return msgspec.convert(body, Service)


@st.composite
def groups(draw: st.DrawFn) -> Step:
    """The AppGroup is edited, is broken, or goes."""
    edges = draw(st.sets(st.tuples(workloads, workloads)))
    amount, members = draw(st.sampled_from(["10", "7", "0"])), draw(st.sampled_from([*[3] * 9, "three"]))
    items = [
        kinds.workload(one, *(called for own, called in sorted(edges) if own == one), minBandwidth=amount)
        for one in WORKLOADS
    ]
    edited = group_object("shop", *items, numMembers=members)
    gone = draw(st.integers(0, 9)) == 0
    return lambda cache, _: cache.delete_group(SHOP) if gone else (cache.update_group(edited), None)[1]


@st.composite
def services(draw: st.DrawFn) -> Step:
    """A Service is edited or goes."""
    service = _service(draw(workloads), draw(workloads), draw(st.sampled_from(SERVICES)))
    gone = draw(st.booleans())
    return lambda cache, _: cache.delete_service(service) if gone else (cache.update_service(service), None)[1]


@st.composite
def places(draw: st.DrawFn) -> Step:
    """A node moves to another zone or goes."""
    node, gone = zoned(draw(nodes), draw(st.sampled_from(["z1", "z2"]))), draw(st.integers(0, 4)) == 0
    return lambda cache, _: cache.delete_node(node) if gone else cache.update_node(node)


@st.composite
def pods(draw: st.DrawFn) -> Step:
    """A pod comes, is assumed, given up, bound, changed, moved to another workload, or ends."""
    name, workload, node = draw(st.sampled_from("pqrst")), draw(workloads), draw(nodes)
    what, app = draw(st.sampled_from(["see", "see", "assume", "forget", "go"])), draw(workloads)
    bound, leaving, finished, admitted = (draw(st.integers(0, 5)) for _ in range(4))

    def step(cache: Cache, known: dict[str, Pod]) -> None:
        old = known.get(name)
        if what == "see" or old is None:
            place = (old.spec.node_name if old is not None else "") or (node if bound < 4 else "")
            pod = member(name, workload, on=place, labels={"app": app}, deleting=leaving == 0)
            pod.status.phase = "Succeeded" if finished == 0 else pod.status.phase
            pod.metadata.annotations = {"berth.dev/admitted-bandwidth": '{"b":5,"c":3}'} if admitted == 0 else {}
            cache.update_pod(pod)
            known[name] = pod
        elif what == "go":
            cache.delete_pod(known.pop(name))
        elif what == "forget" and cache.assumed(old.metadata.uid):
            cache.forget(old)
        elif what == "assume" and not (old.spec.node_name or old.finished or cache.assumed(old.metadata.uid)):
            cache.assume(old, node)

    return step


@settings(max_examples=80, derandomize=True, deadline=None)
@given(
    service=st.sampled_from(SERVICES),
    steps=st.lists(st.tuples(st.one_of(pods(), pods(), groups(), services(), places()), st.booleans()), min_size=10),
)
def test_what_is_kept_is_what_is_counted_anew(service: dict[str, Any], steps: list[tuple[Step, bool]]) -> None:
    cache, known = Cache(clock=Clock()), dict[str, Pod]()
    for number, node in enumerate(NODES):
        cache.update_node(zoned(node, f"z{number % 2}"))
    cache.update_group(group_object("shop", *(kinds.workload(one, *WORKLOADS, minBandwidth="9") for one in WORKLOADS)))
    cache.update_service(_service("b", "b", service))
    for name, workload, node in zip("pqrst", "abcab", (*NODES, "n1"), strict=True):
        known[name] = member(name, workload, on=node, labels={"app": workload})
        cache.update_pod(known[name])
    assert cache.bandwidth().nodes
    for step, looked_at in steps:
        step(cache, known)
        if looked_at:
            kept, anew = cache.bandwidth(), BandwidthAllocations(cache.members, cache.routes)
            anew.mark(SHOP)
            anew.refresh(cache.groups)
            assert dict(kept.nodes) == dict(anew.nodes)
            assert dict(kept.pairs) == dict(anew.pairs)

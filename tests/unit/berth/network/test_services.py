"""Which Service callers use, and what its fields mean; nulls and absent fields as the API server writes them."""

from __future__ import annotations

import tracemalloc
from collections.abc import ItemsView, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.decoding import ObjectDecoder
from berth.kube.objects import Service
from berth.network.routing import Routing
from berth.network.services import ServiceIndex, headless, routing_of

MODE, HINTS = "service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"
CART = {"app": "cart"}


def service(name: str = "cart", annotations: dict[str, str] | None = None, **spec: Any) -> Service:
    """A Service as it comes from the API server."""
    document = {"metadata": {"name": name, "annotations": annotations}, "spec": {"selector": CART, **spec}}
    return ObjectDecoder(Service).decode(msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("made", "routing"),
    [
        pytest.param(service(), Routing.ALL, id="nothing-said"),
        pytest.param(service(trafficDistribution=None, internalTrafficPolicy=None), Routing.ALL, id="null"),
        pytest.param(service(trafficDistribution="PreferSameZone"), Routing.SAME_ZONE, id="zone"),
        pytest.param(service(trafficDistribution="PreferClose"), Routing.SAME_ZONE, id="zone-by-its-old-name"),
        pytest.param(service(trafficDistribution="PreferSameNode"), Routing.SAME_NODE, id="node"),
        pytest.param(service(trafficDistribution="PreferSameRack"), Routing.ALL, id="of-a-later-version"),
        pytest.param(service(internalTrafficPolicy="Cluster"), Routing.ALL, id="policy-cluster"),
        pytest.param(service(internalTrafficPolicy="Local"), Routing.LOCAL, id="local-alone"),
        pytest.param(
            service(internalTrafficPolicy="Local", trafficDistribution="PreferSameZone"),
            Routing.LOCAL,
            id="local",
        ),
        pytest.param(service(clusterIP="None", trafficDistribution="PreferSameZone"), Routing.ALL, id="headless"),
        pytest.param(service(clusterIP="None", internalTrafficPolicy="Local"), Routing.ALL, id="headless-local"),
        pytest.param(service(clusterIP="10.0.0.1", trafficDistribution="PreferSameNode"), Routing.SAME_NODE, id="addr"),
        pytest.param(service(clusterIP=None, trafficDistribution="PreferSameNode"), Routing.SAME_NODE, id="no-addr"),
        pytest.param(
            service(annotations={MODE: "Auto"}, trafficDistribution="PreferSameZone"), Routing.ALL, id="topology-mode"
        ),
        pytest.param(
            service(annotations={HINTS: "auto"}, trafficDistribution="PreferSameZone"), Routing.ALL, id="topology-hints"
        ),
        pytest.param(
            service(annotations={HINTS: "off", MODE: "Auto"}, trafficDistribution="PreferSameZone"),
            Routing.SAME_ZONE,
            id="the-older-annotation-counts",
        ),
        pytest.param(
            service(annotations={MODE: "Auto"}, internalTrafficPolicy="Local"), Routing.LOCAL, id="mode-local"
        ),
    ],
)
def test_what_a_service_says(made: Service, routing: Routing) -> None:
    assert routing_of(made) is routing


@pytest.mark.parametrize(
    ("made", "labels", "selected"),
    [
        pytest.param(service(), {"app": "cart", "hash": "1"}, True, id="more-labels"),
        pytest.param(service(), {"app": "ad"}, False, id="another-value"),
        pytest.param(service(), {}, False, id="no-labels"),
        pytest.param(service(selector={"app": "cart", "tier": "a"}), CART, False, id="both-are-needed"),
        pytest.param(service(selector=None), CART, False, id="no-selector"),
        pytest.param(service(selector={}), CART, False, id="empty-selector"),
        pytest.param(service(type="ExternalName", externalName="db.example"), CART, False, id="external-name"),
        pytest.param(service(type="NodePort"), CART, True, id="node-port"),
        pytest.param(service(clusterIP="None"), CART, True, id="headless"),
    ],
)
def test_which_pods_are_endpoints(made: Service, labels: dict[str, str], selected: bool) -> None:
    assert ServiceIndex([made]).used([("cart", [labels.items()])]) == [made if selected else None]


@pytest.mark.parametrize(
    ("services", "chosen"),
    [
        pytest.param([], None, id="none"),
        pytest.param([service("b"), service("a")], "a", id="first-by-name"),
        pytest.param([service("cart-metrics"), service("cart-api")], "cart-api", id="none-is-named-like-it"),
        pytest.param([service("all"), service("cart")], "cart", id="named-like-the-workload"),
        pytest.param([service("cart", clusterIP="None"), service("web")], "web", id="an-address-before-the-name"),
        pytest.param([service("cart", clusterIP="None"), service("a", clusterIP="None")], "cart", id="both-headless"),
    ],
)
def test_one_service_is_chosen_in_whatever_order_they_come(services: list[Service], chosen: str | None) -> None:
    for order in (services, services[::-1]):
        [found] = ServiceIndex(order).used([("cart", [CART.items()])])
        assert (found.metadata.name if found is not None else None) == chosen


def test_an_address_that_is_yet_to_be_given_is_not_headless() -> None:
    assert [headless(service(clusterIP=address)) for address in ("", None, "10.0.0.1", "None")] == [False] * 3 + [True]


def test_no_single_pod_has_all_the_labels() -> None:
    made = service(selector={"app": "cart", "track": "canary"})
    stable, canary = {"app": "cart", "track": "stable"}, {"app": "shop", "track": "canary"}
    index = ServiceIndex([made])
    assert index.used([("cart", [stable.items(), canary.items()])]) == [None]
    assert index.used([("cart", [stable.items(), {**canary, **made.spec.selector}.items()])]) == [made]
    assert index.used([("cart", [stable.items()]), ("shop", [canary.items()])]) == [None, None]


class CountedSelector(dict[str, str]):
    """A selector that counts how often it is read."""

    reads = 0

    def items(self) -> Any:
        CountedSelector.reads += 1
        return super().items()


@pytest.mark.parametrize(
    ("shared", "chosen", "reads"),
    [
        pytest.param(False, [f"s{number}" for number in range(10, 30)], 30, id="each-selects-one"),
        pytest.param(True, ["s10"] * 20, 1, id="all-select-all"),
    ],
)
def test_a_service_is_looked_at_once_for_all_workloads(shared: bool, chosen: list[str], reads: int) -> None:
    services = [service(f"s{number}") for number in range(10, 40)]
    for number, one in enumerate(services, start=10):
        one.spec.selector = CountedSelector({} if shared else {"pod": f"cart-{number}"}, app="cart")
    index = ServiceIndex(services)
    workloads = [(f"w{n}", [{"app": "cart", "pod": f"cart-{n}"}.items()]) for n in range(10, 30)]
    CountedSelector.reads = 0
    assert [one and one.metadata.name for one in index.used(workloads)] == chosen
    assert CountedSelector.reads <= reads


LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))
SERVICES = st.dictionaries(st.sampled_from(["w0", "w1", "m", "z"]), st.tuples(LABELS, st.booleans()))


def test_labels_that_no_service_selects_by_cost_no_memory() -> None:
    """Each pod of a tenant may have hundreds of its own."""
    pods = [frozenset({("app", "cart"), *((f"own-{pod}-{label}", "x") for label in range(200))}) for pod in range(500)]
    index = ServiceIndex([service()])
    tracemalloc.start()
    try:
        assert index.used([("cart", pods)]) == [service()]
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@given(services=SERVICES, workloads=st.lists(st.lists(LABELS, max_size=3), max_size=3))
def test_workloads_that_are_looked_up_together_get_what_each_gets_by_the_rule(
    services: dict[str, tuple[dict[str, str], bool]], workloads: list[list[dict[str, str]]]
) -> None:
    made = [service(name, selector=s, clusterIP="None" if bare else "") for name, (s, bare) in services.items()]
    named = [(f"w{number}", [labels.items() for labels in pods]) for number, pods in enumerate(workloads)]

    def by_rule(name: str, pods: Sequence[ItemsView[str, str]]) -> Service | None:
        endpoints = [s for s in made if s.spec.selector and any(s.spec.selector.items() <= labels for labels in pods)]
        return min(endpoints, key=lambda s: (headless(s), s.metadata.name != name, s.metadata.name), default=None)

    assert ServiceIndex(made).used(named) == [by_rule(name, pods) for name, pods in named]

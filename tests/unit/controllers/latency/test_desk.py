"""What meters and agents say reaches the windows of their policy, and what they are told to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from berth.api import latency_exchange as exchange
from berth.api.latencypolicy import Sharing
from berth.kube.objects import ObjectMeta
from controllers.latency.callers import Caller
from controllers.latency.clock import SlewedClock
from controllers.latency.crowd import REFRESH
from controllers.latency.desk import FrontDesk
from controllers.latency.objects import NetworkNode
from controllers.latency.observations import Observations
from controllers.latency.orders import Orders
from controllers.latency.places import Places
from controllers.latency.policies import Policies
from controllers.latency.workloads import Workloads
from tests.support.placement import Clock
from tests.unit.controllers.latency.test_workloads import policy, web_pod

METER = Caller("shop", "default", "web-1", "u1", "a")
TOLD = exchange.RoundTrips("i", 1, (exchange.UserRoundTrips("u", (20_000,), address="203.0.113.7"),))


class Desk:
    """A desk with a policy on one pod."""

    def __init__(self, **spec: Any) -> None:
        self.policies, self.workloads, self.places = Policies(), Workloads(), Places([])
        self.observations, self.orders, self.told = Observations(), Orders(Clock()), list[str]()
        self.policies.update(policy(**spec))
        self.workloads.pod_changed(None, web_pod("u1"))
        for name in ("a", "b"):
            labels = {"topology.kubernetes.io/zone": "z"}
            self.places.node_changed(None, NetworkNode(metadata=ObjectMeta(name=name, labels=labels)))
        self.desk = FrontDesk(
            policies=self.policies,
            workloads=self.workloads,
            places=self.places,
            observations=self.observations,
            orders=self.orders,
            key_of=lambda uid: f"key of {uid}",
            agents=("berth-system", "berth-node"),
            clock=SlewedClock(),
            told=self.told.append,
        )

    def known(self, sharing: Sharing = Sharing.NODE) -> list[tuple[str, int]]:
        now = datetime.now(UTC)
        places = self.places.nodes_by_place(sharing)
        return [(each.node, each.p50) for each in self.observations.measurements("shop/web", places, now)]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param({}, True, id="for agents"),
        pytest.param({"exploration": ["Migrate"]}, False, id="no agent measures"),
        pytest.param({"decisions": "Published"}, False, id="the published rules ask none"),
    ],
)
def test_addresses_are_told_where_agents_may_measure_them(spec: dict[str, Any], told: bool) -> None:
    assert Desk(**spec).desk.round_trips(METER, TOLD, new=True).tell_addresses == told


def test_a_meter_is_told_its_policy_and_believed() -> None:
    made = Desk(users={"identity": {"source": "Cookie", "name": "id"}})
    found = made.desk.round_trips(METER, TOLD, new=True)
    assert found == exchange.Instructions(
        policy="web",
        key="key of web",
        identity=exchange.Identity(exchange.IdentitySource.COOKIE, "id"),
        tell_addresses=True,
    )
    assert (made.known(), made.told) == ([("a", 20_000)], ["shop/web"])
    assert made.observations.to_probe("shop/web", bool, datetime.now(UTC)) == ["203.0.113.7"]


def test_what_was_told_before_is_answered_and_counts_once() -> None:
    made = Desk()
    assert made.desk.round_trips(METER, TOLD, new=False).policy == "web"
    assert (made.known(), made.told) == ([], [])


def test_no_address_is_asked_for_where_none_may_be_probed() -> None:
    assert not Desk(exploration=["Migrate"]).desk.round_trips(METER, TOLD, new=True).tell_addresses


@pytest.mark.parametrize(
    "caller",
    [
        pytest.param(METER._replace(uid="u2"), id="a pod of the same name"),
        pytest.param(METER._replace(pod="db-1"), id="another pod"),
        pytest.param(METER._replace(namespace="other"), id="another namespace"),
    ],
)
def test_nobody_else_is_wanted(caller: Caller) -> None:
    made = Desk()
    assert made.desk.round_trips(caller, TOLD, new=True) == exchange.Instructions()
    assert made.told == []


def test_of_two_policies_none_is_meant() -> None:
    made = Desk()
    made.policies.update(policy("two"))
    assert made.desk.round_trips(METER, TOLD, new=True) == exchange.Instructions()


async def test_an_agent_answers_for_its_node_or_zone() -> None:
    made = Desk(sharing="Zone")
    made.desk.round_trips(METER, TOLD, new=True)
    made.orders.ask("shop/web", ["b"], ["203.0.113.7"])
    [order] = (await made.desk.orders("b", wait=True)).orders
    made.desk.answers("a", exchange.ProbeAnswers((exchange.ProbeAnswer(order.id, (1,)),)))
    made.desk.answers("b", exchange.ProbeAnswers((exchange.ProbeAnswer(order.id, (9_000,)),)))
    assert made.known(Sharing.ZONE) == [("a", 20_000), ("b", 20_000), ("a", 9_000), ("b", 9_000)]


@pytest.mark.parametrize(
    ("caller", "is_agent"),
    [
        pytest.param(Caller("berth-system", "berth-node", "n-1", "u", "a"), True, id="an agent"),
        pytest.param(Caller("berth-system", "berth-pinning", "n-1", "u", "a"), False, id="another account"),
        pytest.param(Caller("shop", "berth-node", "n-1", "u", "a"), False, id="an account of that name elsewhere"),
    ],
)
def test_agents(caller: Caller, is_agent: bool) -> None:
    assert Desk().desk.is_agent(caller) is is_agent


ROUTER = Caller("shop", "berth-router", "router-1", "r1", "a")


@pytest.mark.parametrize(
    ("identity", "steers", "target", "steer"),
    [
        pytest.param({}, True, "b", {"u": "b"}, id="to another node"),
        pytest.param({}, True, "a", {}, id="to its own"),
        pytest.param({}, False, "b", {}, id="by none that cannot"),
        pytest.param({"source": "Cookie", "name": "id"}, True, "b", {}, id="nobody whose identity does not travel"),
    ],
)
def test_a_router_is_told_whom_to_steer_and_asked_more_often_then(
    identity: dict[str, str], steers: bool, target: str, steer: dict[str, str]
) -> None:
    made = Desk(users={"identity": identity} if identity else {})
    made.observations.routers("shop/web").ask(target, datetime.now(UTC))
    message = exchange.RoundTrips("i", 1, TOLD.users, "web", steers)
    found = made.desk.round_trips(ROUTER, message, new=True)
    assert (found.steer, found.interval) == (steer, 1.0 if steer else 5.0)
    assert made.desk.round_trips(METER, TOLD, new=True).steer == {}
    # After one that cannot, those of other nodes are not awaited.
    awaited = made.observations.routers("shop/web").awaited({"z"}, datetime.now(UTC), known=True)
    assert (awaited is not None) is (steers and not identity)


BY_HEADER = exchange.Identity(exchange.IdentitySource.HEADER, "X-User")


@pytest.mark.parametrize(
    ("naming", "heard"),
    [
        pytest.param(exchange.naming_of("key of web", BY_HEADER), True, id="as the policy says"),
        pytest.param(exchange.naming_of("key of former", BY_HEADER), False, id="by the key of before"),
        pytest.param(exchange.naming_of("key of web", exchange.Identity()), False, id="by what told users before"),
        pytest.param("", True, id="not told, as of an older version"),
    ],
)
@pytest.mark.parametrize("caller", [METER, ROUTER], ids=["a meter", "a router"])
def test_users_named_as_before_a_change_are_no_further_ones(caller: Caller, naming: str, heard: bool) -> None:
    made = Desk(users={"mode": "PerUser", "identity": {"source": "Header", "name": "X-User"}})
    message = exchange.RoundTrips("i", 1, TOLD.users, "web" if caller is ROUTER else "", naming=naming)
    found = made.desk.round_trips(caller, message, new=True)
    assert (found.policy, found.identity) == ("web", BY_HEADER)
    assert len(made.observations.crowd("shop/web", datetime.now(UTC)).table) == heard


async def test_who_had_no_turn_at_an_agent_is_asked_about_again() -> None:
    made = Desk(users={"mode": "PerUser"})
    made.desk.round_trips(METER, TOLD, new=True)
    now = datetime.now(UTC)
    asked = made.observations.to_probe("shop/web", bool, now)
    made.orders.ask("shop/web", ["a"], asked)
    [order] = (await made.desk.orders("a", wait=False)).orders
    made.desk.answers("a", exchange.ProbeAnswers((exchange.ProbeAnswer(order.id, refused="late", no_turn=True),)))
    due = made.observations.crowd("shop/web", now).due_at(now)
    assert due is not None
    assert due - now < REFRESH + timedelta(seconds=30)

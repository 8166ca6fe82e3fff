"""What meters, routers and node agents say, put where it belongs; and what they are told to do. No I/O but waiting."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from berth.api import latency_exchange as exchange
from berth.api.latencypolicy import (
    Decisions,
    Exploration,
    LatencyPolicy,
    LatencyPolicySpec,
    MeasurementSource,
    UserMode,
)
from berth.kube.objects import Pod
from berth.kube.owners import owner_of
from controllers.latency.callers import Caller
from controllers.latency.observations import Observations
from controllers.latency.orders import Orders
from controllers.latency.places import Places
from controllers.latency.policies import Policies
from controllers.latency.routers import INTERVAL
from controllers.latency.workloads import Workloads


class FrontDesk:
    """What the endpoint talks to."""

    def __init__(
        self,
        *,
        policies: Policies,
        workloads: Workloads,
        places: Places,
        observations: Observations,
        orders: Orders,
        key_of: Callable[[str], str],
        agents: tuple[str, str],
        told: Callable[[str], None],
        clock: Callable[[], datetime],
    ) -> None:
        """Prepare.

        Args:
            policies: the policies.
            workloads: their pods.
            places: the nodes.
            observations: gets what is told.
            orders: what agents are to measure.
            key_of: returns the key of the hashes of a policy's users, by its uid.
            agents: namespace and name of the service account of node agents.
            told: called with the key of a policy of which something was told.
            clock: tells the time.
        """
        self._policies = policies
        self._workloads = workloads
        self._places = places
        self._observations = observations
        self._orders = orders
        self._key_of = key_of
        self._agents = agents
        self._told = told
        self._clock = clock

    def round_trips(self, caller: Caller, message: exchange.RoundTrips, *, new: bool) -> exchange.Instructions:
        """Take in a report, unless it was told before; of a pod of no policy, nothing is wanted.

        A meter's policy is that of its pod's workload; a router names one of its own namespace.
        """
        pod = self._workloads.pod(caller.namespace, caller.pod, caller.uid)
        policy = self._named(caller, message.policy) if message.policy else self._policy_of(pod)
        if policy is None:
            return exchange.Instructions()
        node = caller.node if message.policy or pod is None else pod.spec.node_name
        if not self._knows_names(policy, message):
            message = msgspec.structs.replace(message, users=())  # each would be one user more
        if new and message.users and node:
            source = MeasurementSource.ROUTER if message.policy else MeasurementSource.METER
            place = self._places.place_of(node, policy.spec.sharing)
            each = policy.spec.users.mode is UserMode.PER_USER
            self._observations.served(policy.key, place, message.users, self._clock(), source=source, each=each)
            self._told(policy.key)
        steer: dict[str, str] = {}
        if message.policy and message.steers and node and policy.spec.users.identity.source in exchange.TRAVELS:
            routers = self._observations.routers(policy.key)
            routers.heard(node, (user.user for user in message.users), self._clock())
            steer = routers.steered(node)
        elif message.policy:
            self._observations.routers(policy.key).heard_without()
        return self._instructions(policy, steer)

    def is_agent(self, caller: Caller) -> bool:
        """Return whether it is a node agent that speaks."""
        return (caller.namespace, caller.account) == self._agents

    def answers(self, node: str, message: exchange.ProbeAnswers) -> None:
        """Take in what a node's agent has measured; what it was not asked is left out."""
        for answer in message.answers:
            sent = self._orders.answer(node, answer)
            policy = self._policies.get(sent.policy) if sent is not None else None
            if sent is None or policy is None:
                continue
            place = self._places.place_of(node, policy.spec.sharing)
            self._observations.probed(policy.key, place, sent.address, answer.microseconds, self._clock())
            if answer.no_turn:
                self._observations.had_no_turn(policy.key, sent.address, self._clock())
            self._told(policy.key)

    async def orders(self, node: str, *, wait: bool) -> exchange.ProbeOrders:
        """Return what a node's agent is to measure, if it is to wait once there is anything, or after a while."""
        return exchange.ProbeOrders(await self._orders.wait(node, exchange.PROBES_WAIT if wait else 0.0))

    def _knows_names(self, policy: LatencyPolicy, message: exchange.RoundTrips) -> bool:
        """Whether users are named as the policy says; who has not heard yet of a change names them as before."""
        key = self._key_of(policy.metadata.uid)
        return message.naming in ("", exchange.naming_of(key, _identity_of(policy)))

    def _policy_of(self, pod: Pod | None) -> LatencyPolicy | None:
        """The policy of a pod's workload, where there is exactly one."""
        keys = self._policies.of(owner_of(pod)) if pod is not None else frozenset()
        return self._policies.get(next(iter(keys))) if len(keys) == 1 else None

    def _named(self, caller: Caller, name: str) -> LatencyPolicy | None:
        """The policy that a router names: of its own namespace, whose pods may hear what its meters may."""
        return self._policies.get(f"{caller.namespace}/{name}")

    def _instructions(self, policy: LatencyPolicy, steer: dict[str, str]) -> exchange.Instructions:
        usual = exchange.Instructions().interval
        return exchange.Instructions(
            policy=policy.metadata.name,
            key=self._key_of(policy.metadata.uid),
            identity=_identity_of(policy),
            tell_addresses=_is_probed(policy.spec),
            interval=INTERVAL if steer else usual,
            steer=steer,
        )


def _is_probed(spec: LatencyPolicySpec) -> bool:
    """Whether agents may have to measure users: the published rules know nothing of that."""
    return Exploration.REVERSE_PROBE in spec.exploration and spec.decisions is Decisions.MEASURED


def _identity_of(policy: LatencyPolicy) -> exchange.Identity:
    identity = policy.spec.users.identity
    return exchange.Identity(identity.source, identity.name or "")

"""Looks at one policy's pods, nodes and users, and asks the scheduling library what to do next. No I/O.

Where each user counts, that takes up to seconds: it is decided in a thread, by copies of what was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, islice
from time import thread_time
from typing import Final, NamedTuple

from berth.api.latencypolicy import (
    MAX_NODES,
    Decisions,
    Exploration,
    LatencyPolicy,
    LatencyPolicySpec,
    LatencyPolicyStatus,
    MeasurementSource,
    Objective,
    Outcome,
    UserMode,
)
from berth.kube.objects import Pod as StoredPod
from berth.scheduling.latency import knowledge, measuring, moves, per_user
from berth.scheduling.latency.decision import Decision, decide
from berth.scheduling.latency.published import rounds
from berth.scheduling.latency.set_back import as_of
from berth.scheduling.latency.situation import Action, Evict, Pod, Probe, View, Wish
from controllers.latency.candidates import Candidates
from controllers.latency.conditions import EachUser
from controllers.latency.decision_thread import DecisionThread, in_turns
from controllers.latency.objects import Deployment, is_ready
from controllers.latency.observations import Observations
from controllers.latency.orders import Orders
from controllers.latency.places import Places
from controllers.latency.policies import target_of
from controllers.latency.surge import is_of_another
from controllers.latency.workloads import Workloads

MOST_SETTLING: Final = 86_400
"""Seconds for which a new pod has to be ready at the most."""


class Chosen(NamedTuple):
    """What was looked at, and what was decided."""

    spec: LatencyPolicySpec
    """what is wanted, as far as it is carried out"""
    status: LatencyPolicyStatus
    """what is to be remembered"""
    view: View
    """what is there"""
    users: bool
    """whether users were served lately"""
    actions: tuple[Action, ...]
    """what is to be done"""
    wish: Wish | None
    """move that should be made, begun or not"""
    times: tuple[datetime | None, ...]
    """when time alone may change something; of the time to come, or None"""
    each: EachUser | None = None
    """what is known where each user counts"""
    replicas: int | None = None
    """how many pods there should be; None: as many as there are"""
    leaving: str | None = None
    """pod that goes before there is one less"""
    seconds: float = 0.0
    """of a processor that it took"""


class Deciding:
    """For all policies."""

    def __init__(
        self,
        *,
        workloads: Workloads,
        candidates: Candidates,
        places: Places,
        observations: Observations,
        orders: Orders,
        evicted: Callable[[str], Collection[str]],
        refusal: Callable[[Deployment], str],
    ) -> None:
        """Prepare.

        Args:
            workloads: Deployments and pods.
            candidates: which nodes have room.
            places: which nodes there are, and which of them may be probed about whom.
            observations: what meters and agents have told.
            orders: what agents are to measure.
            evicted: which pods of a policy go, by uid, though the watch may not show it yet.
            refusal: why the number of replicas of a Deployment may not be set; empty: it may.
        """
        self._workloads = workloads
        self._candidates = candidates
        self._places = places
        self._observations = observations
        self._orders = orders
        self._evicted = evicted
        self._refusal = refusal
        self._thread = DecisionThread()

    async def choose(self, key: str, policy: LatencyPolicy, replicas: int, now: datetime) -> Chosen:
        """Return what to do next for a policy that can be carried out, whose Deployment has so many replicas.

        The event loop may go on meanwhile. Pods that stopped serving by then keep the others from being evicted.
        """
        policy = searching(policy)
        if policy.spec.users.mode is UserMode.PER_USER:
            return await self._for_each(key, policy, replicas, now)
        begun = thread_time()
        self._observations.leave_crowd(key)
        chosen = self._for_all(key, policy, replicas, now)
        return chosen._replace(seconds=thread_time() - begun)

    def _for_all(self, key: str, policy: LatencyPolicy, replicas: int, now: datetime) -> Chosen:
        spec = policy.spec
        heard, expiry = self._observations.heard(key, now), timedelta(seconds=spec.users.expiry_seconds)
        status = without_users(as_of(policy.status, now))
        served = _last_served(status, heard)
        # Whether there are users is in the status; whom to probe is not, and is told within seconds.
        view = self._view(
            policy, replicas, active=heard is not None and now - heard <= expiry, users=now - served <= expiry
        )
        places = self._places.nodes_by_place(spec.sharing)
        said = self._observations.measurements(key, places, now)
        if spec.decisions is Decisions.PUBLISHED:
            said = [each for each in said if each.source is MeasurementSource.METER]
            decision = rounds.decide(knowledge.observe(status, spec, said), spec, view, now)
            return _chosen(spec, decision, view, served, heard, now)
        here = {self._places.place_of(pod.node, spec.sharing) for pod in view.pods}
        serving = frozenset(node for place in here for node in places.get(place, ()))
        status = knowledge.observe(status, spec, said, serving)
        if self._orders.silent(key):
            status = measuring.unreachable(status, now)
        elif self._orders.agents_came(key):
            status = measuring.reachable(status)
        awaited = self._awaited(key, spec, status, view, now)
        turn, pause = self._turn_awaited(key, spec, status, view, now), self._orders.pause(key)
        awaited = max((each for each in (awaited, turn) if each is not None), default=None)
        asks_at = now + timedelta(seconds=pause) if pause else None
        carried_out = self._carried_out(key, spec, view, now)
        decision = decide(status, carried_out, view, now, awaited=awaited, asks_at=asks_at)
        return _chosen(spec, decision, view, served, heard, now)

    async def _for_each(self, key: str, policy: LatencyPolicy, replicas: int, now: datetime) -> Chosen:
        crowd, expiry = self._observations.crowd(key, now), timedelta(seconds=policy.spec.users.expiry_seconds)
        if self._orders.agents_came(key):
            crowd.ask_anew()
        settling = await in_turns(crowd.settling(self._places.nodes_by_place(policy.spec.sharing), now, expiry))
        begun, active = thread_time(), len(crowd.table) > 0
        held, spec, status = self._workloads.autoscaled(target_of(policy)), policy.spec, as_of(policy.status, now)
        if held is not None:
            status = given_up(status)
        if held is not None or spec.moves.dry_run:
            spec = spec.model_copy(
                update={
                    "users": spec.users.model_copy(update={"max_replicas": None}),
                    "moves": spec.moves.model_copy(update={"dry_run": True}),
                }
            )
        view = self._view(policy, replicas, active=active, users=active or _is_routed(status, expiry, now))
        view = _bounded(view, status)
        table, looking = crowd.table.copy(), settling + thread_time() - begun
        decision, seconds = await self._thread.run(partial(per_user.decide, status, spec, view, table, now))
        crowd.table.waiting = table.waiting
        probe = self._probe(key, spec, view, now)
        nodes = tuple(dict.fromkeys((*view.candidates, *(pod.node for pod in view.pods if pod.node))))
        asked = (Probe(nodes),) if probe is not None and probe <= now else ()
        return Chosen(
            spec,
            decision.status,
            view,
            active or _is_routed(decision.status, expiry, now),
            # Whoever else scales it takes the pods that are too many.
            (*(() if held is not None else self._still(decision.actions, policy, view)), *asked),
            decision.wish,
            (decision.look_again, probe),
            EachUser(len(table), decision.served, held),
            None if held is not None else decision.replicas,
            decision.leaving,
            looking + seconds,
        )

    def _still(self, actions: Collection[Action], policy: LatencyPolicy, view: View) -> Iterator[Action]:
        """Actions that may be carried out still: nothing is evicted where another pod of the view serves no more."""
        serving = {pod.name for pod in self._pods(policy) if pod.ready}
        lost = {pod.name for pod in view.pods if pod.ready} - serving
        return (action for action in actions if not isinstance(action, Evict) or not lost - {action.pod})

    def _probe(self, key: str, spec: LatencyPolicySpec, view: View, now: datetime) -> datetime | None:
        """When agents are to measure somebody; None: nobody, or they are at it."""
        if Exploration.REVERSE_PROBE not in spec.exploration or not view.candidates or self._orders.awaited(key):
            return None
        due = self._observations.crowd(key, now).due_at(now)
        # What others of the namespace take meanwhile is seen then.
        return due if due is None else max(due, now + timedelta(seconds=self._orders.pause(key)))

    def _carried_out(self, key: str, spec: LatencyPolicySpec, view: View, now: datetime) -> LatencyPolicySpec:
        """The spec without what nobody can do: all nodes have to have routers that users are sent to."""
        if self._observations.routers(key).steer_to(view.candidates, now):
            return spec
        ways = tuple(each for each in spec.exploration if each is not Exploration.STEER)
        return spec.model_copy(update={"exploration": ways})

    def _turn_awaited(
        self, key: str, spec: LatencyPolicySpec, status: LatencyPolicyStatus, view: View, now: datetime
    ) -> datetime | None:
        """Until when agents are awaited that have had no turn to measure users; None: nothing is to come of it."""
        due = measuring.is_due(status, spec, view, now)
        seconds = self._orders.turn_awaited(key, due=due, users=view.active)
        worth = seconds and measuring.answers(status, spec, now) and measuring.knows_too_few(status, view)
        return now + timedelta(seconds=seconds) if worth else None

    def _awaited(
        self, key: str, spec: LatencyPolicySpec, status: LatencyPolicyStatus, view: View, now: datetime
    ) -> datetime | None:
        """Until when routers are awaited that users may be steered by.

        A pod would go to the nearest of the few nodes that are known by then, and go on when the others are.
        """
        if spec.objective is not Objective.MINIMUM or Exploration.STEER not in spec.exploration:
            return None
        known = any(node.source is MeasurementSource.ROUTER for node in status.nodes)
        return self._observations.routers(key).awaited(view.candidates, now, known=known)

    def _view(self, policy: LatencyPolicy, replicas: int, *, active: bool, users: bool) -> View:
        staying, surge = self._staying(policy), policy.status.surge
        deployment = self._workloads.deployment(target_of(policy))
        return View(
            pods=self._pods(policy),
            replicas=surge.replicas if surge is not None else replicas,
            nodes=self._places.nodes(),
            # Of users who are not there nobody knows whether they would be nearer elsewhere.
            candidates=self._candidates.like(staying[0]) if staying and users else (),
            active=active,
            settles=timedelta(seconds=_settles(deployment)),
            asked=replicas,
            refused=(self._refusal(deployment) or deployment.refused) if deployment is not None else "",
        )

    def _pods(self, policy: LatencyPolicy) -> tuple[Pod, ...]:
        """Pods of the workload; one whose node is gone serves nobody, though nobody is left there to say so."""
        return tuple(
            Pod(pod.metadata.name, node, ready=is_ready(pod) and self._places.exists(node))
            for pod in self._staying(policy)
            for node in [pod.spec.node_name]
        )

    def _staying(self, policy: LatencyPolicy) -> list[StoredPod]:
        """Pods of the workload that are not about to go."""
        there, evicted = self._workloads.pods(target_of(policy)).items(), self._evicted(policy.key)
        found = [pod for uid, pod in there if pod.metadata.deletion_timestamp is None and uid not in evicted]
        return sorted(found, key=lambda pod: pod.metadata.name)


def _chosen(
    spec: LatencyPolicySpec, decision: Decision, view: View, served: datetime, heard: datetime | None, now: datetime
) -> Chosen:
    """What was decided where all users count as one; `served` is when one last was, as known before."""
    expiry = timedelta(seconds=spec.users.expiry_seconds)
    users = now - _last_served(decision.status, heard) <= expiry
    ends = served + expiry if served + expiry > now else None
    return Chosen(spec, decision.status, view, users, decision.actions, decision.wish, (decision.look_again, ends))


def searching(policy: LatencyPolicy) -> LatencyPolicy:
    """The policy without what rounds of the published rules remember, where others decide or the spec has changed."""
    status, spec = policy.status, policy.spec
    goes_on = spec.decisions is Decisions.PUBLISHED and spec.users.mode is UserMode.SINGLE
    if status.search is None or (goes_on and status.observed_generation == policy.metadata.generation):
        return policy
    return policy.model_copy(update={"status": status.model_copy(update={"search": None})})


def _settles(deployment: Deployment | None) -> int:
    """Seconds; `progressDeadlineSeconds` bounds them for a rollout, and nothing a move."""
    return min(deployment.spec.min_ready_seconds, MOST_SETTLING) if deployment is not None else 0


def given_up(status: LatencyPolicyStatus) -> LatencyPolicyStatus:
    """Return the status without moves that go on."""
    for move in moves.open_moves(status):
        status = moves.replace(status, move, outcome=Outcome.CANCELLED)
    return status


def is_about_another(policy: LatencyPolicy) -> bool:
    """Return whether the status of a policy is about another Deployment than its spec is."""
    return policy.status.target not in (None, policy.spec.target_ref.name)


def begun_anew(policy: LatencyPolicy, deployment: Deployment | None) -> LatencyPolicy:
    """Return the policy without what goes on, if that is of a Deployment whose name another has by now.

    Where it is about one of another name, nothing is left but what was moved: it has other users.
    """
    status = policy.status
    if is_about_another(policy):
        status = LatencyPolicyStatus(conditions=status.conditions, moves=given_up(status).moves)
    elif deployment is not None and is_of_another(status.surge, deployment.metadata.uid):
        status = given_up(status).model_copy(update={"surge": None})
    status = status.model_copy(update={"target": policy.spec.target_ref.name})
    return policy.model_copy(update={"status": status})


def without_users(status: LatencyPolicyStatus) -> LatencyPolicyStatus:
    """Return the status with nobody routed to a pod: users count as one, or nothing is carried out."""
    return status.model_copy(update={"associations": (), "plan": (), "fewer_time": None})


def _bounded(view: View, status: LatencyPolicyStatus) -> View:
    """The view of the nodes that matter where each user counts: those with pods, or soon, first, then who has room."""
    there = set(view.nodes)
    names = chain(
        (pod.node for pod in view.pods),
        (move.target_node for move in moves.open_moves(status)),
        status.plan,
        (known.node for known in status.nodes),
        view.candidates,
    )
    kept = dict.fromkeys(islice((node for node in dict.fromkeys(names) if node in there), MAX_NODES))
    return view._replace(nodes=tuple(kept), candidates=tuple(node for node in view.candidates if node in kept))


def _is_routed(status: LatencyPolicyStatus, expiry: timedelta, now: datetime) -> bool:
    return any(now - each.last_seen_time <= expiry for each in status.associations)


def _last_served(status: LatencyPolicyStatus, heard: datetime | None) -> datetime:
    """When a user was last served, by what this process was told and what the one before has written."""
    times = [known.time for known in status.nodes if known.source is MeasurementSource.METER and known.time is not None]
    return max([*times, *([heard] if heard is not None else [])], default=datetime.min.replace(tzinfo=UTC))

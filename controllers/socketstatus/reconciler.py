"""Brings one SocketStatus up to date: read it, decide, write what differs.

Every pass starts from the object as the API server has it and depends on nothing that earlier passes left in memory:
when a pod was moved last is in its assignment. The list of assignments is written as a whole, and only if nobody else
has written since it was read; otherwise it is read again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog

from berth.api.base import format_timestamp
from berth.api.conditions import ConditionUpdate, apply, find_condition
from berth.api.errors import InvalidObjectError
from berth.api.socketstatus import CONDITION_PAIRED, KIND, REPAIRING_MANAGER, Assignment, SocketStatus
from berth.kube.client import ApiClient
from berth.kube.decoding import ObjectDecoder
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder, Reference
from berth.kube.resources import PODS, SOCKET_STATUSES
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.cache.workload_profiles import WorkloadProfiles
from berth.scheduling.interference.exchange import Exchange, Terms, best_exchange
from controllers.socketstatus import events, metrics
from controllers.socketstatus.conditions import paired
from controllers.socketstatus.ownership import movable
from controllers.socketstatus.pods import NodePods
from controllers.socketstatus.reading import read
from controllers.socketstatus.seats import Newcomer, Seats, newcomers, read_seats

log = structlog.get_logger(__name__)

CONFLICT_DELAY: Final = 0.2
"""Seconds until an object is read again that somebody has changed: agents write every two seconds at the most."""
SETTLES: Final = timedelta(seconds=10)
"""How long a node is left as it is after a pod was assigned a socket: what was decided is to be in effect first."""
_AT_ONCE: Final = timedelta(0)
_DNS_NAME: Final = re.compile("[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
"""What objects are called: a pod with another name cannot be, and the API server refuses to look for some of them."""


@dataclass(slots=True)
class _Pass:
    """One pass: its object as it was read, or written last."""

    raw: dict[str, Any]
    status: SocketStatus

    @property
    def node(self) -> str:
        """Name of the node."""
        return self.status.metadata.name

    @property
    def generation(self) -> int:
        """Generation of the object as the API server has it."""
        return int(self.raw["metadata"].get("generation", 0))

    def take(self, raw: dict[str, Any]) -> None:
        """Go on with the object as it was written."""
        self.raw, self.status = raw, read(raw)


class Reconciler:
    """Does the passes."""

    def __init__(
        self,
        *,
        client: ApiClient,
        recorder: EventRecorder,
        profiles: WorkloadProfiles,
        pods: NodePods,
        queue: WorkQueue[str],
        versions: SeenVersions[str],
        terms: Terms,
        class_label: str,
        assign_all: bool,
        profiles_known: Callable[[], bool],
    ) -> None:
        """Prepare.

        Args:
            client: open API client.
            recorder: running event recorder.
            profiles: what is known of workloads.
            pods: pods of nodes.
            queue: for further passes after some time.
            versions: which versions events have shown.
            terms: what exchanges have to keep to.
            class_label: label with the class of a pod.
            assign_all: whether pods get a socket that placement has not given one.
            profiles_known: whether all WorkloadProfiles were seen: a class that is not known yet is not gone.
        """
        self._client = client
        self._recorder = recorder
        self._profiles = profiles
        self._pods = pods
        self._queue = queue
        self._versions = versions
        self._terms = terms
        self._class_label = class_label
        self._assign_all = assign_all
        self._profiles_known = profiles_known

    async def reconcile(self, node: str) -> bool:
        """Bring a node's SocketStatus up to date and return whether it exists.

        Raises:
            ApiError, aiohttp.ClientError, OSError: try again later; what could be done is done.
        """
        with metrics.RECONCILE_SECONDS.time():
            try:
                raw = await self._client.get(SOCKET_STATUSES.raw, node, not_older_than=self._versions.of(node))
                if not raw["metadata"].get("deletionTimestamp"):
                    await self._reconcile(node, raw)
                    return True
            except ApiError as error:
                self._versions.forget(node)
                if error.conflict:
                    self._queue.add(node, delay=CONFLICT_DELAY)
                    return True
                if not error.says_gone(SOCKET_STATUSES.plural, node):
                    raise
        metrics.forget(node)
        return False

    async def _reconcile(self, node: str, raw: dict[str, Any]) -> None:
        try:
            this = _Pass(raw, read(raw))
        except InvalidObjectError as error:
            log.warning("socket status ignored", node=node, problem=str(error))
            return
        now = datetime.now(UTC).replace(microsecond=0)
        seats = self._seats(this)
        gone, unclear = await self._missing(seats.absent, node)
        come = [] if seats.why_not or not self._assign_all else self._newcomers(this, seats)
        # One after the other: both would take the same room.
        exchange, late = (None, None) if come else await self._exchange(seats, now)
        classless = seats.classless if self._profiles_known() else ()
        if gone or classless or exchange or come:
            await self._write_assignments(this, seats, gone, classless, exchange, come, now)
            seats = self._seats(this)
            _, late = await self._exchange(seats, now)
        if late is not None:
            self._queue.add(node, delay=max(1.0, (late - now).total_seconds()))
        metrics.measure(node, len(seats.pairs()))
        problems = tuple(
            f"{KIND} {node}: spec.assignments: whether {each.namespace}/{each.name} ({each.uid}) is there "
            f"is not known: {error}; it stays until somebody takes it out"
            for each, error in unclear
        )
        seats = replace(seats, problems=seats.problems + problems)
        await self._write_condition(this, paired(seats, late), now)
        if unclear:
            # No event tells that it would be answered now: the queue asks again, after a longer time each time.
            raise unclear[0][1]

    def _seats(self, this: _Pass) -> Seats:
        mine = movable(this.raw["metadata"].get("managedFields", ()))
        return read_seats(this.status, mine, self._pods, self._class_label)

    def _newcomers(self, this: _Pass, seats: Seats) -> list[Newcomer]:
        return newcomers(this.status, seats, self._pods.of(this.node).values(), self._class_label)

    async def _missing(
        self, absent: Iterable[Assignment], node: str
    ) -> tuple[list[Assignment], list[tuple[Assignment, ApiError]]]:
        """Assignments whose pods will not be on the node, and those about which no answer is given: they stay."""
        gone, unclear = list[Assignment](), list[tuple[Assignment, ApiError]]()
        for each in absent:
            try:
                if await self._is_gone(each, node):
                    gone.append(each)
            except ApiError as error:
                if error.retryable or error.unauthorized or not error.stated:
                    raise
                unclear.append((each, error))
        return gone, unclear

    async def _is_gone(self, assignment: Assignment, node: str) -> bool:
        """Whether the pod of an assignment will not be on the node; the watch may be late: the API server is asked."""
        if not (_DNS_NAME.fullmatch(assignment.namespace) and _DNS_NAME.fullmatch(assignment.name)):
            return True
        try:
            pod = await self._client.get(PODS, assignment.name, namespace=assignment.namespace)
        except ApiError as error:
            if error.says_gone(PODS.plural, assignment.name):
                return True
            raise
        # One that is on no node yet may be assigned before it comes.
        return pod.metadata.uid != assignment.uid or pod.finished or pod.spec.node_name not in ("", node)

    async def _exchange(self, seats: Seats, now: datetime) -> tuple[Exchange | None, datetime | None]:
        """The exchange that is due, or when one will be that has to wait; in a thread, for nodes of many pods."""
        if seats.why_not or not seats.pods:
            return None, None
        # Watches change the model while the thread reads it.
        model = self._profiles.model.among({pod.workload.name for pod in seats.pods})
        terms = self._terms

        async def best(terms: Terms) -> Exchange | None:
            return await asyncio.to_thread(
                best_exchange, seats.pods, seats.capacities, model, terms, now, caches=seats.caches, cores=seats.cores
            )

        found = await best(terms)
        if found is not None:
            settled = max((pod.since + SETTLES for pod in seats.pods if pod.since and pod.since <= now), default=now)
            return (None, settled) if now < settled else (found, None)
        cooling = [free for pod in seats.pods if terms.cooling(pod, now) and (free := terms.free_at(pod)) is not None]
        if not cooling or await best(terms._replace(cool_down=_AT_ONCE)) is None:
            return None, None
        return None, min(cooling)

    async def _write_assignments(
        self,
        this: _Pass,
        seats: Seats,
        gone: Sequence[Assignment],
        classless: Sequence[Assignment],
        exchange: Exchange | None,
        come: Iterable[Newcomer],
        now: datetime,
    ) -> None:
        """Write the list as it was read, but for what is decided; then tell of it."""
        moves = {move.pod: move.place for move in exchange.moves} if exchange else {}
        sockets = {seats.assignments[at].uid: seats.numbers[place] for at, place in moves.items()}
        time, absent = format_timestamp(now), {each.uid for each in (*gone, *classless)}
        added = [
            {
                "uid": pod.metadata.uid,
                "namespace": pod.metadata.namespace,
                "name": pod.metadata.name,
                "interferenceClass": letter.value,
                "socket": socket,
                "time": time,
            }
            for pod, letter, socket in come
        ]
        replaced = absent | {each["uid"] for each in added}
        entries: list[dict[str, Any]] = [
            {**entry, "socket": sockets[entry["uid"]], "time": time} if entry["uid"] in sockets else entry
            for entry in this.raw.get("spec", {}).get("assignments", ())
            if entry["uid"] not in replaced
        ]
        version = {"resourceVersion": this.raw["metadata"]["resourceVersion"]}
        body = {"metadata": version, "spec": {"assignments": entries + added}}
        write = self._client.merge_patch(SOCKET_STATUSES, this.node, body, field_manager=REPAIRING_MANAGER)
        answer = await self._versions.writing(this.node, write, generation=this.generation + 1)
        metrics.MOVED_PODS.inc(len(moves))
        metrics.ASSIGNED_PODS.inc(len(added))
        metrics.REMOVED.inc(len(absent))
        this.take(ObjectDecoder(SOCKET_STATUSES.raw.type).decode(answer))
        for removed, why in ((gone, "no such pod runs here"), (classless, "the pod has no class")):
            if removed:
                self._recorder.record(events.assignments_removed(Reference.to(this.raw), removed, why))
        if exchange is not None:
            log.info("pods moved", node=this.node, pods=[str(seats.assignments[at].name) for at in moves])
            for at, place in moves.items():
                note = events.socket_changed(this.node, seats.assignments[at], seats.numbers[place], exchange)
                self._recorder.record(note)

    async def _write_condition(self, this: _Pass, update: ConditionUpdate, now: datetime) -> None:
        """Apply the condition if it differs, and tell in an Event if it is news."""
        before = this.status.status.conditions
        after = apply(before, [update], observed_generation=this.generation, now=now)
        wanted = find_condition(after, CONDITION_PAIRED)
        if wanted is None or wanted == find_condition(before, CONDITION_PAIRED):
            return
        metadata = this.raw["metadata"]
        body = {
            "apiVersion": SOCKET_STATUSES.api_version,
            "kind": SOCKET_STATUSES.kind,
            # The uid keeps it from creating an object that was deleted meanwhile.
            "metadata": {"name": this.node, "uid": metadata["uid"]},
            "status": {"conditions": [wanted.to_api()]},
        }
        write = self._client.apply(
            SOCKET_STATUSES, this.node, body, field_manager=REPAIRING_MANAGER, subresource="status"
        )
        await self._versions.writing(this.node, write, generation=this.generation)
        for note in events.condition_changed(Reference.to(this.raw), before, update):
            self._recorder.record(note)

"""Writes decisions through the Binding API and finds out what really happened.

A binding carries the pod's uid as precondition, so it never lands on a namesake. When the answer is lost or
says "try later", the pod is read back before anything else is done: bound here, bound elsewhere, gone, or
still free. As long as that cannot be known, the room stays taken; so nothing is bound twice and no node is
over-committed.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import msgspec
import structlog

from berth.api.labels import (
    ANNOTATION_ADMITTED_BANDWIDTH,
    ANNOTATION_DECISION,
    ANNOTATION_DELETION_COST,
    ANNOTATION_SOCKET,
)
from berth.kube.client import TRANSPORT_ERRORS, ApiClient, backoff
from berth.kube.errors import ApiError, readable
from berth.kube.objects import Pod
from berth.kube.resources import PODS
from controllers.placement.lookups import Lookups

log = structlog.get_logger(__name__)

MAX_ATTEMPTS = 6
"""Bindings sent for one decision before it is given up and planned anew."""
LOOKUPS = 8
"""Pods with an unknown binding that are read at a time."""
LONGEST_PAUSE = 30.0
"""Seconds between two readings of such a pod at most."""
TRUST_WATCH_AFTER = 60.0
"""Seconds for which the API server may refuse to show a pod until the watch decides: it would have shown a binding."""


class BindOutcome(Enum):
    """What became of a binding."""

    BOUND = "bound"
    """the pod is on the decided node"""
    ELSEWHERE = "elsewhere"
    """somebody else has bound the pod to another node"""
    GONE = "gone"
    """the pod does not exist any more"""
    REFUSED = "refused"
    """the API server does not accept it, or not in time; the pod is free"""
    UNKNOWN = "unknown"
    """the answer is lost and the pod could not be read; :meth:`Binder.find_out` goes on asking"""


@dataclass(frozen=True, slots=True)
class BindResult:
    """Outcome with its reason."""

    outcome: BindOutcome
    """what happened"""
    problem: str = ""
    """the server's words when the pod is still free, or cannot be read"""
    final: bool = False
    """True when the API server answered and will hardly answer otherwise soon"""


class _Target(msgspec.Struct, omit_defaults=False, rename="camel"):
    kind: str
    name: str
    api_version: str = "v1"


class _Metadata(msgspec.Struct):
    name: str
    namespace: str
    uid: str
    annotations: dict[str, str]


class _Binding(msgspec.Struct, rename="camel"):
    metadata: _Metadata
    target: _Target
    api_version: str = "v1"
    kind: str = "Binding"


class _Accepted(msgspec.Struct):
    """metav1.Status, what the API server answers to a Binding; whatever else says 200 settles nothing."""

    status: Literal["Success"]


_ACCEPTED = msgspec.json.Decoder(_Accepted)


def binding(
    pod: Pod, node: str, *, decision: str, admitted: str = "", socket: str = "", deletion_cost: str = ""
) -> Any:
    """The Binding to send: valid for this very pod only, and carrying what is not empty into its annotations."""
    meta = pod.metadata
    texts = {
        ANNOTATION_DECISION: decision,
        ANNOTATION_ADMITTED_BANDWIDTH: admitted,
        ANNOTATION_SOCKET: socket,
        ANNOTATION_DELETION_COST: deletion_cost,
    }
    annotations = {key: text for key, text in texts.items() if text}
    return _Binding(
        metadata=_Metadata(meta.name, meta.namespace, meta.uid, annotations),
        target=_Target(kind="Node", name=node),
    )


def refusal(error: ApiError) -> BindResult | None:
    """What an error status settles; None when the pod must be read back to know.

    A refusal that is not the API server's may come from something on the way, after the pod has been bound.
    """
    if not error.stated:
        return None
    if error.not_found:
        return BindResult(BindOutcome.GONE)
    if error.retryable or error.conflict:
        return None
    return BindResult(BindOutcome.REFUSED, str(error))


def found(pod: Pod, node: str, current: Pod) -> BindResult | None:
    """What the pod as read back says about its binding to `node`; None while it is free."""
    if current.metadata.uid != pod.metadata.uid:
        return BindResult(BindOutcome.GONE)
    if not current.spec.node_name:
        return None
    return BindResult(BindOutcome.BOUND if current.spec.node_name == node else BindOutcome.ELSEWHERE)


def settled(pod: Pod, node: str, watched: Pod | None) -> BindResult | None:
    """What the watch says about the binding; None while it shows the pod free, which may be old."""
    return BindResult(BindOutcome.GONE) if watched is None else found(pod, node, watched)


class Binder:
    """Sends bindings, each until its outcome is known."""

    def __init__(self, client: ApiClient) -> None:
        """Prepare."""
        self._client = client
        self._lookups = Lookups(LOOKUPS)

    async def bind(
        self, pod: Pod, node: str, *, decision: str, admitted: str = "", socket: str = "", deletion_cost: str = ""
    ) -> BindResult:
        """Bind a pod and say what became of it; the same call stores in its annotations what is not empty.

        When the answer is lost and the pod cannot be read either, the outcome is UNKNOWN.
        """
        meta = pod.metadata
        body = binding(pod, node, decision=decision, admitted=admitted, socket=socket, deletion_cost=deletion_cost)
        problem = ""
        for attempt in range(MAX_ATTEMPTS):
            wait = backoff(attempt)
            try:
                answer = await self._client.create(
                    PODS, body, namespace=meta.namespace, name=meta.name, subresource="binding"
                )
                with readable(answer):
                    _ACCEPTED.decode(answer)
                return BindResult(BindOutcome.BOUND)
            except ApiError as error:
                settled = refusal(error)
                if settled is not None:
                    return settled
                problem, final = str(error), error.conflict
                wait = max(wait, error.retry_after or 0.0)
            except TRANSPORT_ERRORS as error:
                problem, final = str(error) or repr(error), False
            known = await self._look(pod, node)
            if known is not None:
                return known
            if final:
                break
            await asyncio.sleep(wait)
        return BindResult(BindOutcome.REFUSED, problem)

    async def _look(self, pod: Pod, node: str) -> BindResult | None:
        """Where the pod is now; None while it is free, UNKNOWN when the API server does not tell."""
        try:
            current = await self._client.get(PODS, pod.metadata.name, namespace=pod.metadata.namespace)
        except ApiError as error:
            if error.not_found and error.stated:
                return BindResult(BindOutcome.GONE)
            return BindResult(BindOutcome.UNKNOWN, str(error), final=not error.retryable)
        except TRANSPORT_ERRORS as error:
            return BindResult(BindOutcome.UNKNOWN, str(error) or repr(error))
        return found(pod, node, current)

    async def find_out(self, pod: Pod, node: str, watched: Callable[[], Pod | None]) -> BindResult:
        """Ask until it is known what became of a binding whose outcome is UNKNOWN; the room stays taken until then.

        Args:
            pod: what was bound.
            node: where to.
            watched: the pod as the watch shows it now, None once it is gone.
        """
        refused_since: float | None = None
        for attempt in itertools.count():
            await asyncio.sleep(backoff(attempt, cap=LONGEST_PAUSE))
            # What the watch has shown needs no answer any more.
            known = settled(pod, node, watched())
            if known is None:
                try:
                    async with self._lookups.turn(pod.metadata.namespace):
                        known = settled(pod, node, watched()) or await self._look(pod, node)
                except TimeoutError:
                    known = BindResult(BindOutcome.UNKNOWN, "no answer in time")
            if known is None:
                return BindResult(BindOutcome.REFUSED, "the answer to the binding was lost")
            if known.outcome is not BindOutcome.UNKNOWN:
                return known
            log.warning("cannot tell whether a pod is bound", pod=pod.key, error=known.problem)
            refused_since = (refused_since or time.monotonic()) if known.final else None
            if refused_since is not None and time.monotonic() - refused_since >= TRUST_WATCH_AFTER:
                return BindResult(BindOutcome.REFUSED, f"the pod cannot be read: {known.problem}")
        raise AssertionError("unreachable: counting does not end")

"""One request: whose it is, where it goes, and what is noted of it."""

from __future__ import annotations

import time
from typing import Final

import structlog
from aiohttp import web

from agents.router import metrics
from agents.router.balancer import Balancer, Choice
from agents.router.knowledge import Knowledge
from agents.router.measuring import Measuring
from agents.router.steering import Steering
from berth.runtime.proxy.exchange import Exchange
from berth.runtime.proxy.forwarding import Forwarding
from berth.runtime.proxy.headers import BadRequestError, target_of
from berth.runtime.proxy.mark import MARK_FIELD, MARK_HEADER, UNNAMED, mark_of
from berth.runtime.proxy.upstream import Address, Failure, UpstreamError

log = structlog.get_logger(__name__)

PSEUDONYM: Final = b"berth-router"
"""Name of the router in Via."""
SHOWN_CHARACTERS: Final = 8
"""Characters of a user's hash in the access log: enough to follow one through a few minutes, in thousands."""


class Routing:
    """Answers requests by sending them on."""

    def __init__(
        self,
        forwarding: Forwarding,
        balancer: Balancer,
        steering: Steering,
        knowledge: Knowledge,
        measuring: Measuring,
        *,
        answer_seconds: float,
        access_log: bool,
    ) -> None:
        """Prepare.

        Args:
            forwarding: sends requests on.
            balancer: knows the pods.
            steering: knows the other routers.
            knowledge: what is known of users.
            measuring: keeps what connections say of round trips.
            answer_seconds: seconds that a pod may take to begin its answer.
            access_log: whether each request is logged.
        """
        self._forwarding = forwarding
        self._balancer = balancer
        self._steering = steering
        self._knowledge = knowledge
        self._measuring = measuring
        self._answer_seconds = answer_seconds
        self._access_log = access_log

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        under_way = self._measuring.begin(request)
        try:
            return await self._answer(request, under_way.user)
        finally:
            self._measuring.end(under_way)

    async def _answer(self, request: web.BaseRequest, user: str) -> web.StreamResponse:
        begun = time.perf_counter()
        exchange = Exchange(
            request,
            lambda _failed: None,
            PSEUDONYM,
            without=_OURS,
            elsewhere=True,
            answer_seconds=self._answer_seconds,
        )
        visit = _Visit(exchange, self._balancer, self._knowledge.nodes.get(user) if user else None)
        # Also without a name: what the meter behind would measure is the way from here.
        mark = mark_of(self._knowledge.key, user) if user else UNNAMED
        exchange.added = ((MARK_HEADER.encode(), mark.encode()),)
        metrics.UNDER_WAY.inc()
        try:
            location = self._elsewhere(request, user)
            if location is not None:
                visit.route = "steered"
                fields = ((b"Location", location.encode(errors="surrogateescape")),)
                return await self._forwarding.refuse(exchange, 307, "ask there", fields)
            return await self._forwarding.forward(exchange)
        finally:
            visit.leave()
            metrics.UNDER_WAY.dec()
            self._note(exchange, visit.route, user, time.perf_counter() - begun)

    def _elsewhere(self, request: web.BaseRequest, user: str) -> str | None:
        if not user or user not in self._knowledge.instructions.steer or request.headers.get("Upgrade"):
            return None
        try:
            target, _ = target_of(request.method, request.raw_path)
        except BadRequestError:
            return None
        text = target.decode(errors="surrogateescape")
        return self._steering.location(user, request.method, text, self._knowledge.instructions)

    def _note(self, exchange: Exchange, route: str, user: str, seconds: float) -> None:
        metrics.REQUESTS.labels(route, metrics.status_class(exchange.status)).inc()
        if exchange.attempts > 1:
            metrics.REPEATED.inc()
        if exchange.status != 101:
            metrics.SECONDS.observe(seconds)
        if self._access_log:
            # Nothing that says who asked or for what: no address, path, query, cookie or other field.
            log.info(
                "request",
                method=exchange.request.method,
                status=exchange.status,
                milliseconds=round(1000 * seconds, 1),
                route=route,
                attempts=exchange.attempts,
                failure=exchange.failure,
                user=user[:SHOWN_CHARACTERS],
            )


_OURS: Final = frozenset((MARK_FIELD,))


class _Visit:
    """A request's way through pods: counts it where it is."""

    def __init__(self, exchange: Exchange, balancer: Balancer, node: str | None) -> None:
        self.route = "none"
        self._balancer = balancer
        self._node = node
        self._at: Address | None = None
        exchange.choose = self.choose
        exchange.on_failure = self.failed
        exchange.on_answer = balancer.answered

    def choose(self, failed: list[Address]) -> Address | None:
        self.leave()
        choice: Choice | None = self._balancer.choose(self._node, failed)
        if choice is None:
            self.route = "none"
            return None
        self.route = "near" if choice.near else "load"
        self._at = choice.backend.address
        self._balancer.begin(self._at)
        return self._at

    def failed(self, address: Address, error: UpstreamError) -> None:
        metrics.FAILURES.labels(error.failure.value).inc()
        if error.failure is not Failure.TIMEOUT:
            self._balancer.failed(address, heard=error.closed or error.failure is Failure.MALFORMED)

    def leave(self) -> None:
        if self._at is not None:
            self._balancer.end(self._at)
            self._at = None

"""Sets the number of replicas of Deployments, each time only if nobody has changed anything of the Deployment."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final, NamedTuple

import msgspec
from cachetools import TTLCache

from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.meta import ObjectMeta, Struct
from berth.kube.resources import version_number
from controllers.latency.objects import DEPLOYMENTS, Deployment

AGAIN: Final = 30.0
"""Seconds for which a number that was refused is not tried again."""
KEPT_SECONDS: Final = 600.0
"""Seconds for which it is remembered what was written, which watches show long before, and what was refused, which is
tried again long before where it is still wanted: nobody tells of Deployments that are gone."""
MOST_KEPT: Final = 10_000
"""Deployments of which it is, at most."""
REFUSED: Final = frozenset({400, 403, 422})
"""Statuses by which rights, admission webhooks or policies of admission forbid it; others are trouble on the way."""


class _Scale(Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class _Number(NamedTuple):
    version: int
    replicas: int


class _Refusal(NamedTuple):
    replicas: int
    error: ApiError
    until: float


class Scaler:
    """Remembers what it wrote for as long as the watch may not show it yet."""

    def __init__(self, client: ApiClient, clock: Callable[[], float] = monotonic) -> None:
        """Prepare; `clock` tells seconds of a monotonic clock."""
        self._client = client
        self._clock = clock
        self._written: TTLCache[str, _Number] = TTLCache(MOST_KEPT, KEPT_SECONDS, clock)
        self._refused: TTLCache[str, _Refusal] = TTLCache(MOST_KEPT, KEPT_SECONDS, clock)

    def refusal(self, deployment: Deployment) -> str:
        """Return why the number was not to be set when that was tried last; empty: somebody has, or nobody tried."""
        found = self._last_refusal(deployment)
        return f"the number of replicas may not be set: {found.error.message}" if found is not None else ""

    def _last_refusal(self, deployment: Deployment) -> _Refusal | None:
        # Not asked first whether it is there, as `get` does too: it may expire in between.
        with suppress(KeyError):
            found = self._refused[deployment.metadata.uid]
            if found.replicas == self.replicas(deployment):  # else somebody has set the number since
                return found
        return None

    def replicas(self, deployment: Deployment) -> int:
        """Return the number of replicas, as written last if the Deployment is of a time before that."""
        return self._newest(deployment).replicas

    def _newest(self, deployment: Deployment) -> _Number:
        metadata = deployment.metadata
        shown = _Number(version_number(metadata.resource_version), deployment.spec.replicas)
        with suppress(KeyError):
            written = self._written[metadata.uid]
            return written if written.version > shown.version else shown
        return shown

    async def scale(self, deployment: Deployment, before: int, after: int) -> bool:
        """Replace the number; returns False if it is another than `before`, or may be.

        Raises:
            ApiError, aiohttp.ClientError, OSError: try again later; see :meth:`refusal`.
        """
        metadata = deployment.metadata
        newest = self._newest(deployment)
        if newest.replicas != before:
            return False
        refused = self._last_refusal(deployment)
        if refused is not None and self._clock() < refused.until:
            raise refused.error.with_traceback(None)
        # Only if nothing was changed since: after trouble, that may have been this very write.
        body = {"metadata": {"resourceVersion": str(newest.version)}, "spec": {"replicas": after}}
        try:
            answer = await self._client.strategic_patch(
                DEPLOYMENTS, metadata.name, body, namespace=metadata.namespace, subresource="scale"
            )
        except ApiError as error:
            if error.conflict or error.says_gone(DEPLOYMENTS.plural, metadata.name):
                return False
            if error.status in REFUSED:
                self._refused[metadata.uid] = _Refusal(before, error, self._clock() + AGAIN)
            raise
        with suppress(KeyError):
            del self._refused[metadata.uid]
        written = msgspec.json.decode(answer, type=_Scale).metadata.resource_version
        self._written[metadata.uid] = _Number(version_number(written), after)
        return True

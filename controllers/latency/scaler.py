"""Sets the number of replicas of Deployments, each time only if nobody has changed anything of the Deployment."""

from __future__ import annotations

import msgspec

from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.meta import ObjectMeta, Struct
from berth.kube.resources import version_number
from controllers.latency.objects import DEPLOYMENTS, Deployment


class _Scale(Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class Scaler:
    """Remembers what it wrote for as long as the watch may not show it yet."""

    def __init__(self, client: ApiClient) -> None:
        """Prepare."""
        self._client = client
        self._written: dict[str, tuple[int, int]] = {}

    def replicas(self, deployment: Deployment) -> int:
        """Return the number of replicas, as written last if the Deployment is of a time before that."""
        version, written = self._written.get(deployment.metadata.uid, (-1, 0))
        if version > version_number(deployment.metadata.resource_version):
            return written
        self._written.pop(deployment.metadata.uid, None)
        return deployment.spec.replicas

    async def scale(self, deployment: Deployment, before: int, after: int) -> bool:
        """Replace the number; returns False if it is another than `before`, or may be.

        Raises:
            ApiError, aiohttp.ClientError, OSError: try again later.
        """
        metadata = deployment.metadata
        if self.replicas(deployment) != before:
            return False
        version, _ = self._written.get(metadata.uid, (version_number(metadata.resource_version), before))
        # Only if nothing was changed since: after trouble, that may have been this very write.
        body = {"metadata": {"resourceVersion": str(version)}, "spec": {"replicas": after}}
        try:
            answer = await self._client.strategic_patch(
                DEPLOYMENTS, metadata.name, body, namespace=metadata.namespace, subresource="scale"
            )
        except ApiError as error:
            if error.conflict or error.says_gone(DEPLOYMENTS.plural, metadata.name):
                return False
            raise
        written = msgspec.json.decode(answer, type=_Scale).metadata.resource_version
        self._written[metadata.uid] = (version_number(written), after)
        return True

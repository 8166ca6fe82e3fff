"""Whether a watch that was broken off may go on, or the API server has another history by now.

After etcd was restored from a backup, the API server takes a watch from a version that it has not reached yet. It says
nothing until it has, and goes on as if nothing had been in between: objects that came with the backup, or after it,
would never be seen.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import structlog

from berth.kube.lists import RawList
from berth.kube.resources import version_number

log = structlog.get_logger(__name__)


async def went_back(pages: AsyncGenerator[RawList, None], version: str) -> bool:
    """Return whether the API server is behind a version that it has shown before.

    Args:
        pages: the collection as it is now, of which the first page is read; it may be as small as one object.
        version: where the watch would go on.

    Raises:
        ApiError, aiohttp.ClientError, OSError, ConnectionConfigError: as ``ApiClient.list_pages``.
    """
    async with aclosing(pages):
        async for page in pages:
            if 0 <= version_number(page.metadata.resource_version) < version_number(version):
                log.warning("the API server has gone back", version=page.metadata.resource_version, seen=version)
                return True
            break
    return False

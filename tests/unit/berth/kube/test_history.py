"""When the API server is behind what it has shown."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from berth.kube.history import went_back
from berth.kube.lists import ListMeta, RawList


@pytest.mark.parametrize(
    ("now", "seen", "back"),
    [
        pytest.param("9", "10", True, id="behind, as numbers"),
        pytest.param("10", "10", False, id="the same"),
        pytest.param("11", "10", False, id="further on"),
        pytest.param("", "10", False, id="none"),
        pytest.param("abc", "10", False, id="none that can be compared"),
        pytest.param("9", "abc", False, id="nothing to compare it with"),
        pytest.param("10", str(2**64), True, id="behind a number that is larger than any"),
    ],
)
async def test_the_first_page_tells(now: str, seen: str, back: bool) -> None:
    asked: list[str] = []

    async def pages() -> AsyncGenerator[RawList, None]:
        for version in (now, "0"):
            asked.append(version)
            yield RawList(ListMeta(version))

    assert await went_back(pages(), seen) is back
    assert asked == [now]

"""Which version a read must not be older than, and whether it is ours."""

from __future__ import annotations

import asyncio

import pytest

from berth.runtime.seen_versions import SeenVersions


class Seen:
    """Versions of objects, and of which ones there were news."""

    def __init__(self) -> None:
        self.news: list[str] = []
        self.versions: SeenVersions[str] = SeenVersions(self.news.append)


def answer(version: str, generation: int = 1) -> bytes:
    """An object as the API server returns it."""
    return b'{"metadata":{"resourceVersion":"%s","generation":%d}}' % (version.encode(), generation)


async def write(versions: SeenVersions[str], key: str, body: bytes, *, meanwhile: tuple[str, ...] = ()) -> bytes:
    """Write an object of generation 1; the versions of `meanwhile` are seen before the answer."""

    async def written() -> bytes:
        for version in meanwhile:
            versions.note(key, version)
        return body

    return await versions.writing(key, written(), generation=1)


@pytest.mark.parametrize(
    ("seen", "version"),
    [
        pytest.param([], "", id="nothing"),
        pytest.param(["9", "10"], "10", id="newer"),
        pytest.param(["10", "9"], "10", id="an event behind the answer to a write"),
        pytest.param(["10", ""], "10", id="none is no version"),
        pytest.param(["x", "y"], "y", id="what cannot be compared, in order"),
    ],
)
def test_the_newest_counts(seen: list[str], version: str) -> None:
    versions = Seen().versions
    for each in seen:
        versions.note("a", each)
    assert (versions.of("a"), versions.of("b")) == (version, "")


async def test_answers_to_writes_count_however_deep_their_managed_fields_are() -> None:
    versions = Seen().versions
    body = b'{"metadata":{"managedFields":%s,"resourceVersion":"5"}}' % (b"[" * 9000 + b"]" * 9000)
    assert await write(versions, "a", body) == body
    assert versions.of("a") == "5"


async def test_what_is_gone_or_was_listed_anew_is_read_as_it_is_and_shown_again() -> None:
    seen = Seen()
    versions = seen.versions
    for key in "abc":
        versions.note(key, "5")
        await write(versions, key, answer("6"))
    versions.forget("a")
    versions.forget("a")
    assert [versions.of(key) for key in "abc"] == ["", "6", "6"]
    versions.clear()
    assert [versions.of(key) for key in "abc"] == [""] * 3
    seen.news.clear()
    for key in "abc":
        versions.note(key, "6")
    assert seen.news == ["a", "b", "c"]


Step = tuple[bytes, tuple[str, ...]] | str
"""The answer to a write, with the events before it; or the version in an event."""


@pytest.mark.parametrize(
    ("steps", "news"),
    [
        pytest.param(["4"], 1, id="somebody's"),
        pytest.param(["4", (answer("5"), ()), "5"], 1, id="ours after the answer"),
        pytest.param(["4", (answer("5"), ("5",))], 1, id="ours before the answer"),
        pytest.param([(answer("5"), ()), "5", "5"], 1, id="ours again, in a list"),
        pytest.param([(answer("5"), ()), (answer("6"), ()), "5", "6"], 0, id="two of ours"),
        pytest.param([(answer("5"), ()), (answer("6"), ("5", "6"))], 1, id="two of ours, the first behind the second"),
        pytest.param([(answer("5"), ()), (answer("6"), ()), "6", "5"], 1, id="ours, and one that is forgotten by then"),
        pytest.param([(answer("6"), ()), "5", "6"], 1, id="somebody's before ours"),
        pytest.param([(answer("6"), ("5", "6"))], 1, id="somebody's before ours, both before the answer"),
        pytest.param([(answer("5"), ()), "5", "6"], 1, id="somebody's after ours"),
        pytest.param([(answer("5"), ("5", "6"))], 1, id="somebody's after ours, both before the answer"),
        pytest.param([(answer("6", 2), ()), "6"], 1, id="ours on top of an edit that was not read"),
        pytest.param([(answer("6", 2), ("5", "6"))], 1, id="ours on top of an edit, both before the answer"),
        pytest.param(["5", (answer("5"), ()), "5"], 2, id="an answer that changed nothing"),
        pytest.param([(answer("x"), ()), "x"], 1, id="what cannot be compared"),
    ],
)
async def test_what_we_wrote_is_no_news(steps: list[Step], news: int) -> None:
    seen = Seen()
    for step in steps:
        if isinstance(step, str):
            seen.versions.note("a", step)
        else:
            await write(seen.versions, "a", step[0], meanwhile=step[1])
    assert seen.news == ["a"] * news


@pytest.mark.parametrize("error", [OSError, asyncio.CancelledError])
@pytest.mark.parametrize("meanwhile", [(), ("5", "6")])
async def test_what_was_seen_during_a_write_that_failed_is_news(
    error: type[BaseException], meanwhile: tuple[str, ...]
) -> None:
    """It may have been written all the same, or not."""
    seen = Seen()

    async def failing() -> bytes:
        for version in meanwhile:
            seen.versions.note("a", version)
        raise error

    with pytest.raises(error):
        await seen.versions.writing("a", failing(), generation=1)
    assert seen.news == ["a"] * bool(meanwhile)
    seen.versions.note("b", "7")
    assert seen.news[-1] == "b"

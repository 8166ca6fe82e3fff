"""Which version a read must not be older than."""

from __future__ import annotations

import pytest

from berth.runtime.seen_versions import SeenVersions


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
    versions: SeenVersions[str] = SeenVersions()
    for each in seen:
        versions.note("a", each)
    assert (versions.of("a"), versions.of("b")) == (version, "")


def test_answers_to_writes_count_however_deep_their_managed_fields_are() -> None:
    versions: SeenVersions[str] = SeenVersions()
    deep = b"[" * 9000 + b"]" * 9000
    versions.note_answer("a", b'{"metadata":{"managedFields":%s,"resourceVersion":"5"}}' % deep)
    assert versions.of("a") == "5"


def test_what_is_gone_or_was_listed_anew_is_read_as_it_is() -> None:
    versions: SeenVersions[str] = SeenVersions()
    for key in "abc":
        versions.note(key, "5")
    versions.forget("a")
    versions.forget("a")
    assert [versions.of(key) for key in "abc"] == ["", "5", "5"]
    versions.clear()
    assert [versions.of(key) for key in "abc"] == [""] * 3

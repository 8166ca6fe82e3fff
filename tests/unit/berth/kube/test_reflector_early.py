"""Objects that were read by themselves, before the watch has shown them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube.client import ApiClient
from berth.kube.objects import ConfigMap, ObjectMeta
from berth.kube.reflector import Reflector
from berth.kube.resources import CONFIGMAPS
from tests.support.kube import ChangeType

ADDED, MODIFIED, DELETED = ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED
Seen = list[tuple[ChangeType, str]]


def config_map(version: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="a", namespace="ns", uid="u1", resource_version=version))


def line(kind: ChangeType, version: str, uid: str = "u1") -> bytes:
    metadata = {"namespace": "ns", "name": "a", "uid": uid, "resourceVersion": version}
    return msgspec.json.encode({"type": kind.value, "object": {"metadata": metadata}})


def followed(reflector: Reflector[Any]) -> Seen:
    seen: Seen = []

    def note(old: Any, new: Any) -> None:
        seen.append((ChangeType.of(old, new), (new or old).metadata.resource_version))

    reflector.add_handler(note)
    return seen


@pytest.fixture
def reflector(closed_client: ApiClient) -> Reflector[ConfigMap]:
    return Reflector(closed_client, CONFIGMAPS)


@pytest.mark.parametrize(
    ("known", "at", "version", "changes"),
    [
        pytest.param(False, "5", "7", [(ADDED, "7")], id="the watch has yet to show it"),
        pytest.param(False, "7", "7", [], id="deleted since: the watch has shown it in this version"),
        pytest.param(False, "9", "7", [], id="deleted since: the watch is beyond it"),
        pytest.param(True, "5", "7", [], id="known in another version"),
        pytest.param(False, "", "7", [], id="not listed yet"),
        pytest.param(False, "5", "odd", [], id="a version that cannot be compared"),
    ],
)
def test_an_object_read_by_itself_is_taken_before_the_watch_shows_it(
    reflector: Reflector[ConfigMap], *, known: bool, at: str, version: str, changes: Seen
) -> None:
    if known:
        reflector._replace({"ns/a": config_map("1")})
    reflector._version = at
    seen = followed(reflector)
    ends: list[int] = []
    reflector.add_batch_handler(lambda: ends.append(1))
    assert reflector.offer(config_map(version)) is bool(changes)
    assert seen == changes
    assert len(ends) == len(changes)
    assert reflector._version == at


@pytest.mark.parametrize("end", [[DELETED], [MODIFIED, DELETED]], ids=["deleted", "changed and deleted"])
def test_what_was_taken_early_goes_on_as_the_watch_says(reflector: Reflector[ConfigMap], end: list[ChangeType]) -> None:
    reflector._version = "5"
    reflector.offer(config_map("7"))
    seen = followed(reflector)
    reflector._apply(line(ADDED, "7"))
    for number, kind in enumerate(end):
        reflector._apply(line(kind, str(8 + number)))
    assert [change for change, _ in seen] == [MODIFIED, *end]
    assert reflector.objects == {}


@pytest.mark.parametrize(
    ("lines", "changes"),
    [
        pytest.param([line(ADDED, "6")], [], id="made"),
        pytest.param([line(ADDED, "6", "u0"), line(DELETED, "6", "u0")], [], id="one of before, made and deleted"),
        pytest.param([line(ADDED, "6"), line(DELETED, "9")], [(DELETED, "9")], id="deleted since it was read"),
        pytest.param([line(ADDED, "6"), line(MODIFIED, "9")], [(MODIFIED, "9")], id="edited since it was read"),
        pytest.param([line(ADDED, "odd")], [(MODIFIED, "odd")], id="what cannot be compared counts as it comes"),
    ],
)
def test_what_was_before_one_that_was_taken_early_is_not_told_after_it(
    reflector: Reflector[ConfigMap], lines: list[bytes], changes: Seen
) -> None:
    """Pods would be planned by an older spec, or as if there were none, until the watch has caught up."""
    reflector._version = "5"
    reflector.offer(config_map("7"))
    seen = followed(reflector)
    for each in lines:
        reflector._apply(each)
    assert seen == changes
    assert reflector._version == msgspec.json.decode(lines[-1])["object"]["metadata"]["resourceVersion"]

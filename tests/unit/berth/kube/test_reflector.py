"""How lists and watch lines, as bytes, become the local copy and the changes that handlers see.

The loop around it (lists, watches, restarts, 410) runs against a real server: tests/integration/test_kube_reflector.py.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_asyncio.client import Configuration
from prometheus_client import REGISTRY

from berth.kube.client import ApiClient
from berth.kube.connection import Connection
from berth.kube.errors import ApiError
from berth.kube.meta import object_key
from berth.kube.objects import ConfigMap, ObjectMeta, Pod, PodSpec
from berth.kube.reflector import Reflector
from berth.kube.resources import CONFIGMAPS, PODS
from tests.support.kube import ChangeType

ADDED, MODIFIED, DELETED = ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED
Seen = list[tuple[ChangeType, str, str, str]]


def config_map(name: str, *, uid: str = "u1", version: str = "1", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="ns", uid=uid, resource_version=version), data=data)


def line(kind: str, **metadata: Any) -> bytes:
    metadata = {"namespace": "ns", "name": "a", "uid": "u1", "resourceVersion": "1", **metadata}
    return msgspec.json.encode(
        {"type": kind, "object": {"kind": "ConfigMap", "metadata": metadata, "data": {"k": "v"}}}
    )


def followed(reflector: Reflector[Any]) -> Seen:
    seen: Seen = []

    def note(old: Any, new: Any) -> None:
        metadata = (new or old).metadata
        seen.append((ChangeType.of(old, new), metadata.name, metadata.uid, metadata.resource_version))

    reflector.add_handler(note)
    return seen


@pytest.fixture
def reflector(closed_client: ApiClient) -> Reflector[ConfigMap]:
    return Reflector(closed_client, CONFIGMAPS)


@pytest.fixture
def seen(reflector: Reflector[ConfigMap]) -> Seen:
    return followed(reflector)


@pytest.mark.parametrize(
    ("known", "fresh", "changes"),
    [
        pytest.param([], [], [], id="nothing"),
        pytest.param([], [config_map("a")], [(ADDED, "a", "u1", "1")], id="first list"),
        pytest.param([config_map("a")], [config_map("a")], [], id="unchanged is not reported"),
        pytest.param([config_map("a")], [config_map("a", version="2")], [(MODIFIED, "a", "u1", "2")], id="changed"),
        pytest.param(
            [config_map("a", version="5", k="v")],
            [config_map("a", version="5", k="w")],
            [(MODIFIED, "a", "u1", "5")],
            id="changed in another history",
        ),
        pytest.param(
            [config_map("a", version="5")], [config_map("a", version="2")], [(MODIFIED, "a", "u1", "2")], id="went back"
        ),
        pytest.param([config_map("a")], [], [(DELETED, "a", "u1", "1")], id="deleted while nobody watched"),
        pytest.param(
            [config_map("a")],
            [config_map("a", uid="u2", version="9")],
            [(DELETED, "a", "u1", "1"), (ADDED, "a", "u2", "9")],
            id="deleted and made again",
        ),
        pytest.param(
            [config_map("a"), config_map("b"), config_map("c")],
            [config_map("b", version="5"), config_map("c"), config_map("d", version="6")],
            [(DELETED, "a", "u1", "1"), (MODIFIED, "b", "u1", "5"), (ADDED, "d", "u1", "6")],
            id="deletions come first",
        ),
    ],
)
def test_a_list_is_compared_with_the_copy(
    reflector: Reflector[ConfigMap], seen: Seen, known: list[ConfigMap], fresh: list[ConfigMap], changes: Seen
) -> None:
    reflector._replace({object_key(item.metadata): item for item in known})
    seen.clear()
    reflector._replace({object_key(item.metadata): item for item in fresh})
    assert seen == changes
    assert reflector.objects == {object_key(item.metadata): item for item in fresh}


@pytest.mark.parametrize(
    ("lines", "changes", "keys"),
    [
        pytest.param([line("ADDED")], [(ADDED, "a", "u1", "1")], {"ns/a"}, id="added"),
        pytest.param(
            [line("ADDED"), line("MODIFIED", resourceVersion="2")],
            [(ADDED, "a", "u1", "1"), (MODIFIED, "a", "u1", "2")],
            {"ns/a"},
            id="modified",
        ),
        pytest.param(
            [line("ADDED"), line("DELETED", resourceVersion="3")],
            [(ADDED, "a", "u1", "1"), (DELETED, "a", "u1", "3")],
            set(),
            id="deleted, with the last object",
        ),
        pytest.param([line("DELETED", resourceVersion="3")], [], set(), id="deletion of something unknown"),
        pytest.param(
            [line("MODIFIED", resourceVersion="3")], [(ADDED, "a", "u1", "3")], {"ns/a"}, id="unknown one is new to us"
        ),
        pytest.param(
            [line("ADDED"), line("ADDED", resourceVersion="3")],
            [(ADDED, "a", "u1", "1"), (MODIFIED, "a", "u1", "3")],
            {"ns/a"},
            id="added again is a change",
        ),
        pytest.param(
            [line("ADDED"), line("ADDED", uid="u2", resourceVersion="3")],
            [(ADDED, "a", "u1", "1"), (DELETED, "a", "u1", "1"), (ADDED, "a", "u2", "3")],
            {"ns/a"},
            id="made again without a deletion seen",
        ),
        pytest.param(
            [line("ADDED", namespace="")], [(ADDED, "a", "u1", "1")], {"a"}, id="no namespace, key is the name"
        ),
    ],
)
def test_watch_lines_change_the_copy(
    reflector: Reflector[ConfigMap], seen: Seen, lines: list[bytes], changes: Seen, keys: set[str]
) -> None:
    for each in lines:
        reflector._apply(each)
    assert seen == changes
    assert set(reflector.objects) == keys
    assert reflector._version == msgspec.json.decode(lines[-1])["object"]["metadata"]["resourceVersion"]


NAMES = st.sampled_from(["a", "b", "c"])


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["ADDED", "MODIFIED", "DELETED"]), NAMES, st.sampled_from(["u1", "u2"])),
            st.tuples(st.just("RELIST"), st.sets(NAMES), st.sampled_from(["u1", "u2"])),
        ),
        max_size=30,
    )
)
def test_whoever_replays_the_changes_has_the_copy(steps: list[tuple[str, Any, str]]) -> None:
    client = ApiClient(Connection(configuration=Configuration(host="https://192.0.2.1"), namespace="default"))
    reflector = Reflector(client, CONFIGMAPS)
    replay: dict[str, ConfigMap] = {}

    def handler(old: ConfigMap | None, new: ConfigMap | None) -> None:
        item = new or old
        assert item is not None
        key = object_key(item.metadata)
        assert (key in replay) is (old is not None)
        if old is not None:
            assert replay[key].metadata.uid == item.metadata.uid
        if old is not None and new is not None:
            assert old is replay[key]
        if new is None:
            del replay[key]
        else:
            replay[key] = new

    reflector.add_handler(handler)
    failures = REGISTRY.get_sample_value("berth_handler_failures_total", {"resource": "configmaps"})
    for version, (kind, what, uid) in enumerate(steps, start=1):
        if kind == "RELIST":
            items = [config_map(name, uid=uid, version=str(version)) for name in what]
            reflector._replace({object_key(item.metadata): item for item in items})
        else:
            reflector._apply(line(kind, name=what, uid=uid, resourceVersion=str(version)))
        assert replay == reflector.objects
    assert REGISTRY.get_sample_value("berth_handler_failures_total", {"resource": "configmaps"}) == failures


def bookmark(version: str, **extra: Any) -> bytes:
    metadata = {"resourceVersion": version, "creationTimestamp": None, **extra}
    return msgspec.json.encode(
        {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": metadata, "spec": {"containers": None}}}
    )


@pytest.mark.parametrize("resource", [CONFIGMAPS, PODS], ids=lambda resource: resource.plural)
def test_a_bookmark_moves_the_version_only(closed_client: ApiClient, resource: Any) -> None:
    reflector: Reflector[Any] = Reflector(closed_client, resource)
    seen = followed(reflector)
    reflector._apply(bookmark("41"))
    reflector._apply(bookmark("42", annotations={"k8s.io/initial-events-end": "true"}))
    assert reflector._version == "42"
    assert (seen, reflector.objects) == ([], {})


def test_a_bookmark_behind_the_copy_means_another_history(reflector: Reflector[ConfigMap]) -> None:
    reflector._apply(line("ADDED", resourceVersion="100"))
    with pytest.raises(ApiError, match="the server is at version 99, behind 100") as caught:
        reflector._apply(bookmark("99"))
    assert caught.value.expired


@pytest.mark.parametrize("resource", [CONFIGMAPS, PODS], ids=lambda resource: resource.plural)
def test_an_error_in_the_stream_is_raised(closed_client: ApiClient, resource: Any) -> None:
    reflector: Reflector[Any] = Reflector(closed_client, resource)
    status = {"code": 500, "reason": "InternalError", "message": "etcd", "status": "Failure", "metadata": {}}
    with pytest.raises(ApiError, match="500 InternalError: etcd"):
        reflector._apply(msgspec.json.encode({"type": "ERROR", "object": status}))


@pytest.mark.parametrize(
    "garbage",
    [
        b"not json",
        b"[]",
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":{"metad',
        b'{"type":"NEW","object":{}}',
        b"\xff",
    ],
)
def test_what_is_no_watch_event_is_refused(reflector: Reflector[ConfigMap], garbage: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        reflector._apply(garbage)
    assert reflector.objects == {}


class TestUnreadableObjects:
    """One object with fields of unexpected types is left out, counted and logged; all others go on."""

    def odd(self, kind: str, name: str, version: str) -> bytes:
        metadata = {"name": name, "namespace": "ns", "uid": "u1", "resourceVersion": version}
        return msgspec.json.encode({"type": kind, "object": {"metadata": metadata, "data": ["no", "map"]}})

    def test_new_one_is_left_out(self, reflector: Reflector[ConfigMap], seen: Seen) -> None:
        before = self.count()
        reflector._apply(self.odd("ADDED", "odd", "7"))
        assert (seen, reflector.objects, reflector._version) == ([], {}, "7")
        assert self.count() == before + 1

    def test_known_one_stays_as_it_was(self, reflector: Reflector[ConfigMap], seen: Seen) -> None:
        reflector._apply(line("ADDED"))
        reflector._apply(self.odd("MODIFIED", "a", "8"))
        assert seen == [(ADDED, "a", "u1", "1")]
        assert reflector.objects["ns/a"].metadata.resource_version == "1"
        assert reflector._version == "8"

    def test_its_deletion_counts(self, reflector: Reflector[ConfigMap], seen: Seen) -> None:
        reflector._apply(line("ADDED"))
        reflector._apply(self.odd("DELETED", "a", "9"))
        assert seen == [(ADDED, "a", "u1", "1"), (DELETED, "a", "u1", "1")]
        assert reflector.objects == {}

    @pytest.mark.parametrize("known", [False, True], ids=["unknown", "known"])
    def test_in_a_list(self, reflector: Reflector[ConfigMap], known: bool) -> None:
        if known:
            reflector._apply(line("ADDED"))
        fresh: dict[str, ConfigMap] = {}
        reflector._take(
            msgspec.Raw(msgspec.json.encode(msgspec.json.decode(self.odd("ADDED", "a", "7"))["object"])), fresh
        )
        reflector._take(msgspec.Raw(msgspec.json.encode(msgspec.json.decode(line("ADDED", name="b"))["object"])), fresh)
        assert set(fresh) == ({"ns/a", "ns/b"} if known else {"ns/b"})

    @pytest.mark.parametrize(
        "odd", ["null", "[]", "{}", '{"metadata":null}', '{"metadata":{"name":5}}', '{"metadata":{"namespace":"ns"}}']
    )
    def test_in_a_list_without_a_name(self, reflector: Reflector[ConfigMap], odd: str) -> None:
        before = self.count()
        fresh: dict[str, ConfigMap] = {}
        reflector._take(msgspec.Raw(odd.encode()), fresh)
        assert (fresh, self.count()) == ({}, before + 1)

    @pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
    @pytest.mark.parametrize(
        ("metadata", "version"),
        [
            pytest.param('{"resourceVersion": "6"}', "6", id="with a version"),
            pytest.param('{"namespace": "ns"}', "5", id="without"),
        ],
    )
    def test_in_a_watch_without_a_name(
        self, reflector: Reflector[ConfigMap], kind: str, metadata: str, version: str
    ) -> None:
        reflector._version, before = "5", self.count()
        reflector._apply(f'{{"type": "{kind}", "object": {{"metadata": {metadata}}}}}'.encode())
        assert (reflector.objects, reflector._version, self.count()) == ({}, version, before + 1)

    def count(self) -> float:
        return REGISTRY.get_sample_value("berth_unreadable_objects_total", {"resource": "configmaps"}) or 0.0


DEEP = [{"fieldsV1": msgspec.Raw(b'{"f:a":' * 9000 + b"{}" + b"}" * 9000)}]


def test_an_object_that_is_nested_deeply_is_read_like_any_other(reflector: Reflector[ConfigMap], seen: Seen) -> None:
    for number, kind in enumerate(("ADDED", "MODIFIED", "BOOKMARK", "DELETED"), start=1):
        reflector._apply(line(kind, managedFields=DEEP, resourceVersion=str(number)))
    assert [(kind, version) for kind, _, _, version in seen] == [(ADDED, "1"), (MODIFIED, "2"), (DELETED, "4")]
    assert reflector._version == "4"


def test_objects_that_are_nested_too_deeply_to_be_compared_count_as_changed(closed_client: ApiClient) -> None:
    def deep() -> Pod:
        group: dict[str, Any] = {}
        for _ in range(sys.getrecursionlimit()):
            group = {"f": group}
        return Pod(ObjectMeta(name="a", uid="u1", resource_version="1"), PodSpec(scheduling_group=group))

    reflector = Reflector(closed_client, PODS)
    reflector._replace({"a": deep()})
    seen = followed(reflector)
    reflector._replace({"a": deep()})
    assert seen == [(MODIFIED, "a", "u1", "1")]


def failing(*_: Any) -> None:
    raise KeyError("a bug in a handler")


def test_a_failing_handler_stops_neither_the_others_nor_the_watch(reflector: Reflector[ConfigMap]) -> None:
    labels = {"resource": "configmaps"}
    before = REGISTRY.get_sample_value("berth_handler_failures_total", labels) or 0.0
    batches: list[str] = []
    reflector.add_handler(failing)
    seen = followed(reflector)
    reflector.add_batch_handler(failing)
    reflector.add_batch_handler(lambda: batches.append("batch"))
    reflector._apply(line("ADDED"))
    reflector._end_batch()
    assert seen == [(ADDED, "a", "u1", "1")]
    assert batches == ["batch"]
    assert REGISTRY.get_sample_value("berth_handler_failures_total", labels) == before + 2


def test_one_batch_call_per_list(reflector: Reflector[ConfigMap]) -> None:
    sizes: list[int] = []
    reflector.add_batch_handler(lambda: sizes.append(len(reflector.objects)))
    reflector._replace({f"ns/{name}": config_map(name) for name in "abc"})
    assert sizes == [3]


def test_events_are_counted_by_type_at_the_end_of_a_batch(reflector: Reflector[ConfigMap]) -> None:
    def count(kind: str) -> float:
        return REGISTRY.get_sample_value("berth_watch_events_total", {"resource": "configmaps", "type": kind}) or 0.0

    before = {kind: count(kind) for kind in ("ADDED", "MODIFIED", "BOOKMARK")}
    for each in (
        line("ADDED"),
        line("MODIFIED", resourceVersion="2"),
        line("MODIFIED", resourceVersion="3"),
        bookmark("4"),
    ):
        reflector._apply(each)
    reflector._end_batch()
    reflector._end_batch()
    assert {kind: count(kind) - before[kind] for kind in before} == {"ADDED": 1, "MODIFIED": 2, "BOOKMARK": 1}


def test_a_reflector_that_does_not_run_is_healthy_and_not_synced(closed_client: ApiClient) -> None:
    reflector = Reflector(closed_client, PODS, stale_after=0.0000001)
    assert reflector.age == 0.0
    assert reflector.healthy
    assert not reflector.synced.is_set()


def test_pods_are_decoded_to_their_struct(closed_client: ApiClient) -> None:
    pods: Reflector[Pod] = Reflector(closed_client, PODS)
    body = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
        "spec": {"nodeName": "n1"},
    }
    pods._apply(msgspec.json.encode({"type": "ADDED", "object": body}))
    assert pods.objects["ns/p"].spec.node_name == "n1"

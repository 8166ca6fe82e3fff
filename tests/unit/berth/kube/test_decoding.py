"""Every list, map and struct of every kind may be null, as Go writes what was never made."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from berth.kube import resources
from berth.kube.decoding import MAX_DEPTH, ObjectDecoder, shallow, without_null_fields, without_nulls
from berth.kube.objects import CSINode, Pod
from berth.kube.resources import Resource
from tests.support.documents import CONTAINERS, Path, full, replaced

KINDS = [
    item.type
    for item in vars(resources).values()
    if isinstance(item, Resource) and issubclass(item.type, msgspec.Struct)
]


def containers(value: Any, kind: inspect.Type, at: Path = ()) -> list[Path]:
    """Where the fields are that hold a list, a map or a struct."""
    if isinstance(kind, inspect.UnionType):
        kind = next((one for one in kind.types if isinstance(one, CONTAINERS)), kind.types[0])
    if isinstance(kind, inspect.StructType):
        paths: list[Path] = []
        for field in kind.fields:
            inside = (*at, field.encode_name)
            below = containers(value[field.encode_name], field.type, inside)
            paths += [inside, *below] if isinstance(value[field.encode_name], dict | list) else []
        return paths
    if isinstance(kind, inspect.ListType):
        return containers(value[0], kind.item_type, (*at, 0))
    return []


def without(value: Any, path: Path) -> Any:
    copied: Any = list(value) if isinstance(value, list) else dict(value)
    if len(path) == 1:
        del copied[path[0]]
    else:
        copied[path[0]] = without(copied[path[0]], path[1:])
    return copied


@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_null_reads_as_absent_wherever_a_list_map_or_struct_may_be(data: st.DataObject, kind: type) -> None:
    info = inspect.type_info(kind)
    document = full(info)
    path = data.draw(st.sampled_from(containers(document, info)))
    decoder: ObjectDecoder[Any] = ObjectDecoder(kind)
    nulled = decoder.decode(msgspec.json.encode(replaced(document, path, None)))
    assert nulled == decoder.decode(msgspec.json.encode(without(document, path)))


def test_a_node_without_csi_drivers() -> None:
    line = b'{"metadata":{"name":"n1","ownerReferences":null},"spec":{"drivers":null}}'
    node = ObjectDecoder(CSINode).decode(line)
    assert (node.metadata.name, node.spec.drivers) == ("n1", [])


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(b'{"metadata":{"labels":{"a":null}}}', id="value of a map"),
        pytest.param(b'{"spec":{"containers":[null]}}', id="item of a list"),
        pytest.param(b'{"metadata":{"labels":null},"spec":{"containers":"many"}}', id="wrong type beside a null"),
        pytest.param(b'{"metadata":{"labels":null},"spec":"many"}', id="text for a struct"),
        pytest.param(b"<html>", id="no JSON"),
    ],
)
def test_what_is_wrong_stays_wrong(document: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        ObjectDecoder(Pod).decode(document)


def test_fields_that_nobody_reads_stay_as_they_are() -> None:
    assert without_null_fields({"other": None, "spec": {"nodeName": None, "odd": None}}, Pod) == {
        "other": None,
        "spec": {"odd": None},
    }


TEXTS = st.one_of(st.text(max_size=4), st.sampled_from(['"', "\\", '\\"', "{", "]", '{"a":[', '"]}']))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(TEXTS, inside, max_size=3),
    max_leaves=20,
)


def cut(value: Any, depth: int) -> Any:
    """The same with null for what is nested deeper."""
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        return None
    if isinstance(value, dict):
        return {name: cut(item, depth - 1) for name, item in value.items()}
    return [cut(item, depth - 1) for item in value]


@given(value=VALUES, depth=st.integers(0, 4), ascii_only=st.booleans())
def test_deep_values_are_cut_and_no_others(value: Any, depth: int, ascii_only: bool) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert json.loads(shallow(data, depth)) == cut(value, depth)


@given(data=st.binary(max_size=60), depth=st.integers(0, 3))
def test_what_is_no_json_can_be_cut_too(data: bytes, depth: int) -> None:
    assert len(shallow(data, depth)) <= 5 * len(data)


@pytest.mark.parametrize("depth", [MAX_DEPTH // 2, 9000], ids=["as it is", "as deep as the API server lets it be"])
def test_a_pod_with_deep_metadata_is_read(depth: int) -> None:
    """Whoever may create a pod may state managedFields that are nested like this."""
    nested = b'{"f:a":' * depth + b"{}" + b"}" * depth
    pod = ObjectDecoder(Pod).decode(
        b'{"metadata":{"managedFields":[{"fieldsV1":%s}],"name":"p"},"spec":{"nodeName":"n"}}' % nested
    )
    assert (pod.metadata.name, pod.spec.node_name) == ("p", "n")


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ({"a": None, "b": 1}, {"b": 1}),
        ({"a": {"b": None}, "c": [{"d": None}]}, {"a": {}, "c": [{}]}),
        ([None, 1], [None, 1]),
    ],
    ids=["entry", "nested", "items stay"],
)
def test_null_entries_are_absent(value: Any, result: Any) -> None:
    assert without_nulls(value) == result


def test_what_has_no_nulls_is_not_copied() -> None:
    clean = {"a": [{"b": 1}]}
    mixed = {"clean": clean, "rest": {"gone": None}}
    assert without_nulls(clean) is clean
    assert without_nulls(mixed)["clean"] is clean

"""Objects of our kinds are kept as their JSON: they are many, may be large, and are read once."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import msgspec
import pytest

from berth.kube.custom_object import CustomObject
from berth.kube.decoding import ObjectDecoder

WORKLOADS = [{"workload": {"kind": "Deployment", "name": f"w{n}", "selector": f"w{n}"}} for n in range(5000)]


def line(**fields: Any) -> bytes:
    return msgspec.json.encode({"metadata": {"name": "a", "managedFields": [{"fieldsV1": "f" * 500_000}]}, **fields})


def document(obj: CustomObject) -> dict[str, Any]:
    return obj.document(api_version="v1", kind="AppGroup")


@pytest.mark.parametrize("field", ["spec", "status"])
def test_an_object_takes_the_memory_of_its_json_and_keeps_neither_its_line_nor_its_managed_fields(field: str) -> None:
    data = line(**{field: {"workloads": WORKLOADS}})
    decoder = ObjectDecoder(CustomObject)
    gc.collect()
    tracemalloc.start()
    try:
        kept = decoder.decode(bytes(bytearray(data)))
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < 1.1 * len(msgspec.json.encode(WORKLOADS))
    assert document(kept)[field] == {"workloads": WORKLOADS}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="absent"),
        pytest.param({"spec": None, "status": None}, id="null"),
        pytest.param({"spec": {}, "status": {}}, id="empty"),
    ],
)
def test_what_is_not_stated_reads_as_empty(fields: dict[str, Any]) -> None:
    read = document(ObjectDecoder(CustomObject).decode(line(**fields)))
    assert (read["spec"], read["status"]) == ({}, {})


def test_a_document_has_all_that_the_api_server_shows_but_managed_fields() -> None:
    manifest = {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"n": 1}, "status": {"m": [None, 2.5]}}
    expected = {"apiVersion": "v1", "kind": "AppGroup", **manifest}
    assert document(CustomObject.of(manifest)) == expected
    assert CustomObject.of(manifest) == ObjectDecoder(CustomObject).decode(msgspec.json.encode(manifest))


@pytest.mark.parametrize("field", ["spec", "status"])
def test_a_manifest_whose_parts_are_no_maps_is_refused(field: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=rf"Expected `object`, got `str` - at `\$\.{field}`"):
        CustomObject.of({"metadata": {"name": "a"}, field: "text"})


def test_what_is_nested_too_deeply_is_left_out_of_the_document() -> None:
    deep = CustomObject(spec=msgspec.Raw(b'{"n":1,"f":' + b'{"f":' * 9000 + b"{}" + b"}" * 9001))
    assert document(deep)["spec"]["n"] == 1

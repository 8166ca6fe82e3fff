"""Items that a field manager owns, as the API server states them and as anybody may."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.managed_fields import owned_items

OWNED: dict[str, Any] = {"f:name": {}, "f:socket": {}}


def entry(fields: object) -> dict[str, Any]:
    return {"manager": "somebody", "fieldsV1": {"f:spec": {"f:items": fields}}}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param(entry({}), {}, id="no items"),
        pytest.param(entry({'k:{"name":"a"}': OWNED}), {"a": OWNED}, id="an item"),
        pytest.param(
            entry({'k:{"name":"a"}': OWNED, 'k:{"name":"b"}': {".": {}}}), {"a": OWNED, "b": {".": {}}}, id="two"
        ),
        pytest.param(entry({'k:{"name":"a","port":1}': {}}), {"a": {}}, id="told apart by more"),
        pytest.param(entry({".": {}, "f:name": {}, 'v:"a"': {}}), {}, id="the list itself, fields, values"),
        pytest.param({"fieldsV1": None}, {}, id="fields are null"),
        pytest.param({"fieldsV1": {"f:spec": None}}, {}, id="a field is null"),
        pytest.param({"fieldsV1": {"f:spec": ["f:items"]}}, {}, id="a field is a list"),
        pytest.param({"fieldsV1": "f:spec"}, {}, id="fields are a text"),
        pytest.param(entry({'k:{"name":"a"}': None}), {"a": {}}, id="what is owned of it is null"),
        pytest.param(entry({"k:": {}, "k:nothing": {}, 'k:{"name"': {}}), {}, id="keys are no JSON"),
        pytest.param(entry({"k:" + "[" * 5000 + "]" * 5000: {}}), {}, id="keys are nested deeply"),
        pytest.param(entry({"k:5": {}, "k:null": {}, 'k:"name"': {}, 'k:["name"]': {}}), {}, id="keys are no object"),
        pytest.param(
            entry({'k:{"name":5}': {}, 'k:{"name":null}': {}, 'k:{"name":["a"]}': {}, 'k:{"name":{}}': {}, "k:{}": {}}),
            {},
            id="the key is no text",
        ),
    ],
)
def test_items(entry: dict[str, Any], expected: dict[str, Any]) -> None:
    assert owned_items(entry, "spec", "items", key="name") == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["f:spec", "f:items", 'k:{"name":"a"}', 'k:{"name":[]}', "k:x"]), inner)
    ),
    max_leaves=8,
)


@given(JSON)
def test_whatever_is_stated_there_are_texts_with_fields(fields: object) -> None:
    found = owned_items({"fieldsV1": fields}, "spec", "items", key="name")
    assert set(found) <= {"a"}
    assert all(isinstance(owned, dict) for owned in found.values())

"""What requests send; that the API server takes it: tests/integration/test_kube_client.py."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.request import APPLY_PATCH, Request
from berth.kube.resources import CONFIGMAPS

special = st.sampled_from("\x7f\x85\x9b\u2028\ufeff\uffff\\")
texts = st.text(special | st.characters(exclude_categories=["Cs"]), max_size=20)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts,
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(texts, parts, max_size=4),
    max_leaves=10,
)


def encoded(body: Any) -> bytes | None:
    return Request("PATCH", CONFIGMAPS, "/", body, APPLY_PATCH).encoded()


@given(documents.filter(lambda document: document is not None))
def test_what_is_applied_is_the_same_as_yaml_and_as_json(body: Any) -> None:
    data = encoded(body)
    assert data is not None
    assert json.loads(data) == body
    assert yaml.load(data, Loader=yaml.CSafeLoader) == body


def test_nothing_is_sent_of_no_body() -> None:
    assert encoded(None) is None

"""Interference classes, and how labels state them."""

from __future__ import annotations

import pytest

from berth.api.interference import InterferenceClass, StatedClass, stated_class

A, B, C, D = InterferenceClass
OURS = "berth.dev/interference-class"


@pytest.mark.parametrize(
    ("name", "sensitive", "contentious"),
    [("A", False, False), ("B", True, False), ("C", False, True), ("D", True, True)],
)
def test_properties(name: str, sensitive: bool, contentious: bool) -> None:
    found = InterferenceClass.of(sensitive=sensitive, contentious=contentious)
    assert found == name
    assert (found.sensitive, found.contentious) == (sensitive, contentious)


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        pytest.param({}, None, id="no labels"),
        pytest.param({"app": "A"}, None, id="other labels"),
        pytest.param({OURS: "B"}, B, id="letter"),
        pytest.param({OURS: "catB"}, B, id="category's value"),
        pytest.param({"category": "catD"}, D, id="category"),
        pytest.param({"category": "books"}, None, id="somebody else's category"),
        pytest.param({"category": "A"}, None, id="somebody else's, of one letter"),
        pytest.param({"category": "catE"}, None, id="somebody else's, nearly ours"),
        pytest.param({OURS: "C", "category": "catC"}, C, id="both alike"),
        pytest.param({OURS: "C", "category": "food"}, C, id="and somebody else's"),
    ],
)
def test_labels(labels: dict[str, str], found: InterferenceClass | None) -> None:
    assert stated_class(labels) == StatedClass(found)


@pytest.mark.parametrize(
    ("labels", "key", "found"),
    [
        pytest.param({"tier": "A", OURS: "B"}, "tier", A, id="another label in its place"),
        pytest.param({"category": "A"}, "category", A, id="letters in category"),
        pytest.param({"category": "catA"}, "category", A, id="category itself"),
        pytest.param({OURS: "B"}, "tier", None, id="ours no longer"),
    ],
)
def test_configured_key(labels: dict[str, str], key: str, found: InterferenceClass | None) -> None:
    assert stated_class(labels, key) == StatedClass(found)


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        pytest.param({OURS: "E"}, f'labels.{OURS}: "E" is no interference class', id="no such class"),
        pytest.param({OURS: "a"}, '"a" is no interference class', id="small letter"),
        pytest.param({OURS: ""}, '"" is no interference class', id="empty"),
        pytest.param({OURS: "ABC"}, "write one of A, B, C, D", id="several"),
        pytest.param({OURS: "x", "category": "catA"}, '"x" is no interference class', id="none, and another label"),
        pytest.param({OURS: "A", "category": "catB"}, "A here and B in the label category are two", id="two classes"),
    ],
)
def test_what_cannot_be_read_is_no_class_and_told(labels: dict[str, str], text: str) -> None:
    found = stated_class(labels)
    assert found.interference_class is None
    assert text in str(found.problem)
    assert "as no label; " in str(found.problem), "a WorkloadProfile may state a class all the same"


def test_a_long_value_is_not_repeated_in_full() -> None:
    assert len(str(stated_class({OURS: "A" * 10_000}).problem)) < 300

"""Terms are found by the pods that they may select, and by hardly any other."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects import PodAffinityTerm
from berth.scheduling.cache.term_index import TermIndex
from berth.scheduling.cache.terms import AffinityTerm, compile_affinity_term
from tests.support.builders import pod_term, requirement


def compiled(**fields: Any) -> AffinityTerm:
    term = msgspec.convert(pod_term("zone", **fields), PodAffinityTerm)
    return compile_affinity_term(term, namespace="own", labels={}, where=("t",))


def indexed(*terms: AffinityTerm) -> TermIndex:
    index = TermIndex()
    for term in terms:
        index.count(term, 0, 1)
    return index


def matching(*requirements: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(requirements)}


APP = {"labelSelector": {"matchLabels": {"app": "x"}}}
ALL: dict[str, Any] = {"namespaceSelector": {}}
MANY = [f"n{number}" for number in range(17)]


@pytest.mark.parametrize(
    ("fields", "labels", "found_in"),
    [
        pytest.param(APP, {"app": "x"}, {"own"}, id="own-namespace"),
        pytest.param(APP, {"app": "y"}, set(), id="other-label"),
        pytest.param(APP | {"namespaces": ["red", "n1"]}, {"app": "x"}, {"red", "n1"}, id="named"),
        pytest.param(APP | {"namespaces": MANY}, {"app": "x"}, {"own", "red", "n1"}, id="many-named"),
        pytest.param(APP | {"namespaces": MANY}, {"app": "y"}, set(), id="many-named-other-label"),
        pytest.param(APP | ALL, {"app": "x"}, {"own", "red", "n1"}, id="every-namespace"),
        pytest.param(APP | ALL, {"app": "y"}, set(), id="every-namespace-other-label"),
        pytest.param(
            APP | {"namespaceSelector": {"matchLabels": {"team": "red"}}}, {"app": "x"}, {"red"}, id="selected"
        ),
        pytest.param(
            APP | {"namespaceSelector": matching(requirement("team", "Exists"))}, {"app": "x"}, {"red"}, id="with-label"
        ),
        pytest.param(
            APP | {"namespaceSelector": matching(requirement("team", "NotIn", ["red"]))},
            {"app": "x"},
            {"own", "red", "n1"},
            id="negation-is-looked-at",
        ),
        pytest.param(
            APP | {"namespaces": ["n1"], "namespaceSelector": {"matchLabels": {"team": "red"}}},
            {"app": "x"},
            {"red", "n1"},
            id="named-or-selected",
        ),
        pytest.param({}, {"app": "x"}, set(), id="no-pods"),
        pytest.param({"labelSelector": {}}, {}, {"own"}, id="all-pods"),
        pytest.param({"labelSelector": matching(requirement("app", "Exists"))}, {"app": "y"}, {"own"}, id="with-key"),
        pytest.param({"labelSelector": matching(requirement("app", "Exists"))}, {"b": "y"}, set(), id="without-key"),
        pytest.param(
            {"labelSelector": matching(requirement("app", "In", ["x", "y"]))}, {"app": "y"}, {"own"}, id="one-of"
        ),
        pytest.param(
            {"labelSelector": matching(requirement("app", "In", MANY))}, {"app": "z"}, {"own"}, id="one-of-many"
        ),
    ],
)
def test_where_a_term_is_found(fields: dict[str, Any], labels: dict[str, str], found_in: set[str]) -> None:
    index = indexed(compiled(**fields))
    namespaces: dict[str, dict[str, str]] = {"own": {}, "red": {"team": "red"}, "n1": {"other": "red"}}
    found = {name for name, its in namespaces.items() if len(index.about(name, its, labels.items())) == 1}
    assert found == found_in


@pytest.mark.parametrize(
    "where",
    [
        pytest.param(ALL, id="every-namespace"),
        pytest.param({"namespaces": MANY}, id="many-namespaces"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "red"}}}, id="selected-namespaces"),
    ],
)
def test_terms_of_a_tenant_cost_others_nothing_however_many(where: dict[str, Any]) -> None:
    """The label that all of them ask for is passed over for the one that few do."""
    index = indexed(
        *(compiled(**where, labelSelector={"matchLabels": {"app": "x", "set": f"s{number}"}}) for number in range(100))
    )
    labels = {"team": "red"}
    assert len(index.about("n1", labels, {"app": "y"}.items())) == 0
    assert len(index.about("n1", labels, {"app": "x", "set": "other"}.items())) <= 1
    assert len(index.about("n1", labels, {"app": "x", "set": "s7"}.items())) in (1, 2)


def test_equal_terms_are_one_as_long_as_they_have_owners() -> None:
    index = indexed(compiled(**APP | ALL), compiled(**APP | ALL))
    (entry,) = index
    assert (len(index), entry.pods, index.get(entry.term)) == (1, {0: 2}, entry)
    index.count(entry.term, 0, -1)
    assert entry in index.about("any", {}, [("app", "x")])
    index.count(entry.term, 0, -1)
    assert (len(index), index.get(entry.term)) == (0, None)
    assert not index.about("any", {}, [("app", "x")])


KEYS, VALUES = st.sampled_from(["k", "l"]), st.sampled_from(["1", "2"])
LABELS = st.dictionaries(KEYS, VALUES, max_size=2)
REQUIREMENTS = st.one_of(
    st.builds(requirement, KEYS, st.sampled_from(["In", "NotIn"]), st.lists(VALUES, min_size=1, max_size=2)),
    st.builds(requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)
SELECTORS = st.none() | st.lists(REQUIREMENTS, max_size=3).map(lambda items: {"matchExpressions": items})
NAMESPACES = st.lists(st.sampled_from(["a", "b", *MANY]), unique=True)
TERMS = st.builds(
    lambda namespaces, selected, selector: compiled(
        namespaces=namespaces, namespaceSelector=selected, labelSelector=selector
    ),
    NAMESPACES,
    SELECTORS,
    SELECTORS,
)


@given(st.lists(TERMS, max_size=8), st.sets(st.integers(0, 7)), st.sampled_from(["a", "b", "n1"]), LABELS, LABELS)
def test_every_term_that_selects_a_pod_is_found(
    terms: list[AffinityTerm], gone: set[int], namespace: str, its_labels: dict[str, str], labels: dict[str, str]
) -> None:
    index = indexed(*terms)
    for number in gone & set(range(len(terms))):
        index.count(terms[number], 0, -1)
    left = {term for number, term in enumerate(terms) if number not in gone}
    assert {entry.term for entry in index} == left
    found = {entry.term for entry in index.about(namespace, its_labels, labels.items())}
    assert found <= left
    assert {term for term in found if term.matches(namespace, labels, its_labels)} == {
        term for term in left if term.matches(namespace, labels, its_labels)
    }
    for entry in list(index):
        index.count(entry.term, 0, -entry.pods[0])
    assert not index._kept

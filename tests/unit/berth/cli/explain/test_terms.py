"""Terms of decisions in words."""

from __future__ import annotations

import pytest

from berth.cli.explain.tables import pod_page
from berth.cli.explain.terms import meanings
from berth.scheduling.decision import Alternative
from tests.support.explanations import decided, explained, pod

TERMS = {"network": 0.52, "survival": 0.33, "load": 0.0, "rules": 2.5, "NodeAffinity": 1.0}


@pytest.mark.parametrize(
    ("strategy", "term", "words"),
    [
        ("replicas", "network", "what its calls cost, as Services route them"),
        ("replicas", "survival", "a single node or zone"),
        ("replicas", "load", "unevenly"),
        ("replicas", "rules", "preferred (anti-)affinity"),
        ("replicas", "scores", "points of plugins"),
        ("berth", "network", "pods that it talks to"),
        ("berth", "price", "price of what the pod requests"),
        ("phare", "bandwidth", "price of the bandwidth"),
        ("berth", "Battery", "what plugin Battery charges"),
        ("alone", "TaintToleration", "points of plugin TaintToleration"),
    ],
)
def test_a_term_in_words(strategy: str, term: str, words: str) -> None:
    [(name, meaning)] = meanings(strategy, {term: 1.0})
    assert name == term
    assert words in meaning
    assert not meaning.endswith(".")


def test_only_what_counts_here_is_explained_the_largest_first() -> None:
    assert [name for name, _ in meanings("replicas", TERMS)] == ["rules", "NodeAffinity", "network", "survival"]


@pytest.mark.parametrize("width", [80, 100])
def test_the_page_of_a_pod_says_what_its_terms_are(width: int) -> None:
    others = (Alternative("n2", 6.4, {**TERMS, "network": 2.57}), Alternative("n3", 7.0, {**TERMS, "load": 2.5}))
    subject = decided(pod(on="n1"), strategy="replicas", value=4.35, terms=TERMS, runner_ups=others)
    page = pod_page(explained(subject), width=width)
    assert max(map(len, page.splitlines())) <= width
    text = " ".join(page.split())
    for wanted in ("in units of network cost", "a single node or zone", "unevenly", "2.57", "what plugin NodeAffinity"):
        assert wanted in text


def test_scores_have_points() -> None:
    subject = decided(pod(on="n1"), strategy="alone", planned_with=1, runner_ups=(), terms={"NodeAffinity": 200.0})
    page = pod_page(explained(subject), width=100)
    assert "points of plugin NodeAffinity" in page
    assert "units of network cost" not in page


@pytest.mark.parametrize(
    ("strategy", "feasible", "wanted"),
    [
        ("replicas", 1, "no other node was feasible"),
        ("replicas", 4, "the next best nodes are not known: of a large plan some pods have none"),
        ("berth", 4, "no other node was feasible"),
    ],
)
def test_why_there_is_no_runner_up(strategy: str, feasible: int, wanted: str) -> None:
    subject = decided(pod(on="n1"), strategy=strategy, runner_ups=(), feasible=feasible)
    assert wanted in pod_page(explained(subject), width=100)

"""Anti-affinity beside the judge's loops over pods."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.judge import Judge
from berth.scheduling.replicas.rule import AntiAffinity
from tests.support.counts import books_of, seeds_of, state_of, walk, with_rules

SOFT = seeds_of(AntiAffinity, required=False)
HARD = seeds_of(AntiAffinity, required=True)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SOFT))
def test_soft_rules_cost_what_they_cost_pod_by_pod(seed: int) -> None:
    asked = with_rules(seed, AntiAffinity, required=False)
    books = books_of(asked)
    walk(books, np.random.default_rng(seed), 8)
    state = state_of(books)
    expected = sum(part.value(state) for part in Judge(asked).parts if part.name == "anti-affinity")
    assert sum(term.value() for term in books.rules) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(HARD))
def test_a_mask_keeps_exactly_what_breaks_nothing(seed: int) -> None:
    asked = with_rules(seed, AntiAffinity, required=True)
    books, judge = books_of(asked), Judge(asked)
    rng = np.random.default_rng(seed)
    for row in rng.permutation(len(asked.pod_sets)).tolist():
        able = books.can(row)
        for node in range(books.model.size):
            books.insert(row, node)
            broken = set(judge.broken(state_of(books))) & {"anti-affinity", "room", "mask"}
            books.remove(row, node)
            assert bool(able[node]) is not bool(broken)
        if able.any():
            books.insert(row, int(rng.choice(np.flatnonzero(able))))

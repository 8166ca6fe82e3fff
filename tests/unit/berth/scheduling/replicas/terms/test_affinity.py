"""Preferred affinity beside the judge's loops over pods."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.judge import Judge
from berth.scheduling.replicas.rule import Affinity
from tests.support.counts import books_of, seeds_of, state_of, walk, with_rules

SOFT = seeds_of(Affinity, required=False)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SOFT))
def test_soft_rules_cost_what_they_cost_pod_by_pod(seed: int) -> None:
    asked = with_rules(seed, Affinity, required=False)
    books = books_of(asked)
    walk(books, np.random.default_rng(seed), 8)
    state = state_of(books)
    expected = sum(part.value(state) for part in Judge(asked).parts if part.name == "affinity")
    assert sum(term.value() for term in books.rules) == pytest.approx(expected, rel=1e-9, abs=1e-9)

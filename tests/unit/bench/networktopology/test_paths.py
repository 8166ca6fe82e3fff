"""Both kinds of graphs: those whose paths are computed, and those with too many."""

from __future__ import annotations

import pytest

from bench.networktopology.paths import graph, measure
from controllers.networktopology import graph as limits


@pytest.mark.parametrize(("steps", "computed"), [(1_000_000, True), (2_000, False)], ids=["computed", "too many"])
def test_measure(monkeypatch: pytest.MonkeyPatch, steps: int, computed: bool) -> None:
    monkeypatch.setattr(limits, "MAX_STEPS", 1_000_000)
    made = graph(520, 1040, seed=1)
    assert len(list(made.links())) == 1040
    monkeypatch.setattr(limits, "MAX_STEPS", steps)
    found = measure(520, 1040, seed=1)
    assert (found.places, found.links, found.computed) == (520, 1040, computed)
    assert found.spent > 0
    assert found.every > 0

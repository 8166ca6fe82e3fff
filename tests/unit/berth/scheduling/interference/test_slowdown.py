"""The slowdown model: the measured table first, its means where a pair is missing, classes otherwise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.slowdown import CLASS_EXCESS, SlowdownModel, Workload, harm

A, B, C, D = InterferenceClass
CACHE, REPORT, SEARCH, STRANGER = Workload("cache", A), Workload("report", D), Workload("search", B), Workload("new", C)
MODEL = SlowdownModel({"cache": {"report": 1.1, "search": 1.0}, "report": {"cache": 1.3}, "search": {"report": 1.5}})
CLASSED = st.builds(Workload, st.sampled_from(["cache", "report", "search", "new"]), st.sampled_from(InterferenceClass))


@pytest.mark.parametrize(
    ("victim", "neighbour", "excess"),
    [
        pytest.param(CACHE, REPORT, 0.1, id="measured"),
        pytest.param(REPORT, CACHE, 0.3, id="measured the other way round"),
        pytest.param(CACHE, CACHE, (0.05 + 0.3) / 2, id="two of the same: half of what it suffers and causes"),
        pytest.param(SEARCH, CACHE, (0.5 + 0.3) / 2, id="a pair that was not measured"),
        pytest.param(STRANGER, REPORT, CLASS_EXCESS[False, True], id="unknown victim: class"),
        pytest.param(REPORT, STRANGER, CLASS_EXCESS[True, True], id="unknown neighbour: class"),
    ],
)
def test_excess_of_a_pair(victim: Workload, neighbour: Workload, excess: float) -> None:
    assert MODEL.excess(victim, neighbour) == pytest.approx(excess)


@pytest.mark.parametrize("victim", InterferenceClass)
@pytest.mark.parametrize("neighbour", InterferenceClass)
def test_without_a_table_who_breaks_the_limit_is_the_sensitive_beside_the_contentious(
    victim: InterferenceClass, neighbour: InterferenceClass
) -> None:
    excess = SlowdownModel().excess(Workload("", victim), Workload("", neighbour))
    assert (excess > 0.2) == (victim.sensitive and neighbour.contentious)


def test_several_neighbours_add_up() -> None:
    assert MODEL.slowdowns([CACHE, REPORT, SEARCH]) == pytest.approx([1.1, 1.3 + 0.3, 1.5 + 0.4], abs=0.2)
    assert MODEL.slowdowns([CACHE, REPORT, REPORT])[0] == pytest.approx(1.2)
    assert MODEL.slowdowns([CACHE]) == [1]


@given(st.lists(CLASSED, max_size=5), st.randoms())
def test_the_harm_of_a_socket_does_not_depend_on_the_order(residents: list[Workload], random: object) -> None:
    assert MODEL.harm(residents) == pytest.approx(MODEL.harm(residents[::-1]))
    assert len(MODEL.slowdowns(residents)) == len(residents)


@pytest.mark.parametrize(
    ("slowdown", "counts"), [(0.98, -0.02), (1, 0), (1.1, 0.1), (1.11, 0.61), (1.2, 0.7), (1.21, 2.71), (2, 3.5)]
)
def test_each_limit_that_is_broken_is_a_step(slowdown: float, counts: float) -> None:
    assert harm(slowdown) == pytest.approx(counts)


@pytest.mark.parametrize("letter", InterferenceClass)
def test_workloads_of_other_namespaces_go_by_class_alone(letter: InterferenceClass) -> None:
    own, other = Workload("mine/web", letter), Workload("other/db", D)
    model = SlowdownModel({"mine/web": {"mine/web": 1.9}, "other/db": {"other/db": 1.0}})
    assert model.excess(own, other) == SlowdownModel().excess(Workload("", letter), Workload("", D))
    assert model.excess(other, own) == SlowdownModel().excess(Workload("", D), Workload("", letter))
    assert model.excess(own, own) == pytest.approx(0.9)


TABLES = st.dictionaries(
    st.sampled_from(["a/one", "a/two", "b/one"]),
    st.dictionaries(
        st.sampled_from(["a/one", "a/two", "b/one", "b/two"]), st.sampled_from([1.0, 1.2, 1.7]), min_size=1
    ),
)


@given(TABLES, TABLES)
def test_a_part_of_the_model_says_the_same_and_keeps_to_it(
    before: dict[str, dict[str, float]], after: dict[str, dict[str, float]]
) -> None:
    model = SlowdownModel(before)
    names = ["a/one", "b/one", "b/two"]
    pairs = [(Workload(victim, D), Workload(neighbour, C)) for victim in names for neighbour in names]
    said = [model.excess(*pair) for pair in pairs]
    part = model.among(names)
    for name in before.keys() | after.keys():
        model.state(name, after.get(name, {}))
    assert [part.excess(*pair) for pair in pairs] == said

"""What placed pods were admitted with: written with the Binding, read back by the next controller."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.network.admitted import (
    MAX_DEPENDENCIES,
    MAX_LENGTH,
    Admitted,
    Callers,
    read_admitted,
    stated,
    write_admitted,
)
from berth.network.groups import MAX_EDGE_BANDWIDTH, read_group
from berth.network.members import Member
from tests.support import kinds
from tests.support.placement import group_object

KEY = "berth.dev/admitted-bandwidth"


@pytest.mark.parametrize(
    ("workload", "admitted"),
    [
        pytest.param("a", (("b", 7), ("c", 10**12)), id="each-dependency-at-most-1T"),
        pytest.param("b", (), id="a-dependency-without-demand"),
        pytest.param("c", (), id="no-dependency"),
        pytest.param("x", (), id="no-workload-of-the-group"),
    ],
)
def test_what_the_appgroup_states(workload: str, admitted: Admitted) -> None:
    first = kinds.workload("a", "c", minBandwidth="1e30")
    first["dependencies"] += kinds.workload("a", "b", minBandwidth="7")["dependencies"]
    shop = read_group(group_object("shop", first, kinds.workload("b", "c"), kinds.workload("c")))
    assert stated(shop, workload) == admitted


def test_without_its_appgroup_nothing_is_stated() -> None:
    assert stated(None, "a") == ()


@given(st.dictionaries(st.text(min_size=1, max_size=20), st.integers(1, MAX_EDGE_BANDWIDTH), max_size=20))
def test_what_is_written_is_read(amounts: dict[str, int]) -> None:
    admitted = tuple(sorted(amounts.items()))
    assert read_admitted({KEY: write_admitted(admitted)}) == admitted


@pytest.mark.parametrize(
    ("text", "admitted"),
    [
        pytest.param(None, None, id="none: bound by another scheduler"),
        pytest.param("", None, id="empty"),
        pytest.param("{", None, id="no-json"),
        pytest.param("[]", None, id="no-object"),
        pytest.param('{"b": "7"}', None, id="a-text"),
        pytest.param('{"b": 1.5}', None, id="a-fraction"),
        pytest.param('{"b": NaN}', None, id="no-number"),
        pytest.param('{"b": null}', None, id="null"),
        pytest.param("{}", (), id="nothing-was-admitted"),
        pytest.param('{"b": 7}', (("b", 7),), id="one"),
        pytest.param('{"c": 1, "b": 7}', (("b", 7), ("c", 1)), id="in-order"),
        pytest.param('{"b": -7, "c": 0}', (), id="nobody-gives-bandwidth-to-others"),
        pytest.param('{"b": 1000000000001}', (("b", 10**12),), id="forged-above-the-bound"),
        pytest.param('{"b": 9223372036854775808}', (("b", 10**12),), id="forged-beyond-64-bits"),
        pytest.param('{"b": 1' + 15_000 * "0" + "}", None, id="forged-beyond-any-number"),
        pytest.param(json.dumps({str(n): n + 1 for n in range(10_000)}), None, id="forged-too-long"),
        pytest.param(json.dumps(dict.fromkeys(map(str, range(129)), 7)), None, id="forged-too-many"),
    ],
)
def test_what_is_read_of_an_annotation(text: str | None, admitted: Admitted | None) -> None:
    assert read_admitted({} if text is None else {KEY: text}) == admitted


@pytest.mark.parametrize(
    ("count", "digits", "kept"),
    [
        pytest.param(MAX_DEPENDENCIES, 1, True, id="as-many-as-are-kept"),
        # Short ones take a hundred times their length in memory, for every pod.
        pytest.param(MAX_DEPENDENCIES + 1, 1, False, id="too-many"),
        pytest.param(MAX_DEPENDENCIES, MAX_LENGTH // MAX_DEPENDENCIES, False, id="too-long"),
    ],
)
def test_too_much_is_neither_written_nor_read(count: int, digits: int, kept: bool) -> None:
    admitted = tuple((f"{number:0{digits}}", 1) for number in range(count))
    assert bool(write_admitted(tuple(sorted(admitted)))) is kept
    assert (read_admitted({KEY: json.dumps(dict(admitted))}) is not None) is kept


def test_callers_are_counted_where_they_are() -> None:
    callers = Callers()
    pods = [
        Member(f"u{number}", f"default/p{number}", "a", node, admitted)
        for number, (node, admitted) in enumerate([("n1", None), ("n1", None), ("n2", ()), ("n2", None), ("", None)])
    ]
    for pod in pods:
        callers.add(pod)
    assert list(callers) == ["a"]
    assert callers.of("a") == {None: {"n1": 2, "n2": 1}, (): {"n2": 1}}
    assert callers.of("b") == {}
    for pod in pods:
        callers.remove(pod)
    assert list(callers) == []


def test_callers_of_a_workload_by_what_they_need() -> None:
    shop = read_group(group_object("shop", kinds.workload("a", "b", minBandwidth="7"), kinds.workload("b", "b")))
    kinds_of_pods = [("a", None), ("a", ()), ("a", (("b", 5),)), ("x", (("b", 3),)), ("b", (("b", 9),))]
    pods = [
        Member(f"u{number}", f"default/p{number}", workload, f"n{number}", admitted)
        for number, (workload, admitted) in enumerate(kinds_of_pods)
    ]
    callers = Callers()
    for pod in pods:
        callers.add(pod)
    needs = [("a", 5, {"n2": 1}), ("x", 3, {"n3": 1})]
    assert list(callers.towards(None, "b")) == needs
    assert list(callers.towards(shop, "b")) == [*needs, ("a", 7, {"n0": 1})]
    for pod in pods:
        callers.remove(pod)
    assert list(callers.towards(shop, "b")) == []

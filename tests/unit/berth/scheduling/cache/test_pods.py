"""Indices over the pods on nodes: ports, disks, claims and labels, counted per node slot."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects import LabelSelector, LabelSelectorRequirement, Pod
from berth.scheduling.cache.pod_templates import PodTemplateCache
from berth.scheduling.cache.pods import PodIndex
from berth.scheduling.cache.selectors import compile_selector
from tests.support.builders import pod

TEMPLATES = PodTemplateCache()


def count(index: PodIndex, item: Pod, slot: int = 0, sign: int = 1) -> None:
    index.add(TEMPLATES.template(item), slot, sign, terminating=False)


@pytest.mark.parametrize(
    ("used", "wanted", "conflicts"),
    [
        pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True, id="same"),
        pytest.param(("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True, id="any-is-used"),
        pytest.param(("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True, id="any-is-wanted"),
        pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False, id="other-address"),
        pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.1", "UDP", 80), False, id="other-protocol"),
        pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 81), False, id="other-port"),
    ],
)
def test_ports(used: tuple[str, str, int], wanted: tuple[str, str, int], conflicts: bool) -> None:
    index = PodIndex()
    address, protocol, number = used
    port = {"hostIP": address, "protocol": protocol, "hostPort": number, "containerPort": 1}
    user = msgspec.convert({"spec": {"containers": [{"name": "main", "ports": [port]}]}}, Pod)
    count(index, user, slot=3)
    assert list(index.port_conflicts(wanted)) == ([{3: 1}] if conflicts else [])
    count(index, user, slot=3, sign=-1)
    assert list(index.port_conflicts(wanted)) == []


@pytest.mark.parametrize(("one", "other", "conflicts"), [(True, True, False), (True, False, True), (False, True, True)])
def test_disks_are_shared_by_readers_only(one: bool, other: bool, conflicts: bool) -> None:
    index = PodIndex()
    template = TEMPLATES.template(pod("p"))
    for sign, found in ((1, [{2: 1}] if conflicts else []), (-1, [])):
        index.add(template, 2, sign, terminating=False, disks=((("iscsi", "d"), one),))
        assert list(index.disk_conflicts((("iscsi", "d"), other))) == found


LABELS = st.dictionaries(st.sampled_from("kl"), st.sampled_from("12"), max_size=2)


@given(
    st.lists(st.tuples(LABELS, st.integers(0, 3)), max_size=8),
    st.sampled_from([("In", ["1"]), ("In", ["1", "2"]), ("NotIn", ["1"]), ("Exists", []), ("DoesNotExist", [])]),
)
def test_matching_finds_the_pods_that_the_selector_selects(
    pods: list[tuple[dict[str, str], int]], rule: tuple[str, list[str]]
) -> None:
    index = PodIndex()
    for number, (labels, slot) in enumerate(pods):
        count(index, pod(f"p{number}", labels=labels), slot)
    count(index, pod("foreign", namespace="other", labels={"k": "1"}))
    selector = compile_selector(LabelSelector(match_expressions=[LabelSelectorRequirement("k", *rule)]))
    expected = [sum(1 for labels, on in pods if on == slot and selector.matches(labels)) for slot in range(4)]
    assert index.count(index.matching("default", selector), 4).tolist() == expected


class CountedLabel(str):
    """A label key that counts how often it is hashed."""

    __slots__ = ()
    hashes = 0

    def __hash__(self) -> int:
        CountedLabel.hashes += 1
        return super().__hash__()


def test_a_pod_of_many_labels_takes_work_for_each_of_them_and_not_for_each_pair() -> None:
    """A running pod of 20,000 labels, which anybody may create, held everything up for ten seconds."""
    labels: dict[str, str] = {CountedLabel(f"l{number}"): "v" for number in range(1000)}
    template = TEMPLATES.template(pod("p", labels=labels))
    index = PodIndex()
    count(index, pod("q"))  # without it the whole namespace is dropped at once
    CountedLabel.hashes = 0
    for sign in (1, -1):
        index.add(template, 0, sign, terminating=False)
    assert 0 < CountedLabel.hashes < 20 * len(labels)

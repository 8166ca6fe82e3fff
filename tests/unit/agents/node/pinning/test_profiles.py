"""Which class a pod has by WorkloadProfiles: those of its namespace that are about its workload, and no others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.node.pinning.profiles import Profile, ProfiledClasses
from berth.kube.decoding import ObjectDecoder
from berth.kube.objects import CustomObject
from berth.kube.owners import owner_of
from berth.scheduling.cache.workload_profiles import WorkloadProfiles
from tests.support.sockets import owned, workload_profile

DECODER = ObjectDecoder(Profile)


def profile(name: str, letter: Any, *, target: str = "web", namespace: str = "default") -> Profile:
    found = document(workload_profile(name, letter, target=target, slowdowns={"db": "1.5"}))
    found["metadata"]["namespace"] = namespace
    return DECODER.decode(msgspec.json.encode(found))


def document(obj: CustomObject) -> dict[str, Any]:
    return obj.document(api_version="berth.dev/v1alpha1", kind="WorkloadProfile")


@pytest.mark.parametrize(
    ("there", "letter"),
    [
        pytest.param([], None, id="no profile"),
        pytest.param([profile("web", "D")], "D", id="about its workload"),
        pytest.param([profile("any", "D")], "D", id="of whatever name"),
        pytest.param([profile("web", "D", target="db")], None, id="of its name about another workload"),
        pytest.param([profile("web", "D", namespace="theirs")], None, id="of another namespace"),
        pytest.param([profile("web", "E")], None, id="with what is no class"),
        pytest.param([profile("b", "D"), profile("a", "C")], "C", id="of two the first by name"),
        pytest.param([profile("b", "D"), profile("a", "E")], "D", id="of two the one that can be read"),
    ],
)
def test_the_class_of_a_pod(there: list[Profile], letter: str | None) -> None:
    classes = ProfiledClasses()
    for each in there:
        classes.changed(None, each)
    assert classes.of(owned("p", "web")) == letter
    for each in there:
        classes.changed(each, None)
    assert classes.of(owned("p", "web")) is None
    assert classes.of(owned("p", "")) is None


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["A", "D", "E", None]), st.sampled_from("xy")))


@given(STEPS)
def test_it_is_the_class_by_which_pods_are_placed(steps: list[tuple[str, str | None, str]]) -> None:
    classes, placed = ProfiledClasses(), WorkloadProfiles()
    there: dict[str, tuple[Profile, CustomObject]] = {}
    for name, letter, target in steps:
        old, obj = there.pop(name, (None, None))
        if letter is None:
            classes.changed(old, None)
            if obj is not None:
                placed.delete(obj)
            continue
        there[name] = profile(name, letter, target=target), workload_profile(name, letter, target=target)
        classes.changed(old, there[name][0])
        placed.update(there[name][1])
    for workload in "xy":
        pod = owned("p", workload)
        about = placed.about(owner_of(pod))
        assert classes.of(pod) == (about.interference_class if about else None)

"""WorkloadProfiles by workload."""

from __future__ import annotations

import pytest

from berth.kube.objects import CustomObject, OwnerReference
from berth.scheduling.cache import workload_profiles
from berth.scheduling.cache.socket_reading import Profile, read_profile
from berth.scheduling.cache.workload_profiles import WorkloadProfiles, owner_of
from tests.support import builders
from tests.support.sockets import owned, workload_profile


@pytest.mark.parametrize(
    ("kind", "name", "labels", "owner"),
    [
        pytest.param("ReplicaSet", "web-7d4", {"pod-template-hash": "7d4"}, "default/Deployment/web", id="Deployment"),
        pytest.param("ReplicaSet", "web-7d4", {}, "default/ReplicaSet/web-7d4", id="ReplicaSet alone"),
        pytest.param("ReplicaSet", "web", {"pod-template-hash": "7d4"}, "default/ReplicaSet/web", id="another name"),
        pytest.param("StatefulSet", "db", {}, "default/StatefulSet/db", id="StatefulSet"),
        pytest.param("Job", "batch", {}, "default/Job/batch", id="Job"),
    ],
)
def test_the_workload_of_a_pod(kind: str, name: str, labels: dict[str, str], owner: str) -> None:
    pod = builders.pod("p", labels=labels)
    pod.metadata.owner_references = [
        OwnerReference(kind="Other", name="x"),
        OwnerReference(kind=kind, name=name, uid="u", controller=True),
    ]
    assert owner_of(pod) == owner


def test_a_pod_that_nobody_controls_is_of_no_workload() -> None:
    assert owner_of(builders.pod("p")) == ""


def test_a_profile_counts_until_it_is_deleted() -> None:
    profiles, obj = WorkloadProfiles(), workload_profile("web", "B")
    target = owner_of(owned("p", "web"))
    assert profiles.update(obj) == (None, {target})
    found = profiles.about(target)
    assert found is not None
    assert found.interference_class == "B"
    assert profiles.delete(obj) == {target}
    assert profiles.about(target) is None
    assert len(profiles) == 0


def test_an_update_that_changes_nothing_is_no_news() -> None:
    profiles = WorkloadProfiles()
    profiles.update(workload_profile("web", "B"))
    version = profiles.version
    assert profiles.update(workload_profile("web", "B")) == (None, frozenset())
    assert profiles.version == version


def test_another_target_concerns_both_workloads() -> None:
    profiles = WorkloadProfiles()
    profiles.update(workload_profile("p", "B", target="web"))
    _, changed = profiles.update(workload_profile("p", "B", target="db"))
    assert changed == {"default/Deployment/web", "default/Deployment/db"}


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")], ids=["first comes first", "first comes last"])
def test_of_two_profiles_about_one_workload_the_first_by_name_counts(order: tuple[str, str]) -> None:
    profiles = WorkloadProfiles()
    for name in order:
        profiles.update(workload_profile(name, name.upper(), target="web"))
    found = profiles.about("default/Deployment/web")
    assert found is not None
    assert found.name == "default/a"
    assert [profile.name for profile in profiles.all()] == ["default/a"]


def test_a_profile_that_can_no_longer_be_read_counts_no_more() -> None:
    profiles, obj = WorkloadProfiles(), workload_profile("web", "B")
    profiles.update(obj)
    bad = CustomObject.of({"metadata": {"name": "web", "namespace": "default"}, "spec": {"interferenceClass": "X"}})
    problem, changed = profiles.update(bad)
    assert problem is not None
    assert "interferenceClass" in problem
    assert changed == {"default/Deployment/web"}
    assert len(profiles) == 0


def test_the_model_has_what_was_measured() -> None:
    profiles = WorkloadProfiles()
    profiles.update(workload_profile("web", "B", slowdowns={"db": "1.3"}))
    profiles.update(workload_profile("db", "D"))
    profiles.update(workload_profile("other", "D", target="web", slowdowns={"db": "1.9"}))
    assert profiles.model.table == {"default/other": {"default/db": 1.9}}
    profiles.delete(workload_profile("other", "D"))
    assert profiles.model.table == {"default/web": {"default/db": 1.3}}


def test_slowdowns_concern_the_neighbours_that_they_are_beside() -> None:
    profiles = WorkloadProfiles()
    for name in ("web", "db", "cache"):
        profiles.update(workload_profile(name, "B"))
    _, changed = profiles.update(workload_profile("web", "B", slowdowns={"db": "1.3", "nobody": "1.5"}))
    assert changed == {"default/Deployment/web", "default/Deployment/db"}


class Name(str):
    """A name that counts how often any is compared."""

    compared = 0

    def __lt__(self, other: str) -> bool:
        Name.compared += 1
        return super().__lt__(other)

    __hash__ = str.__hash__


def test_which_of_many_profiles_counts_is_not_looked_for_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(obj: CustomObject) -> Profile:
        found = read_profile(obj)
        return found._replace(name=Name(found.name))

    monkeypatch.setattr(workload_profiles, "read_profile", read)
    profiles, count, before = WorkloadProfiles(), 500, Name.compared
    for number in range(count):
        profiles.update(workload_profile(f"p{number:03}", "B", target="web"))
        profiles.about("default/Deployment/web")
    for number in reversed(range(count)):
        profiles.delete(workload_profile(f"p{number:03}", "B", target="web"))
        profiles.about("default/Deployment/web")
    assert Name.compared - before < 25 * count


def test_a_profile_that_does_not_count_is_no_news() -> None:
    profiles = WorkloadProfiles()
    profiles.update(workload_profile("a", "A", target="web"))
    assert profiles.update(workload_profile("b", "B", target="web")) == (None, frozenset())
    assert profiles.delete(workload_profile("b", "B", target="web")) == frozenset()

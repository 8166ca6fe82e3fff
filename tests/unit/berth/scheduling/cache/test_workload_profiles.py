"""WorkloadProfiles by workload."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import CustomObject
from berth.kube.owners import owner_of
from berth.scheduling.cache import workload_profiles
from berth.scheduling.cache.socket_reading import Profile, read_profile
from berth.scheduling.cache.workload_profiles import MOST_SLOWDOWNS, WorkloadProfiles
from tests.support.sockets import owned, workload_profile


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


def measured(name: str, count: int, **others: Any) -> CustomObject:
    return workload_profile(name, "B", slowdowns={f"n{number}": "1.3" for number in range(count)}, **others)


def test_a_namespace_has_so_many_slowdowns_and_profiles_beyond_count_by_class_alone() -> None:
    profiles, large = WorkloadProfiles(), MOST_SLOWDOWNS // 20
    problems = [profiles.update(measured(f"p{number:02}", large))[0] for number in range(25)]
    assert [problem is None for problem in problems] == [True] * 20 + [False] * 5
    assert "10000 slowdowns" in str(problems[-1])
    assert sum(map(len, profiles.model.table.values())) == MOST_SLOWDOWNS
    assert len(profiles) == 25
    last = profiles.about("default/Deployment/p24")
    assert last is not None
    assert (last.interference_class, last.slowdowns) == ("B", {})
    other = measured("p", large)
    other.metadata.namespace = "another"
    assert profiles.update(other)[0] is None


def test_what_is_taken_back_has_room_for_others() -> None:
    profiles = WorkloadProfiles()
    assert profiles.update(measured("a", MOST_SLOWDOWNS))[0] is None
    assert profiles.update(measured("a", MOST_SLOWDOWNS))[0] is None  # its own do not count twice
    assert profiles.update(measured("b", 1))[0] is not None
    assert profiles.update(measured("b", 1))[0] is not None
    profiles.update(measured("a", MOST_SLOWDOWNS - 1))
    assert profiles.update(measured("b", 1))[0] is None
    profiles.delete(measured("a", 0))
    assert profiles.update(measured("c", MOST_SLOWDOWNS - 1))[0] is None
    profiles.delete(measured("b", 0))
    profiles.delete(measured("c", 0))
    assert not profiles._stated
    assert not profiles.model.table


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

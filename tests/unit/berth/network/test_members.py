"""Which pods belong to which AppGroup, and where they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.network import admitted
from berth.network.groups import GroupKey, read_group
from berth.network.members import GroupMembers
from tests.support import builders
from tests.support.placement import chain, group_object, member

SHOP = GroupKey("default", "shop")


class TestMembers:
    def test_another_namespace_with_the_same_group_name_is_another_group(self) -> None:
        members = GroupMembers()
        members.update(member("one", "a"), node="n1")
        members.update(member("two", "a", namespace="other"), node="n2")
        assert [pod.key for pod in members.of(SHOP)] == ["default/one"]
        assert [pod.key for pod in members.placed(GroupKey("other", "shop"))] == ["other/two"]

    def test_a_pod_without_labels_belongs_nowhere(self) -> None:
        members = GroupMembers()
        assert members.update(builders.pod("x"), node="n1") == (None, False)
        assert members.group_of("pod-default-x") is None

    def test_waiting_and_assumed(self) -> None:
        members, pod = GroupMembers(), member("one", "a")
        assert members.update(pod, node="") == (SHOP, True)
        assert members.placed(SHOP) == []
        members.move(pod.metadata.uid, node="n1")
        assert [m.node for m in members.placed(SHOP)] == ["n1"]
        members.move(pod.metadata.uid, node="")
        assert members.placed(SHOP) == []
        members.move("nobody", node="n1")
        assert len(members.of(SHOP)) == 1

    def test_of_forged_annotations_only_so_many_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Else every move of one pod would cost all plans the sum over as many as somebody cares to write."""
        monkeypatch.setattr(admitted, "MAX_KINDS", 3)
        members = GroupMembers()
        for number in (1, 2, 3, 4, 5, 2):
            pod = member(f"p{number}-{len(members.of(SHOP))}", "a")
            pod.metadata.annotations["berth.dev/admitted-bandwidth"] = f'{{"b":{number}}}'
            members.update(pod, node="n1")
        counted = [one.admitted for one in members.of(SHOP)]
        assert counted == [(("b", 1),), (("b", 2),), (("b", 3),), None, None, (("b", 2),)]

    def test_the_same_again_is_no_change(self) -> None:
        members, pod = GroupMembers(), member("one", "a")
        members.update(pod, node="n1")
        assert members.update(pod, node="n1") == (("default", "shop"), False)
        assert members.update(pod, node="n2") == (("default", "shop"), True)

    def test_label_change_moves_to_the_other_group(self) -> None:
        members = GroupMembers()
        members.update(member("one", "a"), node="n1")
        assert members.update(member("one", "a", group="bar"), node="n1") == (("default", "bar"), True)
        assert members.of(SHOP) == []

    def test_label_removed_or_pod_finished_leaves(self) -> None:
        members = GroupMembers()
        members.update(member("one", "a"), node="n1")
        assert members.update(builders.pod("one"), node="n1") == (None, True)
        members.update(member("one", "a"), node="n1")
        members.update(member("one", "a", phase="Succeeded"), node="n1")
        assert members.of(SHOP) == []

    @pytest.mark.parametrize(
        ("workloads", "count", "complete"),
        [
            pytest.param(["a", "b"], 2, True, id="everyone"),
            pytest.param(["a", "a"], 2, False, id="enough-pods-but-a-workload-is-missing"),
            pytest.param(["a", "b"], 3, False, id="too-few-pods"),
            pytest.param(["a", "b", "b"], 3, True, id="replicas-count"),
            pytest.param(["a", "b", "x"], 2, True, id="an-unknown-workload-does-not-harm"),
            pytest.param([], 1, False, id="nobody"),
        ],
    )
    def test_completeness(self, workloads: list[str], count: int, complete: bool) -> None:
        members = GroupMembers()
        group = read_group(group_object("shop", *chain("a", "b"), numMembers=count))
        assert group.problem == ""
        for number, workload in enumerate(workloads):
            members.update(member(f"p{number}", workload), node="")
        assert members.complete(group) is complete


POD = st.tuples(st.sampled_from("uvwxyz"), st.sampled_from(["", "g1", "g2"]), st.sampled_from(["a", "b"]))
STEP = st.one_of(
    st.tuples(st.just("update"), POD, st.sampled_from(["", "n1", "n2"])),
    st.tuples(st.just("remove"), POD, st.just("")),
    st.tuples(st.just("move"), POD, st.sampled_from(["", "n1", "n2"])),
)


@given(st.lists(STEP, max_size=40))
def test_any_history_equals_a_rebuilt_book(steps: list[tuple[str, tuple[str, str, str], str]]) -> None:
    """Whatever happened before, the book equals one that saw only the last state of every pod."""
    book = GroupMembers()
    last: dict[str, tuple[str, str, str]] = {}
    for action, (name, group, workload), node in steps:
        uid = f"pod-default-{name}"
        if action == "update":
            pod = member(name, workload, group=group) if group else builders.pod(name)
            book.update(pod, node=node)
            last[name] = (group, workload, node)
        elif action == "remove":
            book.delete(uid)
            last.pop(name, None)
        else:
            book.move(uid, node=node)
            if name in last:
                last[name] = (*last[name][:2], node)
    fresh = GroupMembers()
    for name, (group, workload, node) in last.items():
        fresh.update(member(name, workload, group=group) if group else builders.pod(name), node=node)
    for group in ("g1", "g2"):
        key = GroupKey("default", group)
        assert sorted(book.of(key), key=str) == sorted(fresh.of(key), key=str)
        assert sorted(book.placed(key), key=str) == sorted(fresh.placed(key), key=str)
    for name in "uvwxyz":
        assert book.group_of(f"pod-default-{name}") == fresh.group_of(f"pod-default-{name}")


class TestGathered:
    """A group that was complete is not waited for again."""

    GROUP = read_group(group_object("shop", *chain("a", "b")))

    def test_a_finished_pod_counts_until_it_is_deleted(self) -> None:
        members, done = GroupMembers(), member("job", "b", on="n1", phase="Succeeded")
        members.finish(done)
        members.update(member("a1", "a"), node="")
        assert members.missing(self.GROUP) == ()
        members.delete(done.metadata.uid)
        assert members.missing(self.GROUP) == ("b",)

    def test_a_pod_that_never_had_a_node_does_not(self) -> None:
        members = GroupMembers()
        members.finish(member("job", "b", phase="Failed"))
        members.update(member("a1", "a"), node="")
        assert not members.complete(self.GROUP)

    def test_what_it_had_is_not_missed(self) -> None:
        members, gone = GroupMembers(), member("b1", "b")
        members.update(member("a1", "a"), node="n1")
        members.update(gone, node="n1")
        assert members.complete(self.GROUP)
        members.delete(gone.metadata.uid)
        assert members.complete(self.GROUP)

    def test_a_workload_that_was_added_since_is(self) -> None:
        members = GroupMembers()
        members.update(member("a1", "a"), node="n1")
        members.update(member("b1", "b"), node="n1")
        assert members.complete(self.GROUP)
        wider = read_group(group_object("shop", *chain("a", "b", "c")))
        assert members.missing(wider) == ("c",)
        assert not members.complete(wider)

    def test_a_group_that_lost_all_its_pods_starts_anew(self) -> None:
        members, pods = GroupMembers(), [member("a1", "a"), member("b1", "b")]
        for pod in pods:
            members.update(pod, node="n1")
        assert members.complete(self.GROUP)
        for pod in pods:
            members.delete(pod.metadata.uid)
        members.update(pods[0], node="")
        assert not members.complete(self.GROUP)

    def test_another_workload_label_moves_the_count(self) -> None:
        members = GroupMembers()
        members.update(member("x", "b"), node="")
        members.update(member("x", "a"), node="")
        assert members.missing(self.GROUP) == ("b",)

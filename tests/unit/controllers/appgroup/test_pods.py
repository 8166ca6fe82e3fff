"""The pods of groups: membership by namespace and label, and which changes matter."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.labels import LABEL_APPGROUP, LABEL_WORKLOAD
from berth.kube.objects import ObjectMeta
from berth.network.groups import GroupKey
from controllers.appgroup.pods import GroupPod, GroupPods, GroupPodSpec, GroupPodStatus

SHOP = GroupKey("default", "shop")
BANK = GroupKey("default", "bank")


def pod(
    name: str = "web-1",
    *,
    group: str | None = "shop",
    workload: str | None = "web",
    namespace: str = "default",
    node: str = "",
    phase: str = "Pending",
    uid: str = "u1",
    deleting: bool = False,
    annotations: dict[str, str] | None = None,
) -> GroupPod:
    labels = {LABEL_APPGROUP: group, LABEL_WORKLOAD: workload}
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        uid=uid,
        labels={key: value for key, value in labels.items() if value is not None},
        annotations=annotations or {},
        creation_timestamp="2026-03-01T10:00:00Z",
        deletion_timestamp="2026-03-01T11:00:00Z" if deleting else None,
    )
    return GroupPod(metadata=metadata, spec=GroupPodSpec(node_name=node), status=GroupPodStatus(phase=phase))


def test_facts() -> None:
    index = GroupPods()
    index.update(None, pod(node="n1", phase="Running", deleting=True))
    (facts,) = index.of(SHOP)
    assert facts._asdict() == {
        "name": "web-1",
        "uid": "u1",
        "workload": "web",
        "node": "n1",
        "phase": "Running",
        "created": datetime(2026, 3, 1, 10, tzinfo=UTC),
        "deleting": True,
    }


CHANGES = [
    pytest.param(None, pod(), (SHOP,), id="created"),
    pytest.param(None, pod(group=None), (), id="created without a group"),
    pytest.param(pod(), None, (SHOP,), id="deleted"),
    pytest.param(pod(group=None), None, (), id="deleted without a group"),
    pytest.param(pod(), pod(), (), id="same again"),
    pytest.param(pod(), pod(annotations={"a": "b"}), (), id="annotation"),
    pytest.param(pod(), pod(node="n1"), (SHOP,), id="bound"),
    pytest.param(pod(), pod(phase="Running"), (SHOP,), id="phase"),
    pytest.param(pod(), pod(deleting=True), (SHOP,), id="deletion begins"),
    pytest.param(pod(), pod(uid="u2"), (SHOP,), id="replaced by another of its name"),
    pytest.param(pod(), pod(workload="cart"), (SHOP,), id="other workload"),
    pytest.param(pod(), pod(group="bank"), (SHOP, BANK), id="other group"),
    pytest.param(pod(), pod(group=None), (SHOP,), id="label removed"),
    pytest.param(pod(group=None), pod(), (SHOP,), id="label added"),
    pytest.param(pod(group=None), pod(group=None, node="n1"), (), id="never a member"),
    pytest.param(pod(), pod(workload=None), (SHOP,), id="workload label removed"),
]


@pytest.mark.parametrize(("before", "after", "changed"), CHANGES)
def test_changed_groups(before: GroupPod | None, after: GroupPod | None, changed: tuple[GroupKey, ...]) -> None:
    index = GroupPods()
    if before is not None:
        index.update(None, before)
    assert tuple(index.update(before, after)) == changed
    assert len(index) == (after is not None and LABEL_APPGROUP in after.metadata.labels)


def test_equal_names_in_other_namespaces_are_other_groups() -> None:
    index = GroupPods()
    index.update(None, pod(namespace="a"))
    index.update(None, pod(namespace="b", uid="u2"))
    assert [facts.uid for facts in index.of(GroupKey("a", "shop"))] == ["u1"]
    assert [facts.uid for facts in index.of(GroupKey("b", "shop"))] == ["u2"]


@pytest.mark.parametrize(
    ("phase", "finished"), [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True)]
)
def test_finished(phase: str, finished: bool) -> None:
    index = GroupPods()
    index.update(None, pod(phase=phase))
    assert [facts.finished for facts in index.of(SHOP)] == [finished]


_names = st.sampled_from(["a", "b", "c"])
_changes = st.one_of(
    st.builds(
        pod,
        _names,
        group=st.sampled_from(["shop", "bank", None]),
        node=st.sampled_from(["", "n1"]),
        namespace=st.sampled_from(["default", "other"]),
    ),
    st.tuples(st.sampled_from(["default", "other"]), _names),
)


@given(st.lists(_changes, max_size=30))
def test_index_equals_a_recount(changes: list[GroupPod | tuple[str, str]]) -> None:
    index = GroupPods()
    truth: dict[tuple[str, str], GroupPod] = {}
    for change in changes:
        if isinstance(change, GroupPod):
            key = (change.metadata.namespace, change.metadata.name)
            index.update(truth.get(key), change)
            truth[key] = change
        elif change in truth:
            index.update(truth.pop(change), None)
    for namespace in ("default", "other"):
        for group in ("shop", "bank"):
            expected = {
                (name, item.spec.node_name)
                for (where, name), item in truth.items()
                if where == namespace and item.metadata.labels.get(LABEL_APPGROUP) == group
            }
            assert {(facts.name, facts.node) for facts in index.of(GroupKey(namespace, group))} == expected
    assert len(index) == sum(1 for item in truth.values() if LABEL_APPGROUP in item.metadata.labels)


def test_what_no_status_depends_on_is_not_kept() -> None:
    many = {f"label-{number}": "x" for number in range(1000)}
    labels = {LABEL_APPGROUP: "shop", LABEL_WORKLOAD: "web"}
    metadata = ObjectMeta(name="web-1", labels=labels | many, annotations=many)
    found = GroupPod(metadata=metadata)
    assert (found.metadata.labels, found.metadata.annotations) == (labels, {})

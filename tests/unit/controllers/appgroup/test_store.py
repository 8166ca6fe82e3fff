"""The newest of every AppGroup, objects that vanish unseen, and echoes that stay away."""

from __future__ import annotations

from typing import Any

import pytest

from berth.network.groups import GroupKey
from controllers.appgroup.store import AppGroupStore, Change, version_of

KEY = GroupKey("default", "shop")
OTHER = GroupKey("default", "bank")


def document(version: int | str, *, generation: int = 1, uid: str = "u1", name: str = "shop") -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": uid,
        "generation": generation,
        "resourceVersion": str(version),
    }
    return {"metadata": metadata, "spec": {}}


@pytest.fixture
def store() -> AppGroupStore:
    store = AppGroupStore()
    store.observe(None, document(10))
    return store


OBSERVATIONS = [
    pytest.param("ADDED", document(10), Change.NOTHING, 10, id="same version"),
    pytest.param("MODIFIED", document(9, generation=0), Change.NOTHING, 10, id="older version"),
    pytest.param("MODIFIED", document(11), Change.OTHER, 11, id="status or labels"),
    pytest.param("MODIFIED", document(11, generation=2), Change.SPEC, 11, id="spec"),
    pytest.param(None, document(12, generation=2), Change.SPEC, 12, id="spec, found by a relist"),
    pytest.param("ADDED", document(12, uid="u2"), Change.SPEC, 12, id="replaced by another of its name"),
    pytest.param("DELETED", document(12), Change.GONE, None, id="deleted"),
    pytest.param("DELETED", document(5, uid="u0"), Change.NOTHING, 10, id="deletion of a predecessor"),
    pytest.param("MODIFIED", document("unreadable"), Change.OTHER, -1, id="version is no number: trust the watch"),
]


@pytest.mark.parametrize(("event", "observed", "change", "version"), OBSERVATIONS)
def test_observe(
    store: AppGroupStore, event: str | None, observed: dict[str, Any], change: Change, version: int | None
) -> None:
    assert store.observe(event, observed) is change
    known = store.get(KEY)
    assert (None if known is None else version_of(known["metadata"]["resourceVersion"])) == version


def test_a_new_object_is_a_new_spec() -> None:
    store = AppGroupStore()
    assert store.observe("ADDED", document(1)) is Change.SPEC
    assert len(store) == 1


def test_deletion_of_an_unknown_object_means_nothing() -> None:
    assert AppGroupStore().observe("DELETED", document(1)) is Change.NOTHING


def test_our_write_is_known_before_its_echo(store: AppGroupStore) -> None:
    store.wrote(document(15), now=100.0)
    assert store.oldest_echo(now=103.0) == (KEY, 3.0)
    assert store.observe("MODIFIED", document(15)) is Change.NOTHING
    assert store.oldest_echo(now=104.0) is None


def test_a_new_spec_in_the_answer_to_our_write_is_not_lost(store: AppGroupStore) -> None:
    # The spec changes to generation 2 (version 14) while a status of generation 1 is on its way (version 15).
    store.wrote(document(15, generation=2), now=100.0)
    assert store.observe("MODIFIED", document(14, generation=2)) is Change.SPEC
    assert store.oldest_echo(now=101.0) is not None
    assert store.observe("MODIFIED", document(15, generation=2)) is Change.OTHER
    assert store.oldest_echo(now=102.0) is None


def test_a_new_spec_in_the_answer_is_found_by_a_relist_too(store: AppGroupStore) -> None:
    store.wrote(document(15, generation=2), now=100.0)
    assert store.observe(None, document(15, generation=2)) is Change.SPEC


def test_a_later_version_is_an_echo_too(store: AppGroupStore) -> None:
    store.wrote(document(15), now=100.0)
    store.observe("MODIFIED", document(17, generation=2))
    assert store.oldest_echo(now=104.0) is None


def test_an_earlier_version_is_no_echo(store: AppGroupStore) -> None:
    store.wrote(document(15), now=100.0)
    store.observe("MODIFIED", document(14, generation=2))
    assert store.oldest_echo(now=104.0) == (KEY, 4.0)


def test_further_writes_do_not_excuse_a_late_echo(store: AppGroupStore) -> None:
    store.wrote(document(15), now=100.0)
    store.wrote(document(16), now=150.0)
    assert store.oldest_echo(now=160.0) == (KEY, 60.0)
    store.observe("MODIFIED", document(15))
    assert store.oldest_echo(now=160.0) == (KEY, 60.0)


IGNORED_WRITES = [
    pytest.param(document(10), id="changed nothing"),
    pytest.param(document(15, uid="u0"), id="of a predecessor"),
    pytest.param(document(15, name="bank"), id="of an object deleted meanwhile"),
]


@pytest.mark.parametrize("answer", IGNORED_WRITES)
def test_writes_without_echo(store: AppGroupStore, answer: dict[str, Any]) -> None:
    store.wrote(answer, now=100.0)
    assert store.oldest_echo(now=200.0) is None
    assert len(store) == 1


@pytest.mark.parametrize("event", ["DELETED", "forget"])
def test_a_gone_object_owes_no_echo(store: AppGroupStore, event: str) -> None:
    store.wrote(document(15), now=100.0)
    if event == "forget":
        store.forget(KEY)
    else:
        store.observe("DELETED", document(16))
    assert store.oldest_echo(now=200.0) is None


@pytest.mark.parametrize(("uid", "kept"), [("u1", False), ("u0", True)], ids=["the very object", "a predecessor"])
def test_forgetting_by_uid(store: AppGroupStore, uid: str, kept: bool) -> None:
    store.forget(KEY, uid=uid)
    assert (KEY in store) is kept


def test_what_is_kept_of_an_object() -> None:
    store = AppGroupStore()
    raw = {**document(1), "status": {"algorithm": "KahnSort"}}
    store.observe("ADDED", {**raw, "metadata": {**raw["metadata"], "managedFields": [{"manager": "kubectl"}]}})
    assert store.get(KEY) == raw


def test_the_oldest_echo_counts(store: AppGroupStore) -> None:
    store.observe(None, document(11, name="bank", uid="u2"))
    store.wrote(document(21, name="bank", uid="u2"), now=90.0)
    store.wrote(document(20), now=100.0)
    assert store.oldest_echo(now=110.0) == (OTHER, 20.0)


def test_list_finds_what_vanished(store: AppGroupStore) -> None:
    store.observe(None, document(11, name="bank", uid="u2"))
    assert store.reconcile_list({OTHER: 11}, list_version=30, now=0.0) == [KEY]
    assert store.get(KEY) is None
    assert store.get(OTHER) is not None


def test_list_does_not_know_what_came_after_it(store: AppGroupStore) -> None:
    store.observe("ADDED", document(31, name="bank", uid="u2"))
    assert store.reconcile_list({KEY: 10}, list_version=30, now=0.0) == []
    assert len(store) == 2


def test_list_finds_what_the_watch_has_not_shown(store: AppGroupStore) -> None:
    listed = {KEY: 12, OTHER: 13}
    assert store.missing(listed) == 2
    store.reconcile_list(listed, list_version=30, now=100.0)
    assert store.oldest_echo(now=101.0) is not None
    store.observe("MODIFIED", document(12))
    store.observe("ADDED", document(13, name="bank", uid="u2"))
    assert store.oldest_echo(now=102.0) is None
    assert store.missing(listed) == 0


def test_echo_of_an_object_deleted_before_it_was_shown_is_dropped(store: AppGroupStore) -> None:
    store.reconcile_list({KEY: 10, OTHER: 13}, list_version=30, now=100.0)
    store.reconcile_list({KEY: 10}, list_version=40, now=200.0)
    assert store.oldest_echo(now=300.0) is None


@pytest.mark.parametrize(("text", "number"), [("17", 17), ("0", 0), ("", -1), ("1.5", -1), ("-3", -1), ("x", -1)])
def test_versions(text: str, number: int) -> None:
    assert version_of(text) == number

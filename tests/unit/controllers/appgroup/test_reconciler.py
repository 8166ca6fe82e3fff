"""One pass over an AppGroup: what it reads, when it writes, what it returns."""

from __future__ import annotations

from typing import Any, cast

import pytest
from prometheus_client import REGISTRY

from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder, Note
from berth.network.groups import GroupKey
from berth.runtime.seen_versions import SeenVersions
from controllers.appgroup.large_statuses import LargeStatuses
from controllers.appgroup.pods import GroupPods
from controllers.appgroup.reconciler import LARGE, Reconciler
from hack.harness.boutique import boutique

KEY = GroupKey("default", "boutique")


class World:
    """One AppGroup on an API server that can refuse, with the pass over it."""

    def __init__(
        self, document: dict[str, Any] | None, *, refusal: int = 0, about: tuple[str, str] = ("appgroups", "boutique")
    ) -> None:
        self.document = document
        self.refusal = refusal
        self.about = about
        self.bodies: list[dict[str, Any]] = []
        self.notes: list[Note] = []
        self.versions: SeenVersions[GroupKey] = SeenVersions(lambda _: None)
        self.asked: list[str] = []
        self.large = LargeStatuses(elsewhere=lambda _: None)
        self.reconciler = Reconciler(
            client=cast(ApiClient, self),
            recorder=cast(EventRecorder, self),
            pods=GroupPods(),
            versions=self.versions,
            large=self.large,
        )

    async def get(self, *_: Any, not_older_than: str, **__: Any) -> dict[str, Any]:
        self.asked.append(not_older_than)
        if self.document is None:
            raise ApiError(status=404, reason="NotFound", message="gone", about=self.about)
        return self.document

    async def apply(self, _kind: Any, _name: str, body: dict[str, Any], **_: Any) -> bytes:
        if self.refusal:
            reason = "NotFound" if self.refusal == 404 else "Refused"
            raise ApiError(status=self.refusal, reason=reason, message="refused", about=self.about)
        assert self.document is not None
        self.bodies.append(body)
        self.document = {**self.document, "status": body["status"]}
        return b'{"metadata":{"resourceVersion":"8"}}'

    def record(self, note: Note) -> None:
        self.notes.append(note)


def outcomes(name: str) -> float:
    return REGISTRY.get_sample_value("berth_appgroup_reconciles_total", {"outcome": name}) or 0.0


async def test_an_object_is_read_as_it_was_seen_last_and_as_it_is_after_a_refusal() -> None:
    world = World(boutique())
    world.versions.note(KEY, "7")
    await world.reconciler.reconcile(KEY)
    await world.reconciler.reconcile(KEY)
    world.document, world.refusal = boutique(), 409
    with pytest.raises(ApiError):
        await world.reconciler.reconcile(KEY)
    world.document = None
    await world.reconciler.reconcile(KEY)
    assert world.asked == ["7", "8", "8", ""]


async def test_a_status_is_written_once() -> None:
    world = World(boutique())
    assert await world.reconciler.reconcile(KEY)
    assert await world.reconciler.reconcile(KEY)
    (body,) = world.bodies
    assert body["metadata"] == {"name": "boutique", "namespace": "default", "uid": "uid-boutique"}
    assert body["status"]["algorithm"] == "KahnSort"
    assert [note.reason for note in world.notes] == ["Ordered"]


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(World(None), id="deleted"),
        pytest.param(World({"metadata": {"deletionTimestamp": "2026-03-01T10:00:00Z"}}), id="being deleted"),
        pytest.param(World(boutique(), refusal=404), id="deleted before the write"),
    ],
)
async def test_what_is_gone_is_not_written(world: World) -> None:
    before = outcomes("gone")
    assert not await world.reconciler.reconcile(KEY)
    assert (world.bodies, world.notes) == ([], [])
    assert outcomes("gone") == before + 1


@pytest.mark.parametrize("about", [("", ""), ("appgroups", "web")], ids=["a page", "of another object"])
@pytest.mark.parametrize("document", [None, boutique()], ids=["at the read", "at the write"])
async def test_a_404_that_does_not_name_the_object_is_tried_again(
    document: dict[str, Any] | None, about: tuple[str, str]
) -> None:
    """A load balancer's page, or a kind that is not served for a while: the AppGroup is as it was."""
    world = World(document, refusal=404, about=about)
    with pytest.raises(ApiError):
        await world.reconciler.reconcile(KEY)
    world.document, world.refusal = boutique(), 0
    assert await world.reconciler.reconcile(KEY)
    assert len(world.bodies) == 1


@pytest.mark.parametrize("status", [409, 500])
async def test_a_refused_write_is_for_the_queue_to_try_again(status: int) -> None:
    world = World(boutique(), refusal=status)
    before = outcomes("failed")
    with pytest.raises(ApiError):
        await world.reconciler.reconcile(KEY)
    assert outcomes("failed") == before + 1
    world.refusal = 0
    assert await world.reconciler.reconcile(KEY)
    assert len(world.bodies) == 1


class TestLargeStatuses:
    """What is large is handed over, and taken back when it is small again."""

    async def test_they_are_written_when_their_turn_comes_and_small_ones_at_once(self) -> None:
        world = World(boutique(size=LARGE + 1))
        before = outcomes("postponed")
        assert await world.reconciler.reconcile(KEY)
        assert (world.bodies, KEY in world.large, len(world.large)) == ([], True, 1)
        assert outcomes("postponed") == before + 1
        assert await world.reconciler.reconcile_large(KEY)
        assert len(world.bodies) == 1
        small = World(boutique(size=LARGE))
        await small.reconciler.reconcile(KEY)
        assert (len(small.bodies), KEY in small.large) == (1, False)

    async def test_what_is_known_to_be_large_is_not_read_before_its_turn(self) -> None:
        world = World(boutique(size=LARGE + 1))
        await world.reconciler.reconcile(KEY)
        await world.reconciler.reconcile(KEY)
        assert len(world.asked) == 1

    async def test_one_that_is_as_it_should_be_is_not_handed_over(self) -> None:
        world = World(boutique(size=LARGE + 1))
        await world.reconciler.reconcile_large(KEY)
        assert await world.reconciler.reconcile(KEY)
        assert KEY not in world.large

    async def test_one_that_is_small_again_is_taken_back(self) -> None:
        world = World(boutique(size=LARGE + 1))
        await world.reconciler.reconcile(KEY)
        world.document = boutique()
        assert await world.reconciler.reconcile_large(KEY)
        assert (len(world.bodies), KEY in world.large) == (1, False)

    async def test_the_latency_of_a_new_spec_ends_with_its_write(self) -> None:
        world = World(boutique(size=LARGE + 1))
        before = spec_to_status_samples()
        world.reconciler.seen(KEY)
        await world.reconciler.reconcile(KEY)
        assert spec_to_status_samples() == before
        await world.reconciler.reconcile_large(KEY)
        assert spec_to_status_samples() == before + 1


def spec_to_status_samples() -> float:
    return REGISTRY.get_sample_value("berth_appgroup_spec_to_status_seconds_count") or 0.0


async def test_the_latency_of_a_new_spec_is_measured_once() -> None:
    world = World(boutique())
    before = spec_to_status_samples()
    for _ in range(2):
        world.reconciler.seen(KEY)
        await world.reconciler.reconcile(KEY)
    assert spec_to_status_samples() == before + 1

"""Operations run against a fake API server: what is created, who is measured, waited for and deleted."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

from bench.schedperf import operations
from bench.schedperf.executor import Executor, ticks
from bench.schedperf.operations import LeftOutError, Operation
from bench.schedperf.source import Case
from berth.kube.resources import Resource
from hack.harness.observe import PodLog


class Server:
    """Takes every request, and gives what is created a uid."""

    def __init__(self) -> None:
        self.created: list[tuple[str, str | None, dict[str, Any]]] = []
        self.replaced: list[tuple[str, dict[str, Any]]] = []
        self.deleted: list[tuple[str, str]] = []
        self._uids = itertools.count()

    async def create(self, resource: Resource[Any], body: dict[str, Any], *, namespace: str | None = None) -> bytes:
        self.created.append((resource.plural, namespace, body))
        meta, number = body["metadata"], next(self._uids)
        name = meta.get("name") or f"{meta['generateName']}{number}"
        return json.dumps({"metadata": {**meta, "name": name, "uid": f"uid-{number}"}}).encode()

    async def strategic_patch(self, *_: object, **__: object) -> bytes:
        return b"{}"

    async def replace(
        self, resource: Resource[Any], name: str, body: dict[str, Any], *, namespace: str | None = None
    ) -> bytes:
        self.replaced.append((resource.path(namespace, name), body))
        return b"{}"

    async def delete(self, resource: Resource[Any], name: str, *, namespace: str | None = None) -> None:
        self.deleted.append((resource.plural, name))

    def named(self, plural: str) -> list[tuple[str | None, str]]:
        """Namespace and labels' app of everything created of a kind."""
        return [(n, body["metadata"].get("labels", {}).get("app", "")) for p, n, body in self.created if p == plural]


class Observed:
    """Notes what is waited for; everything is bound, attempted and told at once."""

    def __init__(self) -> None:
        self.waits: list[tuple[str, int]] = []
        self.pods = PodLog()

    async def all_bound(self, uids: Collection[str]) -> None:
        self.waits.append(("bound", len(uids)))

    async def all_attempted(self, uids: Collection[str]) -> None:
        self.waits.append(("attempted", len(uids)))

    async def all_told(self, uids: Iterable[str]) -> None:
        self.waits.append(("told", len(list(uids))))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for app in ("a", "b"):
        text = f"kind: Pod\nmetadata: {{generateName: {app}-, labels: {{app: {app}}}}}\nspec: {{containers: []}}\n"
        (tmp_path / f"{app}.yaml").write_text(text)
    (tmp_path / "named.yaml").write_text("kind: Pod\nmetadata: {name: p-{{ .Index }}}\nspec: {}\n")
    (tmp_path / "service.yaml").write_text("kind: Service\nmetadata: {generateName: s-}\nspec: {}\n")
    (tmp_path / "odd.yaml").write_text("kind: Odd\nmetadata: {generateName: o-}\n")
    return tmp_path


class Run:
    """An executor with its fakes."""

    def __init__(self, directory: Path) -> None:
        self.server, self.observed, self.marks = Server(), Observed(), list[str]()
        case = Case("Case", directory, (), "a.yaml", ())

        async def stopped() -> None:
            self.marks.append("stopped")

        self.executor = Executor(
            self.server,  # type: ignore[arg-type]
            case,
            "berth-scheduler",
            self.observed,  # type: ignore[arg-type]
            lambda: self.marks.append("started"),
            stopped,
        )

    async def __call__(self, *sequence: Operation) -> None:
        await self.executor.run(sequence)


@pytest.fixture
def run(directory: Path) -> Run:
    return Run(directory)


async def test_pods_are_in_the_namespace_of_their_operation_and_waited_for(run: Run) -> None:
    await run(
        operations.CreatePods(count=2), operations.CreatePods(count=3, namespace="own", pod_template_path="b.yaml")
    )
    assert run.server.named("pods") == [("namespace-0", "a")] * 2 + [("own", "b")] * 3
    assert [body["metadata"]["name"] for plural, _, body in run.server.created if plural == "namespaces"] == [
        "namespace-0",
        "own",
    ]
    assert run.observed.waits == [("bound", 2), ("bound", 3)]
    assert len(run.observed.pods.created) == 5  # as their creation was answered, without a watch
    assert run.executor.measured == set()


async def test_only_the_operation_that_says_so_is_measured(run: Run) -> None:
    await run(operations.CreatePods(count=2), operations.CreatePods(count=3, collect_metrics=True))
    assert len(run.executor.measured) == 3
    assert run.marks == ["started", "stopped"]


@pytest.mark.parametrize(
    "sequence",
    [
        [operations.CreatePods(count=3, collect_metrics=True)],
        [
            operations.StartCollectingMetrics(namespaces=["namespace-0"]),
            operations.CreatePods(count=3),
            operations.StopCollectingMetrics(),
        ],
    ],
    ids=["an operation is measured", "all between two is measured"],
)
async def test_measuring_begins_when_all_is_told_of_the_pods_before(run: Run, sequence: list[Operation]) -> None:
    """Events that come late would be written while others are measured, and slow these down."""
    await run(operations.CreatePods(count=2), *sequence)
    assert run.observed.waits == [("bound", 2), ("told", 2), ("bound", 3)]


async def test_collecting_measures_what_is_created_meanwhile_and_selected(run: Run) -> None:
    labels = {"app": "b"}
    await run(
        operations.CreatePods(count=1, namespace="x", pod_template_path="b.yaml"),
        operations.StartCollectingMetrics(namespaces=["x"], label_selector=labels),
        operations.CreatePods(count=2, namespace="x", pod_template_path="b.yaml"),
        operations.CreatePods(count=4, namespace="x", pod_template_path="a.yaml"),
        operations.CreatePods(count=8, namespace="y", pod_template_path="b.yaml"),
        operations.StopCollectingMetrics(),
        operations.CreatePods(count=16, namespace="x", pod_template_path="b.yaml"),
    )
    assert len(run.executor.measured) == 2


@pytest.mark.parametrize(
    ("barrier", "wait"),
    [
        (operations.Barrier(), ("bound", 3)),
        (operations.Barrier(stage_requirement="Attempted"), ("attempted", 3)),
        (operations.Barrier(namespaces=["x"]), ("bound", 1)),
        (operations.Barrier(label_selector={"app": "b"}), ("bound", 2)),
    ],
    ids=["all", "attempted", "a namespace", "labels"],
)
async def test_a_barrier_waits_for_pods_that_were_not_waited_for(
    run: Run, barrier: operations.Barrier, wait: tuple[str, int]
) -> None:
    await run(
        operations.CreatePods(count=5, namespace="x"),
        operations.CreatePods(count=1, namespace="x", skip_wait_to_completion=True),
        operations.CreatePods(count=2, namespace="y", pod_template_path="b.yaml", skip_wait_to_completion=True),
        barrier,
    )
    assert run.observed.waits[-1] == wait


async def test_sets_of_pods_are_in_namespaces_of_their_own(run: Run) -> None:
    inner = operations.CreatePods(count=2)
    await run(operations.CreatePodSets(count=3, namespace_prefix="init", create_pods_op=inner))
    assert [namespace for namespace, _ in run.server.named("pods")] == ["init-0"] * 2 + ["init-1"] * 2 + ["init-2"] * 2


async def test_pods_are_deleted_by_namespace_and_labels(run: Run) -> None:
    await run(
        operations.CreatePods(count=2, namespace="x"),
        operations.CreatePods(count=1, namespace="x", pod_template_path="b.yaml"),
        operations.CreatePods(count=1, namespace="y", pod_template_path="b.yaml"),
        operations.DeletePods(namespace="x", label_selector={"app": "b"}),
    )
    assert [name.split("-")[0] for _, name in run.server.deleted] == ["b"]


async def test_what_goes_on_beside_the_others_ends_with_the_last(run: Run) -> None:
    await run(
        operations.CreatePods(count=2, namespace="x"),
        operations.DeletePods(namespace="x", delete_pods_per_second=1, skip_wait_to_completion=True),
        operations.Churn(mode="create", template_paths=["service.yaml"], interval_milliseconds=60_000),
        operations.CreatePods(count=1, collect_metrics=True),
    )
    assert run.server.deleted == []
    assert run.server.named("services") == []


@pytest.mark.parametrize("mode", ["create", "recreate"])
async def test_churn(run: Run, mode: str) -> None:
    churn = operations.Churn(mode=mode, template_paths=["service.yaml", "b.yaml"], number=2, interval_milliseconds=1)
    await run(churn, operations.Sleep(duration="200ms"))
    services, pods = run.server.named("services"), run.server.named("pods")
    assert {namespace for namespace, _ in services + pods} == {"namespace-0"}
    if mode == "create":
        assert (len(services), len(pods), run.server.deleted) == (2, 2, [])
    else:
        assert len(services) > 2
        assert 0 <= len(services) - sum(plural == "services" for plural, _ in run.server.deleted) <= 2


@pytest.mark.parametrize(
    ("subresources", "paths"),
    [((), ["", "/status"]), (("resize",), ["/resize", "/status"])],
    ids=["the object and its status", "a subresource and the status"],
)
async def test_updates_replace(run: Run, subresources: tuple[str, ...], paths: list[str]) -> None:
    await run(operations.UpdateAny(template_path="named.yaml", namespace="x", count=1, subresources=subresources))
    assert [path for path, _ in run.server.replaced] == [f"/api/v1/namespaces/x/pods/p-0{end}" for end in paths]
    assert {body["spec"]["schedulerName"] for _, body in run.server.replaced} == {"berth-scheduler"}


@pytest.mark.parametrize(
    "operation",
    [
        operations.CreateAny(template_path="odd.yaml"),
        operations.Churn(mode="create", template_paths=["odd.yaml"]),
        operations.Churn(mode="odd", template_paths=["a.yaml"]),
    ],
    ids=["kind", "kind of churn", "mode of churn"],
)
async def test_what_is_not_understood_is_named(run: Run, operation: Operation) -> None:
    with pytest.raises(LeftOutError, match=r"[Oo]dd"):
        await run(operation)


async def test_ticks_keep_their_rate_while_the_work_takes_less() -> None:
    begun = time.monotonic()
    numbers = []
    async for number in ticks(0.02, count=5):
        numbers.append(number)
        await asyncio.sleep(0.01)
    assert numbers == [0, 1, 2, 3, 4]
    assert time.monotonic() - begun >= 0.1

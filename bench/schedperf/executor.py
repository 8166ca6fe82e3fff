"""Runs the operations of a workload against an API server, and knows which pods are measured."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.schedperf import manifests, operations, writing
from bench.schedperf.observe import Observer
from bench.schedperf.operations import LeftOutError, Operation
from bench.schedperf.source import Case
from bench.schedperf.templates import Manifest, objects
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError


@dataclass(frozen=True, slots=True)
class Created:
    """A pod that an operation created."""

    uid: str
    name: str
    namespace: str
    labels: operations.Labels

    def selected(self, namespaces: Sequence[str], labels: operations.Labels) -> bool:
        """Whether it is in one of the namespaces, if there are any, and has the labels."""
        return (not namespaces or self.namespace in namespaces) and labels.items() <= self.labels.items()


@dataclass(slots=True)
class Executor:
    """One run of one workload."""

    client: ApiClient
    case: Case
    scheduler: str
    """spec.schedulerName of the pods"""
    observer: Observer
    started: Callable[[], None]
    """called when measuring begins"""
    stopped: Callable[[], Awaitable[None]]
    """called when measuring ends"""
    measured: set[str] = field(default_factory=set)
    """uids of the pods that are measured"""
    _collecting: operations.StartCollectingMetrics | None = None
    _pods: list[Created] = field(default_factory=list)
    _unawaited: list[Created] = field(default_factory=list)
    _nodes: int = 0
    _background: list[asyncio.Task[None]] = field(default_factory=list)

    async def run(self, sequence: Sequence[Operation]) -> None:
        """Run the operations one after another; those that go on beside the others end with the last.

        Raises:
            LeftOutError: a template is not understood.
            StuckError: pods that are waited for get no node.
        """
        try:
            for number, operation in enumerate(sequence):
                await self._run(number, operation)
        finally:
            for task in self._background:
                task.cancel()
            ended = await asyncio.gather(*self._background, return_exceptions=True)
        for outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome

    async def _run(self, number: int, operation: Operation) -> None:
        match operation:
            case operations.CreateNodes():
                await self._create_nodes(number, operation)
            case operations.CreateNamespaces():
                await self._create_namespaces(operation)
            case operations.CreatePods():
                await self._create_pods(operation, operation.namespace or f"namespace-{number}")
            case operations.CreatePodSets():
                for index in range(operation.count):
                    await self._create_pods(operation.create_pods_op, f"{operation.namespace_prefix}-{index}")
            case operations.DeletePods():
                await self._beside(self._delete_pods(operation), wait=not operation.skip_wait_to_completion)
            case operations.Churn():
                await self._churn(number, operation)
            case operations.Barrier():
                await self._barrier(operation)
            case operations.Sleep():
                await asyncio.sleep(operation.seconds)
            case operations.CreateAny():
                await self._create_any(operation)
            case operations.UpdateAny():
                await self._update_any(operation)
            case operations.StartCollectingMetrics():
                self._collecting = operation
                await self._start_measuring()
            case operations.StopCollectingMetrics():
                self._collecting = None
                await self.stopped()

    async def _start_measuring(self) -> None:
        """Begin once all is told of the pods before: a scheduler whose Events come late would write them meanwhile."""
        await self.observer.all_told(pod.uid for pod in self._pods)
        self.started()

    async def _beside(self, work: Any, *, wait: bool) -> None:
        if wait:
            await work
        else:
            self._background.append(asyncio.create_task(work))

    async def _create_nodes(self, number: int, operation: operations.CreateNodes) -> None:
        made = manifests.nodes(operation, self.case.directory, number=number, first=self._nodes)
        self._nodes += len(made)
        # The CSINode first: a node without one looks as if it had no limits.
        create = partial(writing.create, self.client)
        await writing.in_parallel(create, [csi for _, csi in made if csi is not None])
        await writing.in_parallel(create, [node for node, _ in made])

    async def _create_namespaces(self, operation: operations.CreateNamespaces) -> None:
        path = operation.namespace_template_path
        made = objects(self.case.directory / path, count=operation.count) if path else [{}] * operation.count
        for index, manifest in enumerate(made):
            await self._namespace(f"{operation.prefix}-{index}", manifest)

    async def _namespace(self, name: str, manifest: Manifest | None = None) -> None:
        base = manifest or {}
        await writing.create_namespace(self.client, {**base, "metadata": {**base.get("metadata", {}), "name": name}})

    async def _create_pods(self, operation: operations.CreatePods, namespace: str) -> None:
        await self._namespace(namespace)
        new = manifests.pods(
            operation,
            self.case.directory,
            default=self.case.pod_template,
            namespace=namespace,
            scheduler=self.scheduler,
        )
        measuring = operation.collect_metrics
        if measuring:
            await self._start_measuring()
        made: list[Created] = []

        async def create(pod: manifests.NewPod) -> None:
            meta = await writing.create_pod(self.client, pod, namespace=namespace)
            one = Created(meta["uid"], meta["name"], namespace, meta.get("labels", {}))
            self.observer.pods.answered(one.uid)
            made.append(one)
            start = self._collecting
            if measuring or (start is not None and one.selected(start.namespaces, start.label_selector)):
                self.measured.add(one.uid)

        await writing.in_parallel(create, new)
        self._pods += made
        if operation.skip_wait_to_completion:
            self._unawaited += made
        else:
            await self.observer.all_bound([pod.uid for pod in made])
        if measuring:
            await self.stopped()

    async def _barrier(self, operation: operations.Barrier) -> None:
        pods = [pod for pod in self._unawaited if pod.selected(operation.namespaces, operation.label_selector)]
        uids = [pod.uid for pod in pods]
        if operation.stage_requirement == "Attempted":
            await self.observer.all_attempted(uids)
        else:
            await self.observer.all_bound(uids)

    async def _delete_pods(self, operation: operations.DeletePods) -> None:
        chosen = [pod for pod in self._pods if pod.selected([operation.namespace], operation.label_selector)]

        async def delete(pod: Created) -> None:
            await writing.delete_pod(self.client, pod.name, pod.namespace)

        if not operation.delete_pods_per_second:
            await writing.in_parallel(delete, chosen)
            return
        async for index in ticks(1.0 / operation.delete_pods_per_second, count=len(chosen)):
            await delete(chosen[index])

    async def _churn(self, number: int, operation: operations.Churn) -> None:
        if operation.mode not in ("create", "recreate"):
            raise LeftOutError(f"mode {operation.mode} of operation churn is not understood")
        namespace = operation.namespace or f"namespace-{number}"
        await self._namespace(namespace)
        made = [objects(self.case.directory / path, count=1)[0] for path in operation.template_paths]
        made = [manifests.assigned(item, self.scheduler) if item["kind"] == "Pod" else item for item in made]
        for item in made:
            writing.resource_of(item)
        await self._beside(self._churning(operation, made, namespace), wait=False)

    async def _churning(self, operation: operations.Churn, made: list[Manifest], namespace: str) -> None:
        recreate = operation.mode == "recreate"
        limit = None if recreate or not operation.number else operation.number
        names: list[list[str]] = [[""] * operation.number for _ in made]
        async for turn in ticks(operation.interval_milliseconds / 1000, count=limit):
            for item, known in zip(made, names, strict=True):
                where = namespace if writing.resource_of(item).namespaced else None
                try:
                    if recreate and (name := known[turn % operation.number]):
                        known[turn % operation.number] = ""
                        await self.client.delete(writing.resource_of(item), name, namespace=where)
                    else:
                        metadata = await writing.create(self.client, item, namespace=where)
                        if recreate:
                            known[turn % operation.number] = metadata["name"]
                except ApiError:
                    continue  # as scheduler_perf does: what could not be created is not deleted

    async def _create_any(self, operation: operations.CreateAny) -> None:
        if operation.namespace:
            await self._namespace(operation.namespace)
        for item in objects(self.case.directory / operation.template_path, count=operation.count):
            await writing.create(self.client, item, namespace=operation.namespace)

    async def _update_any(self, operation: operations.UpdateAny) -> None:
        made = objects(self.case.directory / operation.template_path, count=operation.count)
        made = [manifests.assigned(item, self.scheduler) if item["kind"] == "Pod" else item for item in made]
        pause = 1.0 / operation.update_per_second if operation.update_per_second else 0.0
        async for index in ticks(pause, count=len(made)):
            await writing.replace(
                self.client, made[index], namespace=operation.namespace, subresources=operation.subresources
            )


async def ticks(seconds: float, *, count: int | None) -> AsyncIterator[int]:
    """Numbers from 0, one after each so many seconds, whatever is done in between, while that takes less."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    for number in itertools.count() if count is None else range(count):
        due = max(due + seconds, loop.time() if seconds else 0.0)
        await asyncio.sleep(max(0.0, due - loop.time()))
        yield number

"""One run: a scheduler is started on a new cluster, and the operations are run."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.live.scenario import Cpu
from bench.schedperf.bound import contender
from bench.schedperf.executor import Executor
from bench.schedperf.observe import Observer, StuckError
from bench.schedperf.operations import Operation
from bench.schedperf.results import Result, figures
from bench.schedperf.source import Case, Workload
from berth.kube.client import ApiClient
from hack.localcluster import LocalCluster


async def run(
    client: ApiClient,
    cluster: LocalCluster,
    *,
    case: Case,
    workload: Workload,
    sequence: Sequence[Operation],
    label: str,
    number: int,
    patience: float,
    baseline: Path | None,
) -> Result:
    """Run a workload once.

    Args:
        client: open API client.
        cluster: where to run it; nobody has run anything there.
        case: what is run.
        workload: how large.
        sequence: the case's operations at this size.
        label: who schedules.
        number: of the round.
        patience: seconds without a binding after which the run is given up.
        baseline: checkout of an earlier Berth, for the contender of that name.

    Raises:
        LeftOutError: a template is not understood.
    """
    observer = Observer(patience)
    spent, of_servers, problem = 0.0, 0.0, ""
    servers = [cluster.process(name).pid for name in ("kube-apiserver", "etcd")]
    with tempfile.TemporaryDirectory() as directory:
        scheduler = contender(label, cluster, Path(directory), baseline=baseline)
        try:
            pids = scheduler.start()  # before the watches: it holds up the event loop
            cpu, server_cpu = Cpu(pids), Cpu(servers)
            async with observer.following(client):

                def started() -> None:
                    nonlocal cpu, server_cpu
                    cpu, server_cpu = Cpu(pids), Cpu(servers)

                async def stopped() -> None:
                    nonlocal spent, of_servers
                    await observer.all_told(executor.measured)
                    spent, of_servers = cpu.spent(), server_cpu.spent()

                executor = Executor(client, case, scheduler.scheduler_name, observer, started, stopped)
                try:
                    await executor.run(sequence)
                except StuckError as error:
                    problem = str(error)
                    await stopped()
        finally:
            scheduler.stop()
    log = observer.pods
    return Result(
        case=case.name,
        workload=workload.name,
        params=workload.params,
        scheduler=label,
        round=number,
        cpu_seconds=spent,
        server_seconds=of_servers,
        problem=problem,
        **figures(executor.measured, created=log.created, bound=log.bound, told=observer.told),
    )

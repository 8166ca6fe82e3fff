"""``berth plan``: where pods would go, from manifests, a live cluster (read only) or both."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from berth.api.base import format_timestamp
from berth.cli.commands import (
    CLUSTER_ERRORS,
    UnreadableFileError,
    cluster_problem,
    fail,
    namespace_problem,
    read_file,
)
from berth.cli.listing import list_cluster
from berth.cli.output import Output, colored, print_document, terminal_width
from berth.cli.progress import progress_on_stderr
from controllers.networktopology.scale import COST_UNIT

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"


class LatencyPercentile(StrEnum):
    """Percentiles of latencies that sources publish."""

    p50 = "p50"
    p90 = "p90"
    p99 = "p99"


class Section(StrEnum):
    """Parts of the table."""

    pods = "pods"
    nodes = "nodes"
    groups = "groups"
    all = "all"


def plan(
    filename: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            help="Manifests: a YAML or JSON file, a directory of them with those below it, or - for standard input. "
            "Repeatable; where two state the same object, the later counts.",
        ),
    ] = None,
    from_cluster: Annotated[
        bool,
        typer.Option("--from-cluster", help="Start from what is in the cluster now; manifests come on top. Read only."),
    ] = False,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="Kubeconfig file. Default: $KUBECONFIG, the pod's service account, ~/.kube/config."),
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="For manifests that name none. Default: the context's, or default."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Profiles, as for `berth run --placement-config`. Default: built in.")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="Planning algorithm instead of the profiles', such as berth, phare or replicas.")
    ] = None,
    scheduler_name: Annotated[
        str | None, typer.Option(help="Plan the pods of this scheduler only. Default: those of all profiles.")
    ] = None,
    all_pods: Annotated[
        bool, typer.Option("--all-pods", help="Plan waiting pods of every scheduler as if they were Berth's.")
    ] = False,
    latency_percentile: Annotated[
        LatencyPercentile,
        typer.Option(help="As `berth run networktopology` has it, for NetworkTopologies of manifests."),
    ] = LatencyPercentile.p90,
    cost_unit_microseconds: Annotated[
        int,
        typer.Option(
            min=1, max=1_000_000, help="Likewise: microseconds of a measured latency that cost 1; 1000 as upstream."
        ),
    ] = COST_UNIT,
    planning_seconds: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Processor time that the plan of one AppGroup may take; when it is over, the best plan so far counts, "
            "and a note says so. Default: 10, or the profiles' planningSeconds if that is more.",
        ),
    ] = None,
    all_nodes: Annotated[bool, typer.Option("--all-nodes", help="Report nodes that get no pod too.")] = False,
    show: Annotated[list[Section] | None, typer.Option(help="Sections of the table. Repeatable. Default: all.")] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="Form of the answer.")] = Output.table,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")] = False,
) -> None:
    """Show where every pod would go, what that costs, and what does not fit and why. Nothing is changed.

    Nodes, pods, workloads (each as the pods it would create), AppGroups, NetworkTopologies and storage objects are read
    from manifests, from the cluster, or from both; pods that have a node count as used room.

    Examples:

      berth plan -f examples/

      berth plan -f shop.yaml --from-cluster -o json

      kubectl get nodes -o yaml | berth plan -f - -f shop/ --strategy phare

    Exit status: 0 all pods have a node, 3 some have none, 2 the input is wrong (said with file, line and field).
    """
    if not filename and not from_cluster:
        fail("berth plan: nothing to plan; name manifests with -f FILE, or use --from-cluster")
    if namespace and (problem := namespace_problem(namespace)):
        fail(f"berth plan: {problem}")
    try:
        sources = read_sources(filename or [])
        configuration = (str(config), read_file(config)) if config is not None else None
    except UnreadableFileError as error:
        fail(f"berth plan: {error}; name readable files with -f and --config")
    # Late, since `berth run` shares this program and has no use for the scheduling library.
    from berth.cli.plan import run as command

    with progress_on_stderr(quiet=quiet) as progress:
        live: dict[str, list[Any]] | None = None
        if from_cluster:
            try:
                live, own = asyncio.run(
                    list_cluster(
                        command.RESOURCES,
                        optional=command.MAY_LACK,
                        kubeconfig=str(kubeconfig) if kubeconfig else None,
                        context=context,
                        progress=progress,
                    )
                )
            except CLUSTER_ERRORS as error:
                fail(f"berth plan: {cluster_problem(error)}")
            namespace = namespace or own
        now = datetime.now(UTC)
        try:
            document = command.plan(
                sources,
                live=live,
                forecasts=command.forecasts(percentile=latency_percentile.value, cost_unit=cost_unit_microseconds),
                progress=progress,
                namespace=namespace or "default",
                configuration=configuration,
                strategy=strategy,
                scheduler_name=scheduler_name,
                all_pods=all_pods,
                planning_seconds=planning_seconds,
                all_nodes=all_nodes,
                now=format_timestamp(now),
            )
        except command.BadInputError as error:
            fail(f"berth plan: nothing was planned, the input is wrong\n{error}")
    print_document(
        document,
        output,
        lambda: command.render(
            document,
            show=[section.value for section in show or ()],
            width=terminal_width(),
            color=colored(sys.stdout),
        ),
    )
    raise typer.Exit(command.exit_code(document))


def read_sources(names: list[str]) -> list[tuple[str, str]]:
    """(name, text) of every file; those of a directory and the ones below it by path, hidden ones left out.

    Raises:
        UnreadableFileError: a file is not there or cannot be read.
    """
    sources: list[tuple[str, str]] = []
    for name in names:
        path = Path(name)
        if name == STDIN:
            sources.append((STDIN, read_file(None)))
        elif path.is_dir():
            chosen = [file for file in sorted(path.rglob("*")) if file.suffix in SUFFIXES and file.is_file()]
            chosen = [file for file in chosen if not any(p.startswith(".") for p in file.relative_to(path).parts)]
            if not chosen:
                raise UnreadableFileError(f"directory {name} has no {', '.join(SUFFIXES)} file")
            sources += [(str(file), read_file(file)) for file in chosen]
        else:
            sources.append((name, read_file(path)))
    return sources

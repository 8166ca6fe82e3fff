"""``kubectl berth topology``: reads the API server only."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from berth.cli.commands import CLUSTER_ERRORS, cluster_problem, fail, kind_missing, namespace_problem
from berth.cli.listing import USER_AGENT, OptionalLists
from berth.cli.output import Output, colored, print_document, terminal_width
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.errors import ApiError
from berth.kube.resources import NETWORK_TOPOLOGIES, NODES


def topology(
    name: Annotated[
        str | None, typer.Argument(help="Name of the NetworkTopology. Default: the only one of the namespace.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Namespace. Default: the context's.")
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="Kubeconfig file. Default: $KUBECONFIG, the pod's service account, ~/.kube/config."),
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="Form of the answer.")] = Output.table,
) -> None:
    """Show what it costs to talk between zones, and segments of a zone, and the round trips behind it.

    Costs are those that placement reads. Where they come from ProbeReports, round trips are worked out from these as
    they are now, as the networktopology controller does it: median of the 90th percentiles, least, most, pairs of
    nodes, age of the newest. Of other sources the age of the newest data is shown.

    Exit status: 0 shown, 2 no such NetworkTopology, or the cluster cannot be read.
    """
    # Late, since `berth run` shares this program and has no use for the scheduling library.
    from berth.cli.topology import document as documents
    from berth.cli.topology import tables
    from berth.kube.probe_reports import PROBE_REPORTS

    async def look() -> dict[str, Any]:
        connection = await load_connection(kubeconfig=str(kubeconfig) if kubeconfig else None, context=context)
        async with ApiClient(connection, user_agent=USER_AGENT, retries=1) as client:
            there = await _all(client, namespace or connection.namespace)
            read = documents.parsed(choose(there, name, namespace or connection.namespace))
            nodes = {node.metadata.name: node.metadata.labels for node in await client.list_all(NODES)}
            lists = OptionalLists(client)
            reports = await lists.read(PROBE_REPORTS) if documents.has_figures(read) else []
        return documents.topology_document(read, nodes, reports, now=datetime.now(UTC), unread=lists.unread)

    try:
        document = asyncio.run(look())
    except CLUSTER_ERRORS as error:
        fail(f"berth topology: {cluster_problem(error)}")
    except ValueError as error:
        fail(f"berth topology: {error}")
    width = terminal_width()
    print_document(document, output, lambda: tables.topology_page(document, width=width, color=colored(sys.stdout)))


async def _all(client: ApiClient, namespace: str) -> list[Any]:
    if problem := namespace_problem(namespace):
        raise ValueError(problem)
    try:
        return await client.list_all(NETWORK_TOPOLOGIES, namespace=namespace)
    except ApiError as error:
        if not error.not_found:
            raise
        raise ValueError(kind_missing(NETWORK_TOPOLOGIES.plural)) from error


def choose(there: list[Any], name: str | None, namespace: str) -> Any:
    """Return the NetworkTopology that is meant.

    Raises:
        ValueError: there is none, or several and none is named.
    """
    found = [item for item in there if name is None or item.metadata.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(sorted(item.metadata.name for item in found))
        raise ValueError(f"namespace {namespace!r} has several NetworkTopologies; name one of {names}")
    missing = "NetworkTopology" if name is None else f"NetworkTopology {name!r}"
    raise ValueError(
        f"there is no {missing} in namespace {namespace!r}; `kubectl get networktopologies -A` lists them, -n names "
        "another namespace"
    )

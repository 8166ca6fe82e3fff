"""``kubectl berth explain``: why a pod is where it is, how an AppGroup is placed, what is on a node, how far users are.

Reads only."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from berth.api.errors import InvalidObjectError
from berth.cli.commands import (
    CLUSTER_ERRORS,
    UnreadableFileError,
    cluster_problem,
    fail,
    kind_missing,
    namespace_problem,
    read_file,
)
from berth.cli.explain.types import TypeAndName
from berth.cli.listing import USER_AGENT, OptionalLists
from berth.cli.output import Output, colored, print_document, terminal_width
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.errors import ApiError
from berth.kube.resources import APP_GROUPS, EVENTS, LATENCY_POLICIES, NODES, PODS

explain = typer.Typer(
    name="explain",
    cls=TypeAndName,
    help="Say why Berth placed a pod where it is, or why it did not; by pod, by AppGroup, by node or by LatencyPolicy.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace. Default: the context's.")]
Kubeconfig = Annotated[
    Path | None, typer.Option(help="Kubeconfig file. Default: $KUBECONFIG, the pod's service account, ~/.kube/config.")
]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig.")]
Config = Annotated[
    Path | None,
    typer.Option(help="Profiles of the placement controller, if it was started with --placement-config."),
]
Form = Annotated[Output, typer.Option("--output", "-o", help="Form of the answer.")]

_NO_NAME = frozenset("/%")
"""Characters that no name of an object has."""


@explain.command("pod")
def explain_pod(
    name: Annotated[str, typer.Argument(help="Name of the pod.", show_default=False)],
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: Config = None,
    output: Form = Output.table,
) -> None:
    """Show the chosen node with each term of its cost, the runners-up, and what was rejected by which filter.

    For a pod without a node: what it waits for. The answer comes from the pod's annotation berth.dev/decision, its
    Events and its conditions; who may not list Events is told so, and the rest.

    Exit status: 0 explained, 2 no such pod, or the cluster cannot be read.
    """
    command, profiles = _prepare(config)

    async def look(client: ApiClient, namespace: str) -> dict[str, Any]:
        pod = await _get(client, PODS, name, namespace, "pods")
        lists = OptionalLists(client)
        events = await lists.read(EVENTS, namespace=namespace, field_selector=f"regarding.name={name}")
        events = [event for event in events if (event.get("regarding") or {}).get("kind") == "Pod"]
        now, unread = datetime.now(UTC), lists.unread
        return dict(command.pod_document(pod, events, schedulers=_names(profiles), now=now, unread=unread))

    document = _run(look, kubeconfig=kubeconfig, context=context, namespace=namespace)
    _print(document, output, command.pod_page)


@explain.command("appgroup")
def explain_appgroup(
    name: Annotated[str, typer.Argument(help="Name of the AppGroup.", show_default=False)],
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: Config = None,
    output: Form = Output.table,
) -> None:
    """Show the order, where each member is, what calls cost, what the group survives, and why members wait.

    Computed from the live objects with the weights of its pods' profile. Also what other Service settings would save.

    Exit status: 0 explained, 2 no such AppGroup, or the cluster cannot be read.
    """
    command, profiles = _prepare(config)

    async def look(client: ApiClient, namespace: str) -> dict[str, Any]:
        group = await _get(client, APP_GROUPS, name, namespace, "appgroups")
        facts = await command.read_group_facts(client, group, profiles=profiles.profiles)
        return dict(command.group_document(facts, schedulers=_names(profiles), now=datetime.now(UTC)))

    document = _run(look, kubeconfig=kubeconfig, context=context, namespace=namespace)
    _print(document, output, command.group_page)


@explain.command("node")
def explain_node(
    name: Annotated[str, typer.Argument(help="Name of the node.", show_default=False)],
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only waiting pods of this namespace. Default: of all.")
    ] = None,
    pod: Annotated[
        str | None,
        typer.Option(help="Judge this pod instead, as [NAMESPACE/]NAME, waiting or on another node.", metavar="POD"),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: Config = None,
    output: Form = Output.table,
) -> None:
    """Show what Berth put on a node and why, what room is left, and which waiting pods the node would take.

    Waiting pods are judged by the scheduler's own filters: how many of each workload would fit, and what rejects the
    others there.

    Exit status: 0 explained, 2 no such node or pod, or the cluster cannot be read.
    """
    command, profiles = _prepare(config)

    async def look(client: ApiClient, own: str) -> dict[str, Any]:
        node, stated = await _get(client, NODES, name, "", "nodes"), None
        if pod is not None:
            first, slash, last = pod.rpartition("/")
            stated = await _get(client, PODS, last, first if slash else own, "pods")
            if stated.spec.node_name == name:
                _refuse(f"pod {stated.key} is on node {name} already; `kubectl berth explain pod {last}` says why")
        facts = await command.read_node_facts(
            client,
            node,
            schedulers=_names(profiles),
            namespace=namespace,
            stated=stated,
            links=any(profile.check_risk_node_bandwidth is not None for profile in profiles.profiles),
        )
        return dict(command.node_document(facts, profiles, now=datetime.now(UTC)))

    document = _run(look, kubeconfig=kubeconfig, context=context, namespace=namespace)
    _print(document, output, command.node_page)


@explain.command("latencypolicy")
def explain_latencypolicy(
    name: Annotated[str, typer.Argument(help="Name of the LatencyPolicy.", show_default=False)],
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Form = Output.table,
) -> None:
    """Show how far users are from every node and why it is valid or not, what was moved, and what that gained.

    Whether a node has room is told by `kubectl berth explain node`.

    Exit status: 0 explained, 2 no such LatencyPolicy, or the cluster cannot be read.
    """
    command, _ = _prepare(None)

    async def look(client: ApiClient, namespace: str) -> dict[str, Any]:
        policy = await _get(client, LATENCY_POLICIES, name, namespace, "latencypolicies")
        lists = OptionalLists(client)
        pods = await client.list_all(PODS, namespace=namespace)
        nodes = await lists.read(NODES)
        try:
            found = command.policy_document(policy, pods=pods, nodes=nodes, unread=lists.unread, now=datetime.now(UTC))
        except InvalidObjectError as error:
            _refuse(str(error))
        return dict(found)

    document = _run(look, kubeconfig=kubeconfig, context=context, namespace=namespace)
    _print(document, output, command.policy_page)


def _names(profiles: Any) -> list[str]:
    return [profile.scheduler_name for profile in profiles.profiles]


def _prepare(config: Path | None) -> tuple[Any, Any]:
    """The command's module and the profiles."""
    # Late, since `berth run` shares this program and has no use for the scheduling library.
    from berth.cli.explain import run as command

    try:
        return command, command.profiles((str(config), read_file(config)) if config is not None else None)
    except (UnreadableFileError, command.ConfigurationError) as error:
        _refuse(f"{error}; name the file that `berth run placement` was started with")


def _run(
    look: Callable[[ApiClient, str], Awaitable[dict[str, Any]]],
    *,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
) -> dict[str, Any]:
    async def connected() -> dict[str, Any]:
        connection = await load_connection(kubeconfig=str(kubeconfig) if kubeconfig else None, context=context)
        async with ApiClient(connection, user_agent=USER_AGENT, retries=1) as client:
            return await look(client, namespace or connection.namespace)

    try:
        return asyncio.run(connected())
    except CLUSTER_ERRORS as error:
        _refuse(cluster_problem(error))


async def _get(client: ApiClient, resource: Any, name: str, namespace: str, plural: str) -> Any:
    if not name:
        _refuse(f"the name of the {resource.kind} is empty; `kubectl get {plural}` lists names")
    if name in (".", "..") or not _NO_NAME.isdisjoint(name):
        # The API server takes what is behind a slash for a part of the object, such as its status.
        _refuse(f"{name!r} is no name of a {resource.kind}; `kubectl get {plural}` lists names")
    if resource.namespaced and (problem := namespace_problem(namespace)):
        _refuse(problem)
    try:
        return await client.get(resource, name, namespace=namespace or None)
    except ApiError as error:
        if not error.not_found:
            raise
        if resource.group and (error.reason != "NotFound" or "could not find" in error.message):
            _refuse(kind_missing(plural))
        if not resource.namespaced:
            _refuse(f"there is no {resource.kind} {name!r}; `kubectl get {plural}` lists them")
        _refuse(
            f"there is no {resource.kind} {name!r} in namespace {namespace!r}; `kubectl get {plural} -A` lists them, "
            "-n names another namespace"
        )


def _refuse(problem: str) -> NoReturn:
    fail(f"berth explain: {problem}")


def _print(document: dict[str, Any], output: Output, page: Callable[..., str]) -> None:
    width = terminal_width()
    print_document(document, output, lambda: page(document, width=width, color=colored(sys.stdout)))

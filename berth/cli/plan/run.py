"""What ``berth plan`` runs: from sources and options to a document and its text. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from berth.cli.plan.report import plan_document
from berth.cli.plan.tables import SECTIONS, plan_page
from berth.kube.memory import collection_paused
from berth.scheduling.configuration import (
    ConfigurationError,
    PlacementConfiguration,
    parse_configuration,
)
from berth.scheduling.configuration_text import configuration_of
from berth.scheduling.simulation import inputs
from berth.scheduling.simulation.inputs import READ, Forecast, Live, assemble
from berth.scheduling.simulation.manifests import Source, read_documents
from berth.scheduling.simulation.simulate import Progress, silent, simulate
from controllers.appgroup import forecast as appgroup
from controllers.networktopology import forecast as networktopology
from controllers.networktopology.scale import COST_UNIT
from controllers.networktopology.sources.base import Percentile

PLANNING_SECONDS = 10.0
"""Time budget of a plan. More than a controller's: nobody waits for it, and it is to show what would be best."""
RESOURCES = READ
"""Kinds to list from a live cluster."""
MAY_LACK = inputs.MAY_LACK
"""Kinds to list if that is allowed; without them costs come from other sources, and no links and sockets are known."""


def forecasts(
    *,
    percentile: Percentile = "p90",
    cost_unit: int = COST_UNIT,
) -> Mapping[str, Forecast]:
    """By kind, what its controller would fill into a new object.

    Args:
        percentile: of the latencies that the networktopology controller reads.
        cost_unit: microseconds of latency that cost 1 there.
    """
    topology = partial(networktopology.forecast, percentile=percentile, cost_unit=cost_unit)
    return {"AppGroup": appgroup.forecast, "NetworkTopology": topology}


FORECASTS = forecasts()
"""Those of controllers that are started without options."""


class BadInputError(ValueError):
    """Input that cannot be planned; the text has a line for every problem."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to plan."""

    namespace: str = "default"
    """for objects that name none"""
    configuration: Source | None = None
    """placement configuration; defaults without one"""
    strategy: str | None = None
    """gang strategy instead of the profiles'"""
    scheduler_name: str | None = None
    """only pods of this scheduler"""
    all_pods: bool = False
    """plan the pods of all schedulers"""
    all_nodes: bool = False
    """report nodes without planned pods too"""
    planning_seconds: float | None = None
    """processor time that the plan of one AppGroup may take; None for 10, or the profiles' budget if that is more"""
    now: str = ""
    """RFC 3339 creation time of objects that have none"""


@collection_paused()
def plan(
    sources: Sequence[tuple[str, str]],
    *,
    live: Live | None = None,
    forecasts: Mapping[str, Forecast] | None = None,
    progress: Progress = silent,
    **options: Any,
) -> dict[str, Any]:
    """Plan.

    Args:
        sources: (file name, text) in the order of the command line.
        live: objects of a cluster by kind.
        forecasts: what other controllers would fill in, by kind.
        progress: told how far it is.
        options: fields of :class:`Options`; `configuration` is a (file name, text) pair.

    Returns:
        The document of :func:`berth.cli.plan.report.plan_document`.

    Raises:
        BadInputError: something in the input is wrong; nothing was planned.
    """
    if options.get("configuration") is not None:
        options["configuration"] = Source(*options["configuration"])
    chosen = Options(**options)
    try:
        configuration = configure(chosen)
    except ConfigurationError as error:
        raise BadInputError(str(error)) from error
    documents, problems = read_documents(
        [Source(*source) for source in sources], progress=lambda done: progress("reading manifests", done, 0)
    )
    found, more = assemble(
        documents,
        live=live,
        namespace=chosen.namespace,
        now=chosen.now,
        forecasts=forecasts or {},
        progress=lambda done: progress("checking manifests", done, len(documents)),
    )
    problems = [*problems, *more]
    if problems:
        order = {name: number for number, (name, _) in enumerate(sources)}
        problems.sort(key=lambda problem: (order.get(problem.source, len(order)), problem.line))
        raise BadInputError("\n".join(str(problem) for problem in problems))
    if not found.of("Node"):
        raise BadInputError(
            "there are no nodes to plan on; add Node manifests with -f (kubectl get nodes -o yaml prints those of a "
            "cluster), or use --from-cluster"
        )
    seconds = configuration.profiles[0].gang.planning_seconds  # all have the same, see configure
    simulation = simulate(found, configuration, all_pods=chosen.all_pods, seconds=seconds, progress=progress)
    return plan_document(simulation, found, all_nodes=chosen.all_nodes)


def configure(options: Options) -> PlacementConfiguration:
    """The profiles that a plan uses.

    Raises:
        ConfigurationError: the file or the strategy is wrong.
    """
    configuration = PlacementConfiguration()
    if options.configuration is not None:
        configuration = configuration_of(options.configuration.text, source=options.configuration.name)
    profiles = [profile.model_dump(by_alias=True) for profile in configuration.profiles]
    if options.scheduler_name is not None:
        own = [profile for profile in profiles if profile["schedulerName"] == options.scheduler_name]
        profiles = own or [{**profiles[0], "schedulerName": options.scheduler_name}]
    seconds = options.planning_seconds
    if seconds is None:
        seconds = max(PLANNING_SECONDS, *(profile["gang"]["planningSeconds"] for profile in profiles))
    for profile in profiles:
        profile["gang"]["planningSeconds"] = seconds
        if options.strategy is not None:
            profile["gang"]["strategy"] = options.strategy
    return parse_configuration({"profiles": profiles}, source="options")


def render(document: Mapping[str, Any], *, show: Sequence[str], width: int | None, color: bool = False) -> str:
    """The plan as text; `show` holds ``pods``, ``nodes``, ``groups`` or ``all``."""
    sections = SECTIONS if "all" in show or not show else show
    return plan_page(document, show=sections, width=width, color=color)


def exit_code(document: Mapping[str, Any]) -> int:
    """0 when every pod has a node, 3 otherwise."""
    return 3 if document["summary"]["notPlaced"] else 0

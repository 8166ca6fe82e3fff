"""The conditions WeightsComputed and Complete: their status, reasons and messages, each with what to do about it.

SourceAvailable belongs to the source: :meth:`controllers.networktopology.sources.base.Source.availability`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final

from berth.api.conditions import ConditionUpdate
from berth.api.errors import FieldProblem
from berth.api.networktopology import CONDITION_COMPLETE, CONDITION_SOURCE_AVAILABLE, CONDITION_WEIGHTS_COMPUTED
from berth.api.text import LISTED, counted, listed
from controllers.networktopology.aggregation import Pair
from controllers.networktopology.compute import Computation
from controllers.networktopology.place_pairs import PlacePairs
from controllers.networktopology.places import Places, Site

CONDITIONS: Final = (CONDITION_SOURCE_AVAILABLE, CONDITION_WEIGHTS_COMPUTED, CONDITION_COMPLETE)
"""Types of the conditions that this controller writes."""


def weights_computed(computation: Computation) -> ConditionUpdate:
    """Return the condition WeightsComputed: which weight sets were computed, from what."""
    if not computation.basis:
        text = "There is nothing to compute from; see the condition SourceAvailable"
        return ConditionUpdate(CONDITION_WEIGHTS_COMPUTED, False, "NoSource", text)
    if computation.too_large:
        text = (
            f"{computation.basis} connects so many places that their cheapest paths are not computed: direct costs "
            "alone count; leave out the places that no node carries, or split the object"
        )
        return ConditionUpdate(CONDITION_WEIGHTS_COMPUTED, False, "TooManyPlaces", text)
    if not computation.sets:
        text = (
            f"{computation.basis} connects no two regions and no two zones of a region; label the nodes with "
            "topology.kubernetes.io/region and topology.kubernetes.io/zone, and measure between zones"
        )
        return ConditionUpdate(CONDITION_WEIGHTS_COMPUTED, False, "NoPlacesConnected", text)
    costs = next(iter(computation.sets.values()))
    text = (
        f"{' and '.join(computation.sets)} from {computation.basis}: {counted(len(costs.regions), 'region cost')}, "
        f"{counted(len(costs.zones), 'zone cost')}"
    )
    if costs.segments:
        text += f", {counted(len(costs.segments), 'segment cost')}"
    return ConditionUpdate(CONDITION_WEIGHTS_COMPUTED, True, "Computed", text)


def complete(computation: Computation, places: Places, spec_problems: Sequence[FieldProblem] = ()) -> ConditionUpdate:
    """Return the condition Complete: pairs of places without a cost, nodes without a place, entries that are no use."""
    regions, zones = computation.missing_regions, computation.missing_zones
    problems: list[tuple[str, str]] = []
    if computation.measured:
        remedy = f"publish measurements between their nodes in {computation.basis}"
    else:
        remedy = "state their costs in UserDefined, or measure them"
    if regions:
        problems.append(("MissingCosts", f"No path between regions: {name_pairs(regions)}; {remedy}"))
    if zones:
        problems.append(("MissingCosts", f"No path between zones: {name_pairs(zones)}; {remedy}"))
    if cut := dict.fromkeys(computation.cut_segments):
        text = f"No answer between segments: {listed([*_names(cut)])}; see what keeps their nodes apart"
        problems.append(("MissingCosts", text))
    if computation.crowded:
        text = (
            "Segments have no costs, for an object has no room for as many, in "
            f"{listed([_name(site) for site in computation.crowded])}; make larger ones"
        )
        problems.append(("TooManySegments", text))
    if computation.left_out:
        text = (
            f"The object has no room for {listed(computation.left_out)}; take other weight sets out of it, or give "
            "places shorter names"
        )
        problems.append(("NoRoom", text))
    if places.unlabelled:
        fix = "label them with topology.kubernetes.io/region and topology.kubernetes.io/zone"
        text = f"Nodes without a region or zone label: {listed(places.unlabelled)}; {fix}"
        problems.append(("NodesNotLabelled", text))
    if places.split_zones:
        split = [f"{zone} ({', '.join(regions)})" for zone, regions in places.split_zones.items()]
        fix = "give every zone a name of its own"
        problems.append(("ZoneInSeveralRegions", f"Zones with nodes in several regions: {listed(split)}; {fix}"))
    if places.split_segments:
        split = [f"{name} ({', '.join(map(_name, sites))})" for name, sites in places.split_segments.items()]
        fix = "give every segment a name of its own"
        problems.append(("SegmentInSeveralZones", f"Segments with nodes in several zones: {listed(split)}; {fix}"))
    if spec_problems:
        problems.append(("SpecProblems", listed([str(problem) for problem in spec_problems], separator="; ")))
    if problems:
        return ConditionUpdate(CONDITION_COMPLETE, False, problems[0][0], ". ".join(text for _, text in problems))
    pairs = f"{counted(len(places.region_pairs()), 'region pair')} and {counted(len(places.zone_pairs()), 'zone pair')}"
    return ConditionUpdate(CONDITION_COMPLETE, True, "AllPairsKnown", f"Nothing is missing: {pairs} of nodes' places")


def _name(site: Site) -> str:
    """Return region and zone as one word, or the one of them that there is."""
    return "/".join(filter(None, site))


def name_pairs(pairs: PlacePairs) -> str:
    """Return the first pairs as ``a to b``, both directions as ``a and b``, and how many there are beyond them."""
    return listed(list(islice(_names(pairs), LISTED)), total=pairs.links)


def _names(pairs: Collection[Pair]) -> Iterator[str]:
    for origin, destination in pairs:
        if (destination, origin) not in pairs:
            yield f"{origin} to {destination}"
        elif origin < destination:
            yield f"{origin} and {destination}"

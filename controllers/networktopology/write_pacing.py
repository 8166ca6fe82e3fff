"""When computed weights that differ from the object's are worth a write, where measuring never ends.

Every round of probes gives slightly other figures, and each write of weights has every scheduler read them anew. So
small differences wait: they are written together after :data:`REFRESH_SECONDS`. Large ones are written at once, but
:data:`WRITE_SECONDS` after the last write at the earliest. The API server knows when that was, so that a restarted
controller waits as long as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any, Final

from berth.api.networktopology import NetworkTopologyStatus
from controllers.networktopology.weights import Ownership

WRITE_SECONDS: Final = 30.0
"""Seconds between two writes of weights to one NetworkTopology."""
REFRESH_SECONDS: Final = 600.0
"""Seconds after which differences are written that are too small otherwise."""
COST_SHARE: Final = 0.1
"""Share of a cost by which it must change."""
COST_STEP: Final = 1
"""And by more than this much."""
TIME_STEP: Final = timedelta(seconds=60)
"""Least difference of ``dataTime`` that is a write of its own."""
WORDS_SECONDS: Final = 30.0
"""Seconds between two writes of a status in which nothing but reasons and messages differs: nodes come and go, and say
nonsense, or say it by turns."""

_Cost = tuple[str, str, str, int | None]
"""Topology key, origin, destination and cost, None without one."""
_NO_COST: Final[_Cost] = ("", "", "", None)
_NO_SET: Final[Mapping[str, Any]] = {"topologyList": ()}


def seconds_until_write(
    live: Iterable[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]], owned: Ownership, now: datetime
) -> float:
    """Return how long weights that differ should wait, 0 to write them now.

    Args:
        live: ``spec.weights`` of the object.
        wanted: computed sets.
        owned: what the object says about the controller's own sets.
        now: the present.
    """
    names = frozenset(str(item["name"]) for item in wanted)
    if names != owned.names or owned.time is None:
        return 0.0  # a set comes or goes, or somebody else has changed one
    interval = WRITE_SECONDS if _differ(live, wanted) else REFRESH_SECONDS
    elapsed = (now - owned.time).total_seconds()
    if elapsed < -interval:
        return 0.0  # that was another clock, and every look would find the same until this one has caught up
    return min(max(0.0, interval - elapsed), interval)


def data_time(shown: datetime | None, measured: datetime | None) -> datetime | None:
    """Return the time of the newest measurement to show: the one that is shown, until it is a minute off."""
    if shown is None or measured is None:
        return measured
    return shown if abs(measured - shown) < TIME_STEP else measured


def seconds_until_words(
    shown: NetworkTopologyStatus, wanted: NetworkTopologyStatus, written: datetime | None, now: datetime
) -> float:
    """Return how long a status that differs should wait, 0 to write it now.

    Args:
        shown: that of the object.
        wanted: what is true now.
        written: when the controller's part of it last changed.
        now: the present.
    """
    if written is None or _wordless(shown) != _wordless(wanted):
        return 0.0
    elapsed = (now - written).total_seconds()
    if elapsed < -WORDS_SECONDS:
        return 0.0  # another clock, as above
    return min(max(0.0, WORDS_SECONDS - elapsed), WORDS_SECONDS)


def _wordless(status: NetworkTopologyStatus) -> NetworkTopologyStatus:
    silent = tuple(item.model_copy(update={"reason": "", "message": ""}) for item in status.conditions)
    return status.model_copy(update={"conditions": silent})


def _differ(live: Iterable[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a cost differs by much, or a pair is there in one of them alone.

    The order is the same wherever this controller has written both, so that nothing needs to be looked up.
    """
    there = {item["name"]: item for item in live}
    for item in wanted:
        before, after = _costs(there.get(item["name"], _NO_SET)), _costs(item)
        for (*pair, cost), (*other, new) in zip_longest(before, after, fillvalue=_NO_COST):
            if pair != other or _moved(cost, new):
                return True
    return False


def _moved(before: int | None, after: int | None) -> bool:
    if before is None or after is None:
        return before is not after
    return abs(after - before) > max(COST_STEP, COST_SHARE * before)


def _costs(item: Mapping[str, Any]) -> Iterator[_Cost]:
    for level in item["topologyList"]:
        for row in level["originList"]:
            for cost in row.get("costList", ()):
                yield level["topologyKey"], row["origin"], cost["destination"], cost.get("networkCost")

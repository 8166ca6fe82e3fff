"""Violations of QoS limits per 16 pods, by policy: ``python -m bench.interference``; options by ``--help``.

4 nodes of 2 sockets for 2 pods each; pods run beside one other, and the published table says how much slower. Random
mixes are run with the same policies as the three published workloads. Nothing is measured but counted.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Final, NamedTuple

from bench.interference import policies, workloads
from bench.interference.bound import least_of_pairs
from bench.interference.joint import Planned
from bench.interference.policies import Policy
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.slowdown import SlowdownModel, Workload

LIMITS: Final = (1.1, 1.2, 1.3)
FIXED_TRIES: Final = 200
"""Tries of a published workload: chance decides between equal nodes."""
MIX_TRIES: Final = 3
"""Tries of each random mix; a mix counts once, with their mean."""
OWN: Final = "least slowdown, pinned"
OWN_BY_CHANCE: Final = "least slowdown, not pinned"
TOGETHER: Final = "least slowdown, all 16 together"
OTHERS: Final = ("random", "least occupied, not pinned", "greedy", "sparing", "socket-based")
"""Policies that Berth's own must not be worse than; every row whose name begins so."""
OTHERS_BY_CHANCE: Final = (*OTHERS[:2], *(f"{name}, not pinned" for name in OTHERS[2:]))
"""The same where nobody pins."""


class Figure(NamedTuple):
    """A mean over samples and half of its 95 % confidence interval."""

    mean: float
    half_width: float

    def __str__(self) -> str:
        """Return both to two places."""
        return f"{self.mean:.2f} ± {self.half_width:.2f}" if self.half_width else f"{self.mean:.2f}"


Row = dict[str, list[Figure]]
"""Violations at each limit, and the mean slowdown, by set of mixes."""


def figure(samples: Sequence[float]) -> Figure:
    """Return the mean of samples with its confidence interval."""
    spread = stdev(samples) if len(samples) > 1 else 0.0
    return Figure(fmean(samples), 1.96 * spread / len(samples) ** 0.5)


def outcome(model: SlowdownModel, sockets: policies.Sockets) -> list[float]:
    """Return the number of pods above each limit, and the mean slowdown."""
    slowdowns = [slowdown for residents in sockets for slowdown in model.slowdowns(residents)]
    return [*(float(sum(slowdown > limit for slowdown in slowdowns)) for limit in LIMITS), fmean(slowdowns)]


def run(
    model: SlowdownModel, policy: Policy, mixes: Sequence[Sequence[Workload]], tries: int, seed: int
) -> list[Figure]:
    """Return the figures of a policy over mixes; of a single mix every try is a sample, otherwise every mix."""
    drawn = random.Random(seed)
    by_mix = [[outcome(model, policy(mix, drawn)) for _ in range(tries)] for mix in mixes]
    samples = by_mix[0] if len(mixes) == 1 else [[fmean(column) for column in zip(*own, strict=True)] for own in by_mix]
    return [figure(column) for column in zip(*samples, strict=True)]


def optimum(model: SlowdownModel, mixes: Sequence[Sequence[Workload]]) -> list[Figure]:
    """Return the least that is possible, in each column for itself."""

    def above(limit: float, mix: Sequence[Workload]) -> float:
        return least_of_pairs(mix, lambda *pair: float(sum(each > limit for each in model.slowdowns(pair))))

    found = [figure([above(limit, mix) for mix in mixes]) for limit in LIMITS]
    means = [least_of_pairs(mix, lambda *pair: sum(model.slowdowns(pair))) / len(mix) for mix in mixes]
    return [*found, figure(means)]


def all_policies(model: SlowdownModel, likely: Sequence[Workload]) -> dict[str, tuple[Policy, bool]]:
    """Return policies by name, and whether they go by the classes of the thesis."""
    own, by_class = LeastSlowdown(model, likely), LeastSlowdown(SlowdownModel(), likely)
    published = {"greedy": policies.by_greedy, "sparing": policies.by_sparing, "socket-based": policies.by_socket}
    found: dict[str, tuple[Policy, bool]] = {
        "random": (policies.at_random, False),
        "least occupied, not pinned": (policies.one_at_a_time(policies.least_occupied, pinned=False), False),
        "least occupied, best pairing": (policies.spread_and_paired(own), False),
    }
    for name, score in published.items():
        for pinned, how in ((False, "not pinned"), (True, "pinned")):
            policy = policies.one_at_a_time(score, pinned=pinned)
            found[f"{name}, {how}"] = (policy, False)
            found[f"{name}, {how}, classes of the thesis"] = (policy, True)
    return found | {
        OWN_BY_CHANCE: (policies.least_slowdown_by_chance(own), False),
        "least slowdown, pinned, by classes alone": (policies.least_slowdown(by_class), False),
        "least slowdown, pinned, lone pods free": (policies.least_slowdown(LeastSlowdown(model)), False),
        OWN: (policies.least_slowdown(own), False),
        "least slowdown, all sockets paired at once": (policies.together(own), False),
        TOGETHER: (Planned(model, likely), False),
    }


def measure(mix_count: int, seed: int, order_count: int = 0) -> dict[str, Row]:
    """Return the figures of all policies, and of the optimum; of a workload in other orders each is tried once."""
    model = workloads.model()
    sets = {
        name: workloads.orders(name, order_count, seed) if order_count else [names]
        for name, names in workloads.PUBLISHED.items()
    }
    sets["mixes"] = workloads.random_mixes(mix_count, seed)
    kinds = {thesis: workloads.benchmarks(thesis=thesis) for thesis in (False, True)}
    rows: dict[str, Row] = {}
    for name, (policy, thesis) in all_policies(model, list(kinds[False].values())).items():
        rows[name] = {}
        for set_name, mixes in sets.items():
            tries = 1 if name == TOGETHER else MIX_TRIES if set_name == "mixes" else 1 if order_count else FIXED_TRIES
            pods = [[kinds[thesis][each] for each in mix] for mix in mixes]
            rows[name][set_name] = run(model, policy, pods, tries, seed)
    rows["optimum, each column for itself"] = {
        set_name: optimum(model, [[kinds[False][each] for each in mix] for mix in mixes])
        for set_name, mixes in sets.items()
    }
    return rows


def shortfalls(rows: dict[str, Row]) -> list[str]:
    """Return what is missed: goals, and cells where another policy has fewer violations than Berth's own."""
    goals = [(OWN, "mixes", 0, 3.3), (OWN, "mixes", 1, 0.10), (TOGETHER, "mixes", 0, 2.1), (TOGETHER, "mixes", 1, 0.0)]
    goals += [(OWN, name, 1, 0.05) for name in workloads.PUBLISHED]
    goals += [(TOGETHER, name, 0, most) for name, most in (("low", 0), ("mid", 1), ("high", 1))]
    found = [
        f"{name}, {set_name}: {rows[name][set_name][at].mean:.3f} at {LIMITS[at]}, goal {most}"
        for name, set_name, at, most in goals
        if rows[name][set_name][at].mean > most
    ]
    for best, others in ((OWN, OTHERS), (OWN_BY_CHANCE, OTHERS_BY_CHANCE)):
        for other in (name for name in rows if name.startswith(others)):
            for set_name, figures in rows[other].items():
                for at, limit in enumerate(LIMITS):
                    own = rows[best][set_name][at].mean
                    if figures[at].mean < own:
                        found.append(f"{set_name} at {limit}: {other} has {figures[at].mean:.3f}, {best} {own:.3f}")
    return found


def table(rows: dict[str, Row], set_name: str) -> str:
    """Return the rows of one set of mixes in Markdown."""
    lines = [
        f"| {set_name} | " + " | ".join(f"above {limit}" for limit in LIMITS) + " | mean slowdown |",
        "|---" * 5 + "|",
    ]
    for name, row in rows.items():
        *violations, mean = row[set_name]
        lines.append(f"| {name} | " + " | ".join(map(str, violations)) + f" | {mean.mean:.3f} |")
    return "\n".join(lines)


def main() -> int:
    """Run from the command line; exit status 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.interference", description=__doc__)
    parser.add_argument("--mixes", type=int, default=200, help="random mixes of 16 pods")
    parser.add_argument("--seed", type=int, default=1, help="seed of mixes and of chance between equals")
    parser.add_argument("--orders", type=int, default=0, help="other orders of each workload, by chance; 0: its own")
    parser.add_argument("--json", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    rows = measure(arguments.mixes, arguments.seed, arguments.orders)
    for set_name in (*workloads.PUBLISHED, "mixes"):
        print(table(rows, set_name), end="\n\n")
    missed = shortfalls(rows)
    print("\n".join(missed) or "All goals are met.")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

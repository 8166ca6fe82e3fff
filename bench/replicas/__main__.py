"""Placements of replicated applications, judged by an evaluator of its own.

    .venv/bin/python -m bench.replicas evaluate -f snapshot.yaml
    .venv/bin/berth plan -f examples -o json > plan.json
    .venv/bin/python -m bench.replicas evaluate -f examples --plan plan.json
    .venv/bin/python -m bench.replicas boutique --strategy replicas
    .venv/bin/python -m bench.replicas boutique --live
    .venv/bin/python -m bench.replicas grow
    .venv/bin/python -m bench.replicas rollouts --number 72
    .venv/bin/python -m bench.replicas scalings
    .venv/bin/python -m bench.replicas large
    .venv/bin/python -m bench.replicas add
    .venv/bin/python -m bench.replicas compare --problems 500

A snapshot is what ``kubectl get nodes,pods,services,appgroups,networktopologies -A -o yaml`` prints. The columns are
those of docs/concepts/replicas.md; figures are in docs/benchmarks/replicas.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import yaml

from bench.replicas import additions, boutique, comparison, growth, large, rollouts, scalings
from bench.replicas.cluster import Manifest, read_cluster
from bench.replicas.live import run_live
from bench.replicas.report import COLUMNS, cells, page, table


def documents(names: Sequence[str]) -> Iterator[Manifest]:
    """Objects of manifests; of a directory, those in it and below it by path."""
    for name in names:
        path = Path(name)
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in found:
            if file.suffix == ".json":
                yield json.loads(file.read_text())
            elif file.suffix in (".yaml", ".yml"):
                yield from (item for item in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader) if item)


def boutique_page(results: Iterable[boutique.Result]) -> str:
    """A row for every case of Online Boutique."""
    rows = []
    for found in results:
        case = found.case
        services = case.prefer or "all endpoints"
        broken = f"{len(found.broken)}" if found.broken else "none"
        more = [str(found.waiting), broken, f"{found.seconds:.2f}"]
        rows.append([case.name, case.rule, services, *cells(found.evaluation), *more])
    return table(["case", "rules", "Services", *COLUMNS, "waiting", "rules broken", "seconds"], rows)


GROWN = tuple(
    boutique.Case(rule=rule, prefer=prefer) for rule in list(boutique.RULES)[:2] for prefer in ("", "PreferSameZone")
)
"""Cases whose applications live on."""


def growth_page(cases: Sequence[boutique.Case] = GROWN, *, strategy: str | None = None) -> str:
    """A row for every step in the life of an application, with figures of as many replicas placed from scratch."""
    rows = []
    for case in cases:
        for step in growth.grow(case, partial(growth.by_berth_plan, strategy=strategy)):
            pairs = [
                (f"{found.cost:.2f}", str(found.survive_node), str(found.survive_zone))
                for found in (step.lived, step.fresh)
            ]
            both = [f"{lived} / {fresh}" for lived, fresh in zip(*pairs, strict=True)]
            more = [str(step.waiting), str(step.broken) if step.broken else "none"]
            rows.append([case.rule, case.prefer or "all endpoints", step.name, *both, *more])
    header = ["rules", "Services", "step", "mean edge cost / from scratch", "survive node", "survive zone"]
    return table([*header, "waiting", "rules broken"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a subcommand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    evaluation = commands.add_parser("evaluate", help="evaluate pods as they are bound, or as a plan would bind them")
    evaluation.add_argument("-f", "--filename", action="append", required=True, help="manifests; repeatable")
    evaluation.add_argument("--plan", type=Path, help="output of `berth plan -o json` over these manifests")
    shop = commands.add_parser("boutique", help="plan Online Boutique with replicas, Services and rules")
    shop.add_argument("--live", action="store_true", help="deploy it on a local control plane instead")
    grown = commands.add_parser("grow", help="let Online Boutique grow, shrink and be rolled out")
    rolled = commands.add_parser("rollouts", help="roll out Online Boutique as a whole, wave after wave")
    rolled.add_argument("--number", type=int, default=72, help="how many rollouts; default: 72")
    rolled.add_argument("--first", type=int, default=0, help="seed of the first; default: 0")
    rolled.add_argument("--scores", action="store_true", help="without the AppGroup: by kube-scheduler's scores")
    walks = commands.add_parser("scalings", help="scale Online Boutique as a whole, up and down, six times")
    walks.add_argument("--number", type=int, default=20, help="how many applications; default: 20")
    walks.add_argument("--first", type=int, default=0, help="seed of the first; default: 0")
    commands.add_parser("large", help="roll out many replicas, with and without the pods to come in the plan")
    commands.add_parser("add", help="one more replica for each of 150 applications, costs from 1 to 3000")
    compared = commands.add_parser("compare", help="`berth plan` beside the optimum of generated problems")
    compared.add_argument("--problems", type=int, default=500, help="how many; default: 500")
    compared.add_argument("--first", type=int, default=0, help="seed of the first; default: 0")
    compared.add_argument("--grown", action="store_true", help="some replicas have a node already")
    compared.add_argument("--preferences", action="store_true", help="pods prefer nodes, and nodes have soft taints")
    for command in (shop, grown, compared):
        command.add_argument("--strategy", help="gang strategy; default: that of profiles")
    options = parser.parse_args(arguments)
    if options.command == "boutique":
        if options.live and options.strategy:
            parser.error("--live is for the defaults: leave out --strategy")
        planned = (boutique.run(case, strategy=options.strategy) for case in boutique.CASES)
        print(boutique_page(run_live(boutique.CASES) if options.live else planned))
    elif options.command == "grow":
        print(growth_page(strategy=options.strategy))
    elif options.command == "rollouts":
        seeds = range(options.first, options.first + options.number)
        planner = growth.by_scores if options.scores else growth.by_berth_plan
        print(rollouts.page(rollouts.roll_out(rollouts.Rollout.of(seed), planner) for seed in seeds))
    elif options.command == "scalings":
        seeds = range(options.first, options.first + options.number)
        print(rollouts.page((step for seed in seeds for step in scalings.scaled(seed)), "steps"))
    elif options.command == "large":
        print(large.page())
    elif options.command == "add":
        print("\n".join(["| | |", "|---|---|", *additions.lines(additions.add_replicas())]))
    elif options.command == "compare":
        seeds = range(options.first, options.first + options.problems)
        kinds = {"grown": options.grown, "preferences": options.preferences}
        print(comparison.page(comparison.compare(seeds, **kinds, strategy=options.strategy)))
    else:
        plan = json.loads(options.plan.read_text()) if options.plan is not None else None
        print(page(read_cluster(documents(options.filename), plan)))


if __name__ == "__main__":
    main()

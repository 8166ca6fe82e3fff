"""Placements of replicated applications, judged by an evaluator of its own.

    .venv/bin/python -m bench.replicas evaluate -f snapshot.yaml
    .venv/bin/berth plan -f examples -o json > plan.json
    .venv/bin/python -m bench.replicas evaluate -f examples --plan plan.json

A snapshot is what ``kubectl get nodes,pods,services,appgroups,networktopologies -A -o yaml`` prints. The columns are
those of docs/concepts/replicas.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from bench.replicas.cluster import Manifest, read_cluster
from bench.replicas.report import page


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a subcommand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    evaluation = commands.add_parser("evaluate", help="evaluate pods as they are bound, or as a plan would bind them")
    evaluation.add_argument("-f", "--filename", action="append", required=True, help="manifests; repeatable")
    evaluation.add_argument("--plan", type=Path, help="output of `berth plan -o json` over these manifests")
    options = parser.parse_args(arguments)
    plan = json.loads(options.plan.read_text()) if options.plan is not None else None
    print(page(read_cluster(documents(options.filename), plan)))


if __name__ == "__main__":
    main()

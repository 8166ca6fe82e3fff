"""Entry point of the command ``berth-agent``: what the node agent does, by hand."""

from __future__ import annotations

import typer

from berth.cli.commands import Version
from berth.cli.cpu_topology import topology
from berth.cli.entry import ended_in_words
from berth.cli.main import HELP
from berth.cli.probe import probe
from berth.cli.restore import restore
from berth.cli.throughput import throughput

app = typer.Typer(
    name="berth-agent",
    context_settings=HELP,
    help="What the node agent measures, finds and undoes, by hand and without a cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(probe)
app.command()(restore)
app.command()(throughput)
app.command()(topology)


@app.callback()
def _berth_agent(version: Version = False) -> None:
    """What the node agent measures, finds and undoes, by hand and without a cluster."""


def main() -> None:
    """Run ``berth-agent``."""
    with ended_in_words():
        app()

"""The commands ``berth`` and ``kubectl berth``."""

from __future__ import annotations

from typing import Annotated

import typer

from berth.cli.classify.command import classify
from berth.cli.commands import Version
from berth.cli.explain.command import explain
from berth.cli.plan.command import plan
from berth.cli.run import main as run_components
from berth.cli.topology.command import topology

HELP = {"help_option_names": ["-h", "--help"]}
"""kubectl's names of the option, for all commands below."""

app = typer.Typer(
    name="berth",
    context_settings=HELP,
    help="Network-, interference- and latency-aware pod placement for Kubernetes.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


# Its options depend on the components that it is given, so it reads them itself.
@app.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
def run(arguments: Annotated[list[str] | None, typer.Argument(metavar="COMPONENT... [OPTIONS]")] = None) -> None:
    """Run components (controllers, agents) until stopped."""
    raise typer.Exit(run_components(arguments or []))


app.command()(plan)
app.command()(topology)
app.command()(classify)
app.add_typer(explain)

kubectl_app = typer.Typer(
    name="kubectl berth",
    context_settings=HELP,
    help="Ask Berth what it decided and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
kubectl_app.add_typer(explain)
kubectl_app.command()(plan)
kubectl_app.command()(topology)


@app.callback()
def _berth(version: Version = False) -> None:
    """Network-, interference- and latency-aware pod placement for Kubernetes."""


@kubectl_app.callback()
def _kubectl_berth(version: Version = False) -> None:
    """Ask Berth what it decided and why."""


def main() -> None:
    """Run ``berth``."""
    app()


def kubectl_main() -> None:
    """Run ``kubectl berth``."""
    kubectl_app()

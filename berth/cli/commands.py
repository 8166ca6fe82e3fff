"""Commands whose work is done by a controller's package, found by entry point: berth imports no controller.

Group ``berth.commands``: a module per command. Group ``berth.forecasts``: per kind, a function that fills into a
new object what its controller would.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, NoReturn

import typer

from berth.kube.client import TRANSPORT_ERRORS
from berth.kube.connection import ConnectionConfigError
from berth.kube.errors import ApiError

COMMANDS = "berth.commands"
FORECASTS = "berth.forecasts"
BAD_INPUT = 2
"""Exit status: options, files, credentials or names are wrong."""
NOT_PLACED = 3
"""Exit status: some pods have no node."""

CLUSTER_ERRORS = (ApiError, *TRANSPORT_ERRORS)
"""What may go wrong with a live cluster."""


def load_command(name: str) -> Any:
    """The module behind a command; the process ends with 2 when it is not installed or cannot be imported."""
    found = next(iter(entry_points(group=COMMANDS, name=name)), None)
    if found is None:
        fail(f"the part behind `berth {name}` is not installed; reinstall kube-berth")
    return found.load()


def load_forecasts() -> dict[str, Any]:
    """What controllers would fill in, by kind."""
    return {entry.name: entry.load() for entry in entry_points(group=FORECASTS)}


def fail(message: str) -> NoReturn:
    """Say what is wrong and end with 2."""
    typer.echo(message, err=True)
    raise typer.Exit(BAD_INPUT)


def cluster_problem(error: Exception) -> str:
    """A sentence with a remedy for one of :data:`CLUSTER_ERRORS`."""
    if isinstance(error, ConnectionConfigError):
        return str(error)
    if isinstance(error, ApiError):
        if error.unauthorized:
            return f"the API server does not accept the credentials ({error}); check the kubeconfig's user"
        if error.status == 403:
            return f"{error}; ask for the right to get and list it"
        return str(error)
    return (
        f"the API server cannot be reached: {str(error) or repr(error)}; check the kubeconfig's server and your network"
    )

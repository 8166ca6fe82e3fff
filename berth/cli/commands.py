"""What the commands share: exit statuses, and what they say when something is wrong."""

from __future__ import annotations

from typing import NoReturn

import typer

from berth.kube.client import TRANSPORT_ERRORS
from berth.kube.connection import ConnectionConfigError
from berth.kube.errors import ApiError

BAD_INPUT = 2
"""Exit status: options, files, credentials or names are wrong."""

CLUSTER_ERRORS = (ApiError, *TRANSPORT_ERRORS)
"""What may go wrong with a live cluster."""


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

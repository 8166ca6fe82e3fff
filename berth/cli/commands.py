"""What the commands share: exit statuses, and what they say when something is wrong."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from berth.api.text import printable
from berth.kube.client import TRANSPORT_ERRORS
from berth.kube.connection import ConnectionConfigError
from berth.kube.errors import ApiError

BAD_INPUT = 2
"""Exit status: options, files, credentials or names are wrong."""

CLUSTER_ERRORS = (ApiError, *TRANSPORT_ERRORS)
"""What may go wrong with a live cluster."""


class UnreadableFileError(ValueError):
    """A file that the command line names cannot be read; the text names it and says why."""


def read_file(path: Path | None) -> str:
    """The text of a file; of standard input for None.

    Raises:
        UnreadableFileError: it is not there, not readable or no text.
    """
    name = "standard input" if path is None else str(path)
    try:
        if path is not None:
            return path.read_text(encoding="utf-8")
        return "" if sys.stdin is None else sys.stdin.read()  # None where whoever started the program has closed it
    except UnicodeDecodeError as error:
        raise UnreadableFileError(f"{name}: not UTF-8 text") from error
    except OSError as error:
        raise UnreadableFileError(f"{name}: {(error.strerror or str(error)).lower()}") from error


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("kube-berth"))
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
]
"""The option that every program has."""


def fail(message: str, *, status: int = BAD_INPUT) -> NoReturn:
    """Say what is wrong and end with this exit status."""
    typer.echo(printable(message), err=True)
    raise typer.Exit(status)


def namespace_problem(namespace: str) -> str:
    """What is wrong with the name of a namespace, empty when nothing is.

    The path of another would be one that the API server does not know, as that of a kind it does not have.
    """
    if re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", namespace):
        return ""
    return f"{namespace!r} is no name of a namespace; `kubectl get namespaces` lists them"


def kind_missing(plural: str) -> str:
    """What to say of one of Berth's kinds that a cluster does not have."""
    return f"the cluster has no {plural}; install Berth's kinds with `kubectl apply --server-side -f crds/`"


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

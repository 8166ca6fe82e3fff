"""Answers on standard output, for people or for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import IO, Any

import typer
import yaml


class Output(StrEnum):
    """Form of an answer."""

    table = "table"
    yaml = "yaml"
    json = "json"


def colored(stream: IO[str] | None) -> bool:
    """Whether an answer may carry escape sequences: on a terminal, unless NO_COLOR or a dumb one says otherwise.

    Standard output is None where whoever started the program has closed it.
    """
    if stream is None:
        return False
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_document(document: Mapping[str, Any], output: Output, table: Callable[[], str]) -> None:
    """Print a document, as its table or in full."""
    if output is Output.json:
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    elif output is Output.yaml:
        text = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)
    else:
        text = table()
    print_text(text)


def print_text(text: str) -> None:
    """Print an answer; ends the program with 1 where it cannot be written, as on a disk that is full."""
    try:
        typer.echo(text, nl=False)
    except BrokenPipeError:
        raise  # a reader that has seen enough; the library ends the program without a word
    except OSError as error:
        typer.echo(f"the answer cannot be written: {error.strerror}", err=True)
        with suppress(OSError):
            sys.stdout.close()  # what is still buffered would be written once more at the end, and fail again
        raise typer.Exit(1) from error

"""Answers on standard output, for people or for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import IO, Any

import typer
import yaml


class Output(StrEnum):
    """Form of an answer."""

    table = "table"
    yaml = "yaml"
    json = "json"


def colored(stream: IO[str]) -> bool:
    """Whether an answer may carry escape sequences: on a terminal, unless NO_COLOR or a dumb one says otherwise."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_document(document: Mapping[str, Any], output: Output, table: Callable[[], str]) -> None:
    """Print a document, as its table or in full."""
    if output is Output.json:
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    elif output is Output.yaml:
        text = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)
    else:
        text = table()
    typer.echo(text, nl=False)

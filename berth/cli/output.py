"""Answers on standard output, for people or for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import typer
import yaml


class Output(StrEnum):
    """Form of an answer."""

    table = "table"
    yaml = "yaml"
    json = "json"


def print_document(document: Mapping[str, Any], output: Output, table: Callable[[], str]) -> None:
    """Print a document, as its table or in full."""
    if output is Output.json:
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    elif output is Output.yaml:
        text = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)
    else:
        text = table()
    typer.echo(text, nl=False)

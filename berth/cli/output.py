"""Answers on standard output, for people or for programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import IO, Any, Final

import typer
import yaml


class Output(StrEnum):
    """Form of an answer."""

    table = "table"
    yaml = "yaml"
    json = "json"


class Dumper(yaml.CSafeDumper):
    """Writes texts in quotes that other readers take for something else.

    The library follows YAML 1.1 as it reads it. That of kubectl takes y and n for answers, 1e3 and 089 for numbers, and
    0o7 as YAML 1.2 does: an object of such a name would be refused.
    """


_OTHERS: Final = (
    ("bool", "[yYnN]", "yYnN"),
    ("float", r"[-+]?(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9_]+)?", "-+.0123456789"),
    ("int", "[-+]?0([oO]?[0-7_]+|[xX][0-9a-fA-F_]+|[bB][01_]+)", "-+0"),
)
for _type, _form, _first in _OTHERS:
    Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_type}", re.compile(rf"(?:{_form})\Z"), list(_first))


def yaml_of(documents: Iterable[Mapping[str, Any]]) -> str:
    """Documents as YAML that every reader takes for the same."""
    return yaml.dump_all(documents, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)


def colored(stream: IO[str] | None) -> bool:
    """Whether an answer may carry escape sequences: on a terminal, unless NO_COLOR or a dumb one says otherwise.

    Standard output is None where whoever started the program has closed it.
    """
    if stream is None:
        return False
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int | None:
    """Columns of the terminal, or those that COLUMNS states; None where nothing says so, as in a pipe."""
    return shutil.get_terminal_size((0, 0)).columns or None


def print_document(document: Mapping[str, Any], output: Output, table: Callable[[], str]) -> None:
    """Print a document, as its table or in full."""
    if output is Output.json:
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    elif output is Output.yaml:
        text = yaml_of([document])
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

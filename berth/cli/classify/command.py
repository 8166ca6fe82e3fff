"""``berth classify``: reads a file, asks no cluster."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from berth.api.text import listed, printable
from berth.cli.commands import UnreadableFileError, fail, namespace_problem, read_file
from berth.cli.output import Output, colored, print_document, print_text, terminal_width, yaml_of

UNCLASSIFIED: Final = 3
"""Exit status: the class of a workload is not known."""


class Form(StrEnum):
    """Form of the answer."""

    table = "table"
    yaml = "yaml"
    json = "json"
    profiles = "profiles"


def classify(
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV or JSON with run times; - for standard input.")],
    qos: Annotated[
        float, typer.Option(min=1.001, max=100.0, help="Slowdown from which on a workload suffers: the QoS limit.")
    ] = 1.2,
    plot: Annotated[bool, typer.Option("--plot", help="Box plots below the table.")] = False,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Namespace of the profiles. Default: none stated.")
    ] = None,
    output: Annotated[
        Form, typer.Option("--output", "-o", help="Form of the answer; profiles: WorkloadProfiles to apply.")
    ] = Form.table,
) -> None:
    """Find interference classes from run times of workloads alone and beside each other.

    A: neither suffers nor makes others suffer. B: suffers. C: makes others suffer. D: both. What counts is the upper
    whisker of a workload's slowdowns: the greatest within 1.5 interquartile ranges of the third quartile.

    A CSV file has the columns workload,beside,seconds, with nothing in beside for a run alone. A JSON file has the
    fields isolated_runtime_s (seconds by workload) and corun_runtime_s (seconds by workload and neighbour). Of repeated
    runs the median counts.

    Examples:

      berth classify runs.csv --plot

      berth classify runs.csv --qos 1.1 -o profiles -n shop | kubectl apply -f -

    Exit status: 0 all classified, 3 a workload lacks run times, 2 the file cannot be read.
    """
    # Late, since `berth run` shares this program and has no use for it.
    from berth.cli.classify import document as documents
    from berth.cli.classify import profiles, reading, tables
    from berth.scheduling.interference import classification

    if math.isnan(qos):
        fail("berth classify: --qos nan is no slowdown; write a number above 1, such as 1.2")
    if namespace and (problem := namespace_problem(namespace)):
        fail(f"berth classify: {problem}")
    limit = round(qos, 3)
    try:
        times = reading.read_run_times(read_file(None if file == "-" else Path(file)))
        found = classification.classify(classification.slowdowns(times.alone, times.beside), limit)
        if output is Form.profiles:
            wanted = profiles.profiles(found, limit, namespace=namespace, measured=_written(file))
            print_text(yaml_of(wanted))
            _tell_left_out([item.workload for item in found if item.interference_class is None])
        else:
            answer = documents.classification_document(found, times, limit)
            width = terminal_width()
            color = colored(sys.stdout)
            print_document(
                answer,
                Output(output.value),
                lambda: tables.classification_page(answer, plot=plot, width=width, color=color),
            )
    except UnreadableFileError as error:
        fail(f"berth classify: {error}; name a readable file, or - for standard input")
    except ValueError as error:
        fail(f"berth classify: {file}: {error}")
    if any(item.interference_class is None for item in found):
        raise typer.Exit(UNCLASSIFIED)


def _tell_left_out(workloads: Sequence[str]) -> None:
    """Say beside the profiles whose are missing: in a pipe the exit status is not seen."""
    if workloads:
        text = f"no profile of {listed(workloads)}, whose class is not known; the table says what is missing"
        typer.echo(printable(f"berth classify: {text}"), err=True)


def _written(file: str) -> datetime | None:
    """When the file was written: run times are no younger."""
    return None if file == "-" else datetime.fromtimestamp(Path(file).stat().st_mtime, UTC)

"""When answers are coloured."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from berth.cli.output import colored


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "expected"),
    [
        (Terminal(), {}, True),
        (io.StringIO(), {}, False),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {"TERM": "xterm"}, True),
    ],
    ids=["terminal", "pipe", "NO_COLOR", "NO_COLOR empty", "dumb terminal", "xterm"],
)
def test_only_terminals_that_want_it_get_colour(
    stream: io.StringIO, environment: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert colored(stream) is expected


PRINTS = """
import sys, typer
from berth.cli.output import Output, colored, print_document
app = typer.Typer()
@app.command()
def show(number: int) -> None:
    print_document({"a": ["x"] * number}, Output.json, lambda: str(colored(sys.stdout)))
app()
"""


@pytest.mark.parametrize(
    ("redirection", "status", "said"),
    [
        pytest.param(">/dev/full", 1, "the answer cannot be written: No space left on device\n", id="full disk"),
        pytest.param("| head -c 1 >/dev/null; exit ${PIPESTATUS[0]}", 1, "", id="a reader that has seen enough"),
        pytest.param(">&-", 0, "", id="closed"),
    ],
)
@pytest.mark.parametrize("number", [1, 100_000])
def test_an_answer_that_cannot_be_written_is_told(redirection: str, status: int, said: str, number: int) -> None:
    command = ["bash", "-c", f'"$0" -c "$1" {number} {redirection}', sys.executable, PRINTS]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.stderr == said
    assert found.returncode in {status, 0 if "head" in redirection else status}


BY_LIBRARIES = """
import sys
from berth.cli.{module} import main
sys.argv[:1] = ["berth"]
main()
"""


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("entry", "--help"),
        ("entry", "--version"),
        ("entry", "plan --help"),
        ("entry", "run --help"),
        ("entry", "run placement --help"),
        ("agent", "--help"),
    ],
)
@pytest.mark.parametrize(
    ("redirection", "said"),
    [
        pytest.param(">/dev/full", "the answer cannot be written: No space left on device\n", id="full disk"),
        pytest.param(">&$CLOSED", "", id="a reader that has gone"),
    ],
)
def test_help_that_cannot_be_written_is_told(module: str, arguments: str, redirection: str, said: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        script = f'CLOSED={writer}; "$0" -c "$1" {arguments} {redirection}'
        command = ["bash", "-c", script, sys.executable, BY_LIBRARIES.format(module=module)]
        found = subprocess.run(command, capture_output=True, text=True, check=False, pass_fds=[writer])
    finally:
        os.close(writer)
    assert (found.returncode, found.stderr) == (1, said)

"""When answers are coloured, what YAML has in quotes, and answers that cannot be written."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from berth.cli.output import colored, terminal_width, yaml_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stated", "terminal", "expected"),
    [
        pytest.param("80", None, 80, id="pipe of stated width"),
        pytest.param("80", 120, 80, id="terminal of stated width"),
        pytest.param(None, 120, 120, id="terminal"),
        pytest.param(None, None, None, id="pipe"),
        pytest.param("wide", None, None, id="pipe, no number"),
    ],
)
def test_a_pipe_has_no_width(
    stated: str | None, terminal: int | None, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def size(_descriptor: int) -> os.terminal_size:
        if terminal is None:
            raise OSError
        return os.terminal_size((terminal, 24))

    monkeypatch.setattr(os, "get_terminal_size", size)
    monkeypatch.delenv("COLUMNS", raising=False)
    if stated is not None:
        monkeypatch.setenv("COLUMNS", stated)
    assert terminal_width() == expected


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


@pytest.mark.parametrize(
    "text",
    ["y", "N", "1e3", "12345e67", "1.5E3", ".5", "-1e-3", "1_0e3", "089", "0o7", "0X1f", "0B1", "on", "017", "1_000"],
)
def test_texts_that_some_reader_takes_for_something_else_are_quoted(text: str) -> None:
    assert yaml_of([{text: text}]) == f"'{text}': '{text}'\n"


@pytest.mark.parametrize("text", ["yes-man", "no1", "e3", "1e", "470.lbm", "0o9", "0x", "n1", "1-2", "a: b"])
def test_other_texts_are_read_back(text: str) -> None:
    written = yaml_of([{"is": text}])
    assert yaml.safe_load(written) == {"is": text}
    assert ("'" in written) == (":" in text)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), st.lists))
def test_documents_are_read_back(value: Any) -> None:
    assert list(yaml.safe_load_all(yaml_of([{"is": value}, {}]))) == [{"is": value}, {}]


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

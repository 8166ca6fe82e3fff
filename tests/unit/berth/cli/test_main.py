"""The command ``berth`` itself."""

from __future__ import annotations

from importlib.metadata import version

import pytest
import typer
from typer.testing import CliRunner

from berth.cli.commands import fail
from berth.cli.main import app, kubectl_app
from tests.support.probe import berth


@pytest.mark.parametrize("arguments", [["--help"], []], ids=["--help", "nothing"])
def test_the_command_explains_itself(arguments: list[str]) -> None:
    with berth(*arguments) as process:
        output, errors = process.popen.communicate(timeout=30)
    assert "run" in output + errors
    assert "pod placement for Kubernetes" in output + errors


@pytest.mark.parametrize("program", [app, kubectl_app], ids=["berth", "kubectl berth"])
@pytest.mark.parametrize("command", [[], ["plan"], ["explain"], ["explain", "node"]], ids=" ".join)
def test_help_has_the_short_name_that_kubectl_has(program: typer.Typer, command: list[str]) -> None:
    result = CliRunner().invoke(program, [*command, "-h"])
    assert result.exit_code == 0
    assert result.stdout == CliRunner().invoke(program, [*command, "--help"]).stdout


@pytest.mark.parametrize("program", [app, kubectl_app], ids=["berth", "kubectl berth"])
def test_the_version_is_that_of_the_package(program: typer.Typer) -> None:
    result = CliRunner().invoke(program, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"{version('kube-berth')}\n")


def test_a_problem_with_a_tenants_text_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        fail("AppGroup \x1b[2J is wrong")
    assert capsys.readouterr().err == "AppGroup \\x1b[2J is wrong\n"

"""The command ``berth-agent``."""

from __future__ import annotations

from typer.testing import CliRunner

from berth.cli.agent import app


def test_help_names_its_commands() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "probe" in result.output
    assert "throughput" in result.output
    assert "topology" in result.output


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output.strip()

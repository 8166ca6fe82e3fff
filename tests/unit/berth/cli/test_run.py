"""The command line of ``berth run``: its options, exit statuses and texts."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner

from berth.cli.main import app
from berth.cli.run import parse
from berth.runtime import component
from berth.runtime.process import Selected
from berth.runtime.settings import ComponentSettings, RunSettings
from controllers.appgroup.controller import AppGroupController
from tests.support.probe import QUIET, Probe, ProbeSettings, berth, installed, unreachable


@pytest.fixture(autouse=True)
def _own_logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """``berth run`` sets up the logging of its whole process, which here is pytest's."""
    monkeypatch.setattr(component, "entry_points", installed)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def failing(*arguments: str) -> str:
    """What ``berth ARGUMENTS`` prints before it ends with 2."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """A kubeconfig of a server that is not there."""
    return unreachable(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        pytest.param(["nonsense"], ["unknown component 'nonsense'", "choose from: ", "probe"], id="unknown component"),
        pytest.param(["probe", "nonsense"], ["unknown component 'nonsense'"], id="one of two is unknown"),
        pytest.param(["broken"], ["component 'broken'", "cannot be imported", "reinstall"], id="import fails"),
        pytest.param([], ["no component named; choose from: ", "probe"], id="no component"),
        pytest.param(["--no-leader-elect"], ["no component named"], id="options alone"),
        pytest.param(
            ["probe", "--kubeconfig", "/nowhere/config"],
            ["kubeconfig /nowhere/config: no such file", "--kubeconfig or $KUBECONFIG"],
            id="kubeconfig is not there",
        ),
        pytest.param(["probe", "--kubeconfig", "/"], ["kubeconfig /: ", "directory"], id="kubeconfig is a directory"),
        pytest.param(
            ["probe", "--lease-duration", "0.5"],
            ["--lease-duration '0.5': input should be greater than or equal to 1"],
            id="lease too short",
        ),
        pytest.param(
            ["probe", "--lease-duration", "soon"],
            ["--lease-duration 'soon': input should be a valid number"],
            id="lease not a number",
        ),
        pytest.param(
            ["probe", "--health-port", "70000"],
            ["--health-port '70000': input should be less than or equal to 65535"],
            id="port out of range",
        ),
        pytest.param(
            ["probe", "--log-level", "loud"], ["--log-level 'loud': input should be 'debug'"], id="unknown level"
        ),
        pytest.param(["probe", "--kubeconfig"], ["--kubeconfig: expected one argument"], id="no value"),
        pytest.param(
            ["placement", "--placement-config", "/nowhere.yaml"],
            ["--placement-config '/nowhere.yaml': path does not point to a file"],
            id="profiles are not there",
        ),
        pytest.param(
            ["networktopology", "--path-algorithm", "Magic"],
            ["--path-algorithm 'Magic': input should be 'Dijkstra' or 'BellmanFord'"],
            id="unknown algorithm",
        ),
        pytest.param(
            ["probe", "--probe-depth=0"],
            ["--probe-depth '0': input should be greater than or equal to 1"],
            id="a component's own number",
        ),
        pytest.param(
            ["probe", "--path-algorithm=Dijkstra"],
            ["--path-algorithm is an option of networktopology, which is not among the components to run"],
            id="option of another component",
        ),
        pytest.param(
            ["probe", "--no-such-option", "5"], ["no such option: --no-such-option; ", "--help"], id="unknown option"
        ),
        pytest.param(["probe", "--lease", "5"], ["no such option: --lease"], id="no abbreviations"),
    ],
)
def test_wrong_arguments_end_with_2_and_say_what_to_do(arguments: list[str], texts: list[str]) -> None:
    output = failing("run", *arguments)
    for text in texts:
        assert text in output


def test_a_busy_port_ends_with_2_and_names_the_option(kubeconfig: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        output = failing("run", "probe", kubeconfig, *QUIET[:3], "--health-port", port)
    assert f"127.0.0.1:{port}" in output
    assert "choose another --health-port" in output


def test_settings_that_a_component_refuses_end_with_2(kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROBE", "refuse")
    assert failing("run", "probe", kubeconfig, *QUIET, "--probe-depth", "7").splitlines()[-1] == (
        "berth run: component probe: depth 7: no such profile; name one of: default"
    )


def test_an_error_is_one_line_of_a_real_process(kubeconfig: str) -> None:
    with berth("run", "nonsense", kubeconfig) as process:
        assert process.wait() == 2
    assert [line["event"].partition(";")[0] for line in process.lines] == ["berth run: unknown component 'nonsense'"]


def help_of(*arguments: str) -> str:
    """``berth run ARGUMENTS --help`` as one line."""
    result = CliRunner().invoke(app, ["run", *arguments, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    return " ".join(result.stdout.split())


def test_help_names_every_component_and_option() -> None:
    text = help_of()
    assert (
        "any of appgroup, broken, latency, meter, networktopology, node, pinning, placement, probe, router, "
        "socketstatus, twin"
    ) in text
    for name in ("networktopology", "placement", "probe", "twin"):
        assert f"options of {name}:" in text
    assert "options of appgroup" not in text  # it has none
    assert "--lease-duration NUMBER Seconds until another replica takes over" in text
    assert "--log-format json|text JSON lines, or text for a terminal. Default: json." in text
    assert "--path-algorithm Dijkstra|BellmanFord" in text


def test_help_about_one_component_has_its_options_alone() -> None:
    text = help_of("probe")
    assert "--probe-depth NUMBER How deep, from 1 to 100 % of everything. Default: 3." in text
    assert "--probe-careful, --no-probe-careful Whether to look twice. Default: off." in text
    assert "--probe-sample FILE A file." in text
    assert "--health-port" in text
    assert "placement-config" not in text


def test_a_component_that_cannot_be_imported_does_not_keep_help_from_the_others() -> None:
    result = CliRunner().invoke(app, ["run", "--help"])
    assert "component 'broken'" in result.stderr
    assert "--probe-depth" in result.stdout


def test_settings_reach_the_process_and_each_component(tmp_path: Path) -> None:
    sample = tmp_path / "sample"
    sample.touch()
    options = ["--twin-depth", "2", "--probe-sample", str(sample), "--no-leader-elect", "--lease-duration=4"]
    components, settings = parse(["probe", *options, "twin", "--probe-careful", "appgroup", "probe"])
    assert components == [
        Selected("probe", Probe, ProbeSettings(sample=sample, careful=True)),
        Selected("twin", Probe, ProbeSettings(depth=2)),
        Selected("appgroup", AppGroupController, ComponentSettings()),
    ]
    assert settings == RunSettings(leader_elect=False, lease_duration=4.0)

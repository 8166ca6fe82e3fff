"""The command line of hack/cluster as far as it needs no cluster."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hack.localcluster import cli

SCRIPT = Path(__file__).resolve().parents[4] / "hack" / "cluster"
COMMANDS = ["up", "down", "status", "list", "nodes", "image", "bin", "kubeconfig", "logs", "kubectl", "build"]


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_CLUSTERS_DIR", str(tmp_path))


def test_the_commands_of_the_makefile_are_commands() -> None:
    lines = re.findall(r"^\t.*hack/cluster (.*)$", (SCRIPT.parents[1] / "Makefile").read_text(), re.MULTILINE)
    assert len(lines) > 5
    for line in lines:
        cli.parser().parse_args(re.sub(r"\$\(\w+\)", "3", line).split())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.parser().parse_args([command, "--help"])
    assert caught.value.code == 0
    assert f"usage: hack/cluster {command}" in capsys.readouterr().out


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    output = capsys.readouterr().out
    listed = re.findall(r"^ {4}([a-z]+)(?:\s|$)", output[: output.index("options:")], re.MULTILINE)
    assert listed == COMMANDS


@pytest.mark.parametrize(
    "args",
    [
        pytest.param([], id="no command"),
        pytest.param(["start"], id="unknown command"),
        pytest.param(["nodes"], id="nodes without file"),
        pytest.param(["up", "--nodes", "24"], id="unknown flag"),
        pytest.param(["up", "--kubelets", "-1"], id="fewer real nodes than none"),
        pytest.param(["up", "--kubelets", "51"], id="too many real nodes"),
        pytest.param(["up", "--kubelets", "three"], id="real nodes in words"),
    ],
)
def test_wrong_usage_exits_with_2(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(args)
    assert caught.value.code == 2
    assert "usage: hack/cluster" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "status", "out", "err"),
    [
        pytest.param(["list"], 0, "", "no clusters\n", id="list"),
        pytest.param(["list", "--json"], 0, "[]\n", "", id="list as JSON"),
        pytest.param(["down", "--all"], 0, "", "", id="down all"),
        pytest.param(["down"], 0, "", "there was no cluster berth\n", id="down"),
    ],
)
def test_without_any_cluster(
    args: list[str], status: int, out: str, err: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(args) == status
    assert capsys.readouterr() == (out, err)


@pytest.mark.parametrize("command", ["status", "kubeconfig", "logs", "kubectl", "image"])
def test_a_missing_cluster_is_named(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command]) == 1
    assert "hack/cluster: there is no cluster 'berth' in" in capsys.readouterr().err


def test_real_nodes_without_root_are_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert cli.main(["up", "--kubelets", "3"]) == 1
    assert "hack/cluster: real nodes need root" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_half_made_cluster_is_listed_as_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "half").mkdir()
    assert cli.main(["list"]) == 0
    assert capsys.readouterr().out.split() == ["half", "damaged"]


def test_the_script_runs_from_any_directory(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-I", str(SCRIPT), "list"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (answer.returncode, answer.stderr) == (0, "no clusters\n")


def test_without_an_environment_the_script_says_how_to_get_one(tmp_path: Path) -> None:
    script = tmp_path / "hack" / "cluster"
    script.parent.mkdir()
    shutil.copy(SCRIPT, script)
    # An interpreter without site packages has no PyYAML.
    answer = subprocess.run([sys.executable, "-I", "-S", str(script)], capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert "No module named 'yaml': run 'make .venv' first" in answer.stderr

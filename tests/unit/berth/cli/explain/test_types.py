"""How the object to explain is named; the server that is asked does not answer, so only the way there is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from berth.cli.main import app, kubectl_app


@pytest.fixture
def dead(tmp_path: Path) -> str:
    """A kubeconfig of a server that is not there."""
    path = tmp_path / "kubeconfig"
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


@pytest.mark.parametrize(
    "named",
    [
        ["pod/web"],
        ["pods/web"],
        ["po/web"],
        ["pods", "web"],
        ["po", "web"],
        ["Pod/web"],
        ["appgroup/shop"],
        ["appgroups/shop"],
        ["ag/shop"],
        ["ag", "shop"],
        ["appgroup.appgroup.diktyo.x-k8s.io/shop"],
        ["node", "n1"],
        ["node/n1"],
        ["nodes/n1"],
        ["no/n1"],
        ["latencypolicy/web"],
        ["lp/web"],
        ["latencypolicy.berth.dev/web"],
    ],
    ids="_".join,
)
def test_an_object_is_named_as_kubectl_has_it(named: list[str], dead: str) -> None:
    for program in (app, kubectl_app):
        result = CliRunner().invoke(program, ["explain", *named, "-n", "shop", "--kubeconfig", dead])
        assert result.exit_code == 2
        assert "cannot be reached" in result.stderr


@pytest.mark.parametrize(
    "line",
    [
        "-n shop pod/web --kubeconfig {}",
        "--kubeconfig {} -n shop pod web",
        "-nshop --kubeconfig={} po/web",
        "--namespace=shop -o json --kubeconfig {} ag/shop",
        "--kubeconfig {} pods -n shop web",
    ],
)
def test_options_stand_before_the_type_or_behind_it(line: str, dead: str) -> None:
    for program in (app, kubectl_app):
        result = CliRunner().invoke(program, ["explain", *line.format(dead).split()])
        assert result.exit_code == 2
        assert "cannot be reached" in result.stderr


@pytest.mark.parametrize("line", ["-h", "--help", "pod -h", "pod/web --help"])
def test_help_is_given(line: str) -> None:
    result = CliRunner().invoke(kubectl_app, ["explain", *line.split()])
    assert (result.exit_code, "Usage:" in result.stdout) == (0, True)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (["pod/"], "Missing argument"),
        (["pod"], "Missing argument"),
        (["service/web"], "no type 'service' to explain; choose from: pod, appgroup, node, latencypolicy"),
        (["pod/web", "other"], "unexpected extra argument"),
        (["-n", "shop"], "No such option: -n"),
        (["-A", "pod/web"], "No such option: -A"),
    ],
    ids=["no name after the slash", "no name", "other type", "two names", "no type", "unknown option"],
)
def test_what_names_nothing_is_refused(named: list[str], said: str, dead: str) -> None:
    result = CliRunner().invoke(kubectl_app, ["explain", *named, "--kubeconfig", dead])
    assert result.exit_code == 2
    assert said in result.stderr

"""``kubectl berth topology`` as a command, without a cluster.

With one: tests/integration/test_networktopology_probereports.py.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from berth.cli.main import app, kubectl_app
from berth.cli.topology.command import choose
from tests.support.api_server import api_server, refusal
from tests.support.probe import unreachable


def named(*names: str) -> list[Any]:
    return [SimpleNamespace(metadata=SimpleNamespace(name=name)) for name in names]


@pytest.mark.parametrize(
    ("there", "name", "chosen"),
    [
        pytest.param(["net"], None, "net", id="the only one"),
        pytest.param(["net", "other"], "other", "other", id="by name"),
    ],
)
def test_choose(there: list[str], name: str | None, chosen: str) -> None:
    assert choose(named(*there), name, "shop").metadata.name == chosen


@pytest.mark.parametrize(
    ("there", "name", "says"),
    [
        pytest.param([], None, "there is no NetworkTopology in namespace 'shop'", id="none"),
        pytest.param(["net"], "nt", "there is no NetworkTopology 'nt' in namespace 'shop'", id="not this one"),
        pytest.param(["b", "a"], None, "several NetworkTopologies; name one of a, b", id="several"),
    ],
)
def test_none_is_guessed(there: list[str], name: str | None, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        choose(named(*there), name, "shop")


@pytest.mark.parametrize("program", [app, kubectl_app], ids=["berth", "kubectl berth"])
def test_a_cluster_that_does_not_answer_gives_2(program: typer.Typer, tmp_path: Path) -> None:
    result = CliRunner().invoke(program, ["topology", "net", unreachable(tmp_path)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("berth topology: the API server")


@pytest.mark.parametrize(
    ("namespace", "says"),
    [
        pytest.param("shop", "the cluster has no networktopologies; install Berth's kinds with", id="no such kind"),
        pytest.param("a/b", "'a/b' is no name of a namespace", id="no such name"),
    ],
)
def test_a_cluster_without_the_kind_is_not_one_without_objects(tmp_path: Path, namespace: str, says: str) -> None:
    with api_server(lambda _: refusal(404, "NotFound")) as server:
        arguments = ["topology", "-n", namespace, "--kubeconfig", server.kubeconfig(tmp_path)]
        result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"berth topology: {says}")

"""``kubectl berth explain`` as a command, without a cluster; with one: tests/integration/test_explain_cluster.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner

from berth.cli.commands import cluster_problem
from berth.cli.main import app, kubectl_app
from berth.kube.connection import ConnectionConfigError
from berth.kube.errors import ApiError
from tests.support.api_server import Answer, Request, api_server, refusal


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


@pytest.mark.parametrize("program", [app, kubectl_app], ids=["berth", "kubectl berth"])
@pytest.mark.parametrize("kind", ["pod", "appgroup", "ag", "node"])
def test_a_cluster_that_does_not_answer_gives_2(program: typer.Typer, kind: str, dead: str) -> None:
    result = CliRunner().invoke(program, ["explain", kind, "x", "--kubeconfig", dead])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("berth explain: the API server")
    assert "cannot be reached" in result.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "c.yaml: no such file"), ("profiles: 7", "profiles"), ("profiles: [", "not valid YAML")],
    ids=["missing", "wrong", "syntax"],
)
def test_a_wrong_configuration_gives_2(tmp_path: Path, dead: str, content: str | None, said: str) -> None:
    path = tmp_path / "c.yaml"
    if content is not None:
        path.write_text(content)
    result = CliRunner().invoke(app, ["explain", "pod", "x", "--kubeconfig", dead, "--config", str(path)])
    assert result.exit_code == 2
    assert said in result.stderr
    assert "name the file that `berth run placement` was started with" in result.stderr


@pytest.mark.parametrize("kind", ["pod", "appgroup", "node"])
def test_an_empty_name_is_refused_before_anything_is_asked(kind: str, dead: str) -> None:
    result = CliRunner().invoke(app, ["explain", kind, "", "--kubeconfig", dead])
    assert result.exit_code == 2
    assert "is empty; `kubectl get" in result.stderr


@pytest.mark.parametrize("kind", ["pod", "ag", "node", "lp"])
@pytest.mark.parametrize("name", ["x/status", "shop/x", "..", "x%2Fstatus"])
def test_what_is_no_name_is_refused_before_anything_is_asked(kind: str, name: str, dead: str) -> None:
    result = CliRunner().invoke(app, ["explain", f"{kind}/{name}", "--kubeconfig", dead])
    assert result.exit_code == 2
    assert f"{name!r} is no name of a" in result.stderr


@pytest.mark.parametrize("kind", ["pod", "appgroup"])
@pytest.mark.parametrize("namespace", ["../x", "a/b", "a b", "Shop"])
def test_what_is_no_name_of_a_namespace_is_refused_before_anything_is_asked(
    kind: str, namespace: str, dead: str
) -> None:
    result = CliRunner().invoke(app, ["explain", kind, "x", "-n", namespace, "--kubeconfig", dead])
    assert result.exit_code == 2
    assert f"{namespace!r} is no name of a namespace; `kubectl get namespaces` lists them" in result.stderr


def test_a_name_is_needed() -> None:
    assert CliRunner().invoke(app, ["explain", "pod"]).exit_code == 2


def test_a_pod_is_explained_without_the_right_to_list_events(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        if "/events" in request.path:
            return refusal(403, "Forbidden")
        metadata = {"name": "web", "namespace": "shop", "uid": "u"}
        return Answer(200, {"metadata": metadata, "spec": {"schedulerName": "berth-scheduler"}, "status": {}})

    with api_server(answer) as server:
        arguments = ["explain", "pod/web", "-n", "shop", "--kubeconfig", server.kubeconfig(tmp_path)]
        result = CliRunner().invoke(kubectl_app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.stderr
    assert "Pod shop/web: pending" in result.stdout
    assert "events: you may not list them; what was said of late is left out" in result.stdout


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ApiError(status=401, reason="Unauthorized", message="no"), "does not accept the credentials"),
        (ApiError(status=403, reason="Forbidden", message="pods is forbidden"), "pods is forbidden; ask for the right"),
        (ApiError(status=500, reason="InternalError", message="boom"), "500 InternalError: boom"),
        (ConnectionConfigError("kubeconfig x: broken; mend it"), "kubeconfig x: broken; mend it"),
        (TimeoutError(), "cannot be reached: TimeoutError()"),
    ],
    ids=["401", "403", "500", "kubeconfig", "timeout"],
)
def test_what_goes_wrong_with_a_cluster_is_said_with_a_remedy(error: Exception, said: str) -> None:
    assert said in cluster_problem(error)

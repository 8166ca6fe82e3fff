"""How demos begin and end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hack import demo
from hack.demo import Target, exit_status
from hack.localcluster.errors import ClusterError


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        pytest.param(None, 0, "", id="well"),
        pytest.param(ClusterError("no cluster"), 1, "demo: no cluster", id="cluster"),
        pytest.param(OSError("disk full"), 1, "demo: disk full", id="system"),
        pytest.param(KeyboardInterrupt(), 130, "make demo-down stops what it has started", id="Ctrl-C"),
    ],
)
def test_a_demo_says_why_it_ends(
    error: BaseException | None, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def run() -> None:
        if error is not None:
            raise error

    assert exit_status(run) == status
    assert said in capsys.readouterr().err


KUBECTL = """#!{python}
import sys
from pathlib import Path
asked = Path({asked!r})
asked.write_text(asked.read_text() + " ".join(sys.argv[2:]) + "\\n")
if sys.argv[2:4] == ["get", "namespace"] and asked.read_text().count("get namespace") <= {times}:
    print("2026-01-01T00:00:00Z", end="")
elif "apply" in sys.argv:
    sys.exit("applied")
"""


@pytest.mark.parametrize(("times", "waits"), [(0, False), (2, True)])
def test_a_namespace_that_is_being_deleted_is_waited_for(
    times: int, waits: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, kubectl = tmp_path / "asked", tmp_path / "kubectl"
    asked.touch()
    kubectl.write_text(KUBECTL.format(python=sys.executable, asked=str(asked), times=times))
    os.chmod(kubectl, 0o755)
    target = Target(tmp_path / "kubeconfig", str(kubectl), tmp_path)
    with pytest.raises(ClusterError, match="applied"):
        demo.place(target, "Berth", namespace="berth-demo", scheduler="berth-scheduler")
    said = "the namespace berth-demo is being deleted; waiting until it is gone"
    assert (said in capsys.readouterr().out) is waits
    assert asked.read_text().count("get namespace berth-demo") == times + 1


def test_a_namespace_that_is_never_gone_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PATIENCE", 0.0)
    monkeypatch.setattr(Target, "run", lambda *_, **__: "2026-01-01T00:00:00Z")
    with pytest.raises(
        ClusterError, match="gave up waiting for the namespace berth-demo to be gone; kubectl get names"
    ):
        demo.await_end_of(Target(tmp_path, "kubectl", tmp_path), "berth-demo")

"""Forks of ``berth run``: what the command would do, and what is known of a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.harness.cluster import eventually
from hack.harness.forks import Fork, Forks, current_forks, forking
from hack.harness.processes import ControllerProcess

NOBODY_THERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {}}],
}


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture
def waiting(tmp_path: Path) -> list[str]:
    """Arguments of a controller that asks for its API server without an end."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(NOBODY_THERE))
    return ["appgroup", "--kubeconfig", str(kubeconfig), "--health-host", "127.0.0.1", "--health-port", "0"]


def begun(fork: Fork, log: Path) -> Fork:
    eventually(lambda: '"started"' in log.read_text(), what=f"start of {fork.pid}")
    return fork


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        pytest.param(["appgroup", "--help"], 0, "usage: berth run", id="help"),
        pytest.param(["appgroup", "--no-such"], 2, "no such option: --no-such", id="wrong option"),
        pytest.param(["nonsense"], 2, "unknown component 'nonsense'", id="no such component"),
    ],
)
def test_it_ends_as_the_command_does(
    forks: Forks, tmp_path: Path, arguments: list[str], status: int, told: str
) -> None:
    log = tmp_path / "log"
    fork = forks.start(arguments, log)
    assert fork.wait(60) == fork.returncode == fork.poll() == status
    assert told in log.read_text()


@pytest.mark.parametrize(
    ("sent", "status"), [pytest.param(signal.SIGKILL, -9, id="killed"), pytest.param(signal.SIGTERM, 0, id="stopped")]
)
def test_signals_reach_it(forks: Forks, tmp_path: Path, waiting: list[str], sent: signal.Signals, status: int) -> None:
    fork = begun(forks.start(waiting, tmp_path / "log"), tmp_path / "log")
    assert fork.poll() is None
    assert fork.returncode is None
    fork.send_signal(sent)
    assert fork.wait(60) == status
    fork.kill()  # of no consequence any more
    assert fork.returncode == status


def test_who_waits_in_vain_is_told(forks: Forks, tmp_path: Path, waiting: list[str]) -> None:
    fork = begun(forks.start(waiting, tmp_path / "log"), tmp_path / "log")
    with pytest.raises(subprocess.TimeoutExpired):
        fork.wait(0.01)
    fork.kill()
    assert fork.wait() == -9


def test_it_has_the_environment_of_the_moment(forks: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("before", "after"):
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / name))
        assert forks.start(["appgroup"], tmp_path / "log").wait(60) == 2
        assert str(tmp_path / name) in (tmp_path / "log").read_text()


def test_none_outlives_what_forks(tmp_path: Path, waiting: list[str]) -> None:
    forks = Forks()
    fork = begun(forks.start(waiting, tmp_path / "log"), tmp_path / "log")
    ended = os.pidfd_open(fork.pid)
    forks.close()
    eventually(lambda: not _running(ended), what=f"end of {fork.pid}")
    os.close(ended)


def _running(pidfd: int) -> bool:
    try:
        signal.pidfd_send_signal(pidfd, 0)
    except ProcessLookupError:
        return False
    return True


def test_controllers_are_forked_while_it_is_said(tmp_path: Path) -> None:
    assert current_forks() is None
    with forking():
        forked = ControllerProcess.start(["appgroup"], kubeconfig=None, directory=tmp_path, arguments=["--help"])
        apart = ControllerProcess.start(
            ["appgroup"], kubeconfig=None, directory=tmp_path, arguments=["--help"], environment={"A": "b"}
        )
        assert forked.process.wait(60) == apart.process.wait(60) == 0
        assert isinstance(forked.process, Fork)
        assert isinstance(apart.process, subprocess.Popen)
        assert forked.log.read_text() == apart.log.read_text()
    assert current_forks() is None

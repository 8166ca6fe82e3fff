"""``berth-agent restore`` where there is nothing to undo or nothing can be; with real cgroups it is in the integration
tests of pinning.
"""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agents.node.pinning.journal import BOOT_ID, Journal
from berth.cli.agent import app


@pytest.fixture
def cgroups(tmp_path: Path) -> Path:
    """A directory that stands for the hierarchy of cpusets, with the cgroup of a container."""
    container = tmp_path / "cgroups" / "cpuset" / "pod" / "c"
    container.mkdir(parents=True)
    for path, cpus in {container: "1", container.parent: "0-1", container.parent.parent: "0-1"}.items():
        for name in ("cpuset.cpus", "cpuset.effective_cpus"):
            (path / name).write_text(cpus)
        for name in ("cpuset.mems", "cpuset.effective_mems"):
            (path / name).write_text("0")
    return tmp_path / "cgroups"


def run(tmp_path: Path, cgroups: Path, *, kubelet: str = '{"policyName": "none"}') -> Any:
    (tmp_path / "cpu_manager_state").write_text(kubelet)
    options = [f"--journal={tmp_path / 'journal'}", f"--cgroups={cgroups}", f"--runtime={tmp_path / 'none.sock'}"]
    return CliRunner().invoke(app, ["restore", f"--kubelet={tmp_path}", *options])


def write(tmp_path: Path, cgroup: Path) -> None:
    path = f"/{cgroup.relative_to(tmp_path / 'cgroups' / 'cpuset')}"
    entry = {"container": "c", "cgroup": path, "cpus": "0-1", "mems": "0"}
    entry |= {"namespace": "shop", "pod": "web-1", "name": "web"}
    document = {"version": 1, "boot": BOOT_ID.read_text().strip(), "entries": [entry]}
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "journal.json").write_text(json.dumps(document))


def test_nothing_is_pinned(tmp_path: Path, cgroups: Path) -> None:
    (tmp_path / "journal").mkdir()
    answer = run(tmp_path, cgroups)
    assert (answer.exit_code, answer.stdout) == (0, "nothing is pinned\n")


def test_a_directory_that_is_not_there_is_not_taken_for_one_without_pins(tmp_path: Path, cgroups: Path) -> None:
    """Nor made: who mistypes it would believe that everything is given back."""
    answer = run(tmp_path, cgroups)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert f"--journal {tmp_path}/journal: no such directory; name the agent's" in answer.stderr
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        pytest.param(OSError(errno.ENAMETOOLONG, "File name too long"), "file name too long", id="too long"),
        pytest.param(PermissionError(errno.EACCES, "Permission denied"), "permission denied", id="not root"),
    ],
)
def test_a_directory_that_cannot_be_looked_for(
    tmp_path: Path, cgroups: Path, monkeypatch: pytest.MonkeyPatch, problem: OSError, text: str
) -> None:
    stat = Path.stat

    def refuse(path: Path, **options: Any) -> Any:
        if path.name == "journal":
            raise problem
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", refuse)
    answer = run(tmp_path, cgroups)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert text in answer.stderr.lower()


def test_a_node_on_which_no_agent_has_pinned(tmp_path: Path, cgroups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is to be undone there, and the agent's own directory is not made either."""
    directory = tmp_path / "journal"
    monkeypatch.setattr("berth.cli.restore.DIRECTORY", directory)
    answer = run(tmp_path, cgroups)
    assert (answer.exit_code, answer.stdout) == (0, "nothing is pinned\n")
    assert not directory.exists()


def test_a_container_that_has_ended_is_struck_out(tmp_path: Path, cgroups: Path) -> None:
    gone = cgroups / "cpuset" / "pod" / "c"
    write(tmp_path, gone)
    shutil.rmtree(gone)
    assert run(tmp_path, cgroups).stdout == "container web of pod shop/web-1: has ended\n"
    assert run(tmp_path, cgroups).stdout == "nothing is pinned\n"


def test_beside_a_kubelet_of_which_nothing_is_known_everything_stays_as_it_is(tmp_path: Path, cgroups: Path) -> None:
    cgroup = cgroups / "cpuset" / "pod" / "c"
    write(tmp_path, cgroup)
    for _ in range(2):
        answer = run(tmp_path, cgroups, kubelet="torn")
        assert (answer.exit_code, answer.stdout, (cgroup / "cpuset.cpus").read_text()) == (1, "", "1")
        assert answer.stderr.startswith("berth-agent restore: 1 container left alone: ")
        assert "no state of a CPU manager" in answer.stderr


def test_one_of_which_the_runtime_does_not_know_stays(tmp_path: Path, cgroups: Path) -> None:
    """It has its CPUs, and nobody has told the runtime, which has those that were pinned."""
    cgroup = cgroups / "cpuset" / "pod" / "c"
    write(tmp_path, cgroup)
    (cgroup / "cpuset.effective_cpus").unlink()
    (cgroup / "cpuset.effective_cpus").symlink_to("cpuset.cpus")
    for _ in range(2):
        answer = run(tmp_path, cgroups)
        assert answer.exit_code == 1
        text = (
            "has its CPUs back, and stays in the journal until the runtime, which may set again those that were pinned"
        )
        assert f"container web of pod shop/web-1: {text}, takes them: {tmp_path}/none.sock" in answer.stdout
    assert (cgroup / "cpuset.cpus").read_text() == "0-1"


def test_one_that_does_not_get_its_cpus_is_named_and_stays(tmp_path: Path, cgroups: Path) -> None:
    """No kernel makes what is written true here."""
    cgroup = cgroups / "cpuset" / "pod" / "c"
    write(tmp_path, cgroup)
    for _ in range(2):
        answer = run(tmp_path, cgroups)
        assert answer.exit_code == 1
        assert answer.stdout == f"container web of pod shop/web-1: {cgroup}: asked for CPUs 0-1, has 1\n"


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        pytest.param("cgroups", "no hierarchy with the controller cpuset; mount the host's", id="no cgroups"),
        pytest.param("journal", "another process pins by this journal; stop the agent of this node", id="agent runs"),
    ],
)
def test_what_cannot_be_used(tmp_path: Path, cgroups: Path, missing: str, text: str) -> None:
    journal = Journal.open(tmp_path / "journal")
    if missing == "cgroups":
        journal.close()
        cgroups = tmp_path / "empty"
    answer = run(tmp_path, cgroups)
    assert answer.exit_code == 2
    assert text in answer.stderr

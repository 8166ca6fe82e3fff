"""Identity, starting and ending of processes, on real processes: a recycled pid must never be killed."""

from __future__ import annotations

import dataclasses
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hack.localcluster import ClusterError, ProcessRecord, ports, processes

SLEEP = ["/bin/sleep", "600"]
SYS_EXIT = {"x86_64": 60, "aarch64": 93}
"""Numbers of the system call that ends one thread."""
Spawn = Callable[..., ProcessRecord]


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Start a command under the mark of this test's directory."""

    def start(*argv: str, name: str = "sleeper", die_with_parent: bool = False) -> ProcessRecord:
        return processes.spawn(
            name,
            argv or SLEEP,
            mark=str(tmp_path),
            log=tmp_path / "logs" / f"{name}.log",
            record=tmp_path / f"{name}.json",
            cwd=tmp_path,
            die_with_parent=die_with_parent,
        )

    yield start
    processes.kill_marked(str(tmp_path))
    processes.reap()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "condition not reached"
        time.sleep(0.01)


def wait_gone(record: ProcessRecord) -> None:
    wait_until(lambda: not record.alive)


def test_spawned_process_is_alive_recorded_and_in_its_own_session(spawn: Spawn, tmp_path: Path) -> None:
    record = spawn()
    assert record.alive
    assert ProcessRecord.load(tmp_path / "sleeper.json") == record
    assert os.getsid(record.pid) == record.pid != os.getsid(0)
    assert record.rss > 0
    assert record.cpu_seconds >= 0


def test_output_goes_to_the_log_and_restarts_append(spawn: Spawn, tmp_path: Path) -> None:
    for word in ("one", "two"):
        wait_gone(spawn("/bin/sh", "-c", f"echo {word}; echo {word} >&2", name="echo"))
    assert (tmp_path / "logs" / "echo.log").read_text() == "one\none\ntwo\ntwo\n"


def test_stop_ends_the_process(spawn: Spawn) -> None:
    record = spawn()
    processes.stop([record])
    assert not record.alive
    assert (record.rss, record.cpu_seconds) == (0, 0.0)


@pytest.mark.parametrize("grace", [pytest.param(20.0, id="asked first"), pytest.param(0.0, id="killed at once")])
def test_grace_decides_whether_the_process_is_asked_first(spawn: Spawn, tmp_path: Path, grace: float) -> None:
    script = "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    log = tmp_path / "logs" / "trap.log"
    record = spawn("/bin/sh", "-c", script, name="trap")
    wait_until(lambda: "ready" in log.read_text())
    processes.stop([record], grace=grace)
    assert not record.alive
    assert ("asked" in log.read_text()) is (grace > 0)


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(spawn: Spawn, tmp_path: Path) -> None:
    record = spawn("/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done", name="deaf")
    wait_until(lambda: "ready" in (tmp_path / "logs" / "deaf.log").read_text())
    processes.stop([record], grace=0.2)
    assert not record.alive


def test_a_recycled_pid_is_neither_alive_nor_killed(spawn: Spawn) -> None:
    stranger = spawn()
    # What the record of an ended process looks like once the kernel gave its pid to the stranger.
    stale = dataclasses.replace(stranger, started=stranger.started + "0")
    assert not stale.alive
    assert stale.rss == 0
    processes.stop([stale], grace=0.1)
    assert stranger.alive


def test_a_zombie_is_not_alive() -> None:
    with subprocess.Popen(["/bin/true"]) as child:
        wait_until(lambda: processes.start_stamp(child.pid) is None)
        assert (Path("/proc") / str(child.pid)).exists()


def test_a_process_is_alive_until_its_last_thread_has_ended(spawn: Spawn, tmp_path: Path) -> None:
    """After SIGKILL the first thread is often a zombie while others still hold the sockets of all."""
    only_the_first_thread_ends = (
        "import ctypes, signal, socket, threading\n"
        "listener = socket.create_server(('127.0.0.1', 0))\n"
        "threading.Thread(target=signal.pause).start()\n"
        "print(listener.getsockname()[1], flush=True)\n"
        f"ctypes.CDLL(None).syscall({SYS_EXIT[platform.machine()]}, 0)\n"
    )
    record = spawn(sys.executable, "-c", only_the_first_thread_ends, name="threads")
    wait_until(lambda: " Z " in Path(f"/proc/{record.pid}/stat").read_text())
    port = int((tmp_path / "logs" / "threads.log").read_text())
    assert record.alive
    assert processes.marked(str(tmp_path)) == [record.pid]
    assert not ports.is_free(port)
    processes.stop([record])
    assert not record.alive
    assert ports.is_free(port)


@pytest.mark.parametrize("pid", [pytest.param(0, id="0"), pytest.param(-1, id="-1"), pytest.param(2**30, id="unused")])
def test_no_stamp_without_a_process(pid: int) -> None:
    assert processes.start_stamp(pid) is None


def test_a_process_keeps_its_stamp_and_others_have_another(spawn: Spawn) -> None:
    own = processes.start_stamp(os.getpid())
    assert own == processes.start_stamp(os.getpid())
    assert spawn().started != own


def test_an_awkward_program_name_does_not_confuse_the_stamp(spawn: Spawn, tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    program.symlink_to("/bin/sleep")
    assert spawn(str(program), "600").alive


def test_marked_finds_processes_without_any_record(spawn: Spawn, tmp_path: Path) -> None:
    record = spawn()
    (tmp_path / "sleeper.json").unlink()
    assert processes.marked(str(tmp_path)) == [record.pid]
    assert processes.marked(str(tmp_path) + "/other") == []
    assert processes.marked(str(tmp_path.parent)) == []
    assert processes.kill_marked(str(tmp_path)) == [record.pid]
    assert not record.alive


def test_marked_looks_again_at_a_process_that_is_just_becoming_its_program(
    spawn: Spawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During exec a process is there and has no environment: for tens of milliseconds on a busy machine."""
    record, real, looks = spawn(), processes._environment, iter(range(3))

    def environment(pid: int) -> bytes:
        return b"" if pid == record.pid and next(looks, None) is not None else real(pid)

    monkeypatch.setattr(processes, "_environment", environment)
    assert processes.marked(str(tmp_path)) == [record.pid]
    assert next(looks, None) is None


def test_a_process_without_an_environment_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "EXEC_SECONDS", 0.05)
    with subprocess.Popen(SLEEP, env={}) as bare:
        assert processes.marked(str(tmp_path)) == []
        bare.kill()


def test_die_with_parent(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from hack.localcluster import processes; home = Path(sys.argv[1]);"
        "processes.spawn('child', ['/bin/sleep', '600'], mark=str(home), log=home / 'log', record=home / 'child.json',"
        " cwd=home, die_with_parent=True); print('started', flush=True); time.sleep(600)"
    )
    root = Path(__file__).resolve().parents[4]
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=root
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "started\n"
        record = ProcessRecord.load(tmp_path / "child.json")
        wait_until(lambda: (Path("/proc") / str(record.pid) / "comm").read_text() == "sleep\n")
        parent.send_signal(signal.SIGKILL)
    wait_gone(record)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="cut off"),
        pytest.param("[]", id="a list"),
        pytest.param('{"pid": 1}', id="fields missing"),
    ],
)
def test_a_damaged_record_names_file_and_remedy(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ClusterError, match=r"x\.json is not a process record.*hack/cluster down"):
        ProcessRecord.load(path)


def test_a_missing_program_is_a_clear_error(spawn: Spawn) -> None:
    with pytest.raises(ClusterError, match=r"sleeper: cannot start /nonexistent: No such file"):
        spawn("/nonexistent")

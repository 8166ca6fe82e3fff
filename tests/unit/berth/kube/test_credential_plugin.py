"""Credential plugins of kubeconfigs: those that hang, talk too much or answer with nothing hold up nobody for good."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import select
import sys
from pathlib import Path
from typing import Any

import pytest

from berth.kube import credential_plugin
from berth.kube.connection import Connection, ConnectionConfigError
from tests.support.kubeconfigs import config, connect, forget_environment, written

VERSION = "client.authentication.k8s.io/v1"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_environment(monkeypatch, tmp_path / "home")


def answer(status: Any) -> str:
    """Code of a plugin with this answer."""
    document = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(document)!r})"


def user(code: str, **fields: Any) -> dict[str, Any]:
    """A user with a plugin that runs this code."""
    return {"exec": {"apiVersion": VERSION, "command": sys.executable, "args": ["-S", "-c", code], **fields}}


async def run(tmp_path: Path, code: str, **fields: Any) -> Connection:
    return await connect(tmp_path, user=user(code, **fields))


async def test_one_that_tells_more_than_a_pipe_holds_is_read(tmp_path: Path) -> None:
    code = f"import sys; sys.stderr.write('x' * 1_000_000); {answer({'token': 't'})}"
    assert await (await run(tmp_path, code)).headers() == {"authorization": "Bearer t"}


async def test_one_that_gives_no_answer_is_ended_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its children too: they would hold the pipes open."""
    monkeypatch.setattr(credential_plugin, "PLUGIN_SECONDS", 1.0)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    code = f"import subprocess; subprocess.run(['sleep', '600'], stdin=open({str(pipe)!r}, 'w'))"
    with pytest.raises(ConnectionConfigError, match=r"gave no answer within 1 s"):
        await run(tmp_path, code)
    # The last writer goes, if not at once: what is killed ends in its own time, and until then nothing can be read.
    assert select.select([reader], [], [], 30.0)[0]
    assert os.read(reader, 1) == b""
    os.close(reader)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("while True: print('x' * 10_000)", id="while it goes on"),
        pytest.param(
            f"import fcntl; fcntl.fcntl(1, {fcntl.F_SETPIPE_SZ}, 2**20)\nwhile True: print('x' * 2**20)",
            id="while it goes on, faster than it is read",
        ),
        pytest.param("print('x' * 2_000_000); import sys; sys.stdout.close()", id="and ends by itself"),
    ],
)
async def test_one_that_does_not_stop_talking_is_ended_and_told(tmp_path: Path, code: str) -> None:
    """It would take all memory long before its time is over."""
    with pytest.raises(ConnectionConfigError, match=r"prints more than 1048576 bytes, which is no ExecCredential"):
        await run(tmp_path, code)


async def test_of_what_one_says_beside_its_answer_the_last_is_told(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('x' * 3_000_000 + 'log in first'); sys.exit(1)"
    with pytest.raises(ConnectionConfigError, match=r"ended with 1: x{1988}log in first;"):
        await run(tmp_path, code)


async def test_one_that_is_not_waited_for_any_more_is_ended(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = f"import time; file = open({str(pipe)!r}, 'w'); file.write('x'); file.flush(); time.sleep(600)"
    task = asyncio.create_task(run(tmp_path, code))
    with await asyncio.to_thread(pipe.open) as reader:
        assert await asyncio.to_thread(reader.read, 1) == "x"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(reader.read) == ""


async def test_standard_input_is_none_of_its_business(tmp_path: Path) -> None:
    code = f"import sys; sys.stdin.read(); {answer({'token': 't'})}"
    assert await (await run(tmp_path, code)).headers() == {"authorization": "Bearer t"}


@pytest.mark.parametrize(
    ("code", "text"),
    [
        pytest.param(answer({}), "neither a token nor", id="nothing"),
        pytest.param(answer(None), "neither a token nor", id="null"),
        pytest.param(answer([1]), "neither a token nor", id="a list"),
        pytest.param(answer({"token": None}), "neither a token nor", id="token is null"),
        pytest.param(answer({"token": ""}), "neither a token nor", id="token is empty"),
        pytest.param(answer({"clientCertificateData": "x"}), "neither a token nor", id="certificate without key"),
        pytest.param(answer({"clientKeyData": "x"}), "neither a token nor", id="key without certificate"),
        pytest.param("print('[]')", "no ExecCredential", id="a list for all"),
        pytest.param("print('[' * 100000)", "no ExecCredential", id="nested without end"),
        pytest.param("import sys; sys.stdout.buffer.write(b'\\xff')", "no ExecCredential", id="no text"),
        pytest.param(answer({"token": "t"}).replace("/v1", "/v2"), "/v2", id="another version"),
        pytest.param("import sys; sys.stderr.buffer.write(b'\\xff'); sys.exit(3)", "ended with 3", id="words of bytes"),
    ],
)
async def test_an_answer_that_proves_nothing_is_told(tmp_path: Path, code: str, text: str) -> None:
    """Whoever asked without credentials would be refused as nobody, and never try again."""
    with pytest.raises(ConnectionConfigError) as caught:
        await run(tmp_path, code)
    assert text in str(caught.value)


async def test_an_answer_that_proves_nothing_for_a_moment_leaves_the_token_before(tmp_path: Path) -> None:
    made = await run(tmp_path, answer({"token": "t"}))
    written(tmp_path / "k", config(user=user(answer({}))))
    with pytest.raises(ConnectionConfigError, match="neither a token nor"):
        await made.reload(seen=0)
    assert await made.headers() == {"authorization": "Bearer t"}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"env": None}, id="no environment"),
        pytest.param({"env": [{"name": "A"}]}, id="a variable without value"),
        pytest.param({"interactiveMode": "Never", "provideClusterInfo": True}, id="other fields"),
    ],
)
async def test_fields_that_may_be_empty(tmp_path: Path, fields: dict[str, Any]) -> None:
    code = f"import os; assert os.environ.get('A', '') == ''; {answer({'token': 't'})}"
    assert await (await run(tmp_path, code, **fields)).headers() == {"authorization": "Bearer t"}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A plugin that is a program of its own."""
    script = Path(written(tmp_path / "bin/plugin", f"#!{sys.executable} -S\n{answer({'token': 't'})}\n"))
    script.chmod(0o755)
    return script


async def test_a_command_with_a_path_is_looked_for_beside_the_kubeconfig(tmp_path: Path, script: Path) -> None:
    made = await connect(tmp_path, user={"exec": {"apiVersion": VERSION, "command": f"./bin/{script.name}"}})
    assert await made.headers() == {"authorization": "Bearer t"}

"""Credential plugins of kubeconfigs: programs that print a token or a client certificate.

kubernetes_asyncio waits for them for ever, and waits for what they print to one pipe while they may be waiting to print
to the other; an answer without credentials it takes for one.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.kube_config import ConfigNode

from berth.kube.decoding import without_nulls

PLUGIN_SECONDS = 180.0
"""Seconds for an answer: as long as such programs themselves wait for somebody to log in."""
LARGEST_ANSWER = 2**20
"""Bytes of an answer: a token has thousands, a certificate with its chain some ten thousand."""
_CHUNK = 2**16
_END_SECONDS = 5.0
"""Seconds that a plugin which was killed is waited for."""
_SHOWN = 2000
"""Bytes of a plugin's last words that are told."""


class CredentialPlugin:
    """One plugin as a user states it, in the shape of kubernetes_asyncio's ExecProvider."""

    def __init__(self, exec_config: ConfigNode) -> None:
        """Read the field ``exec``.

        Raises:
            ConfigException: it states no command or version.
        """
        stated = exec_config.value if isinstance(exec_config, ConfigNode) else None
        if not isinstance(stated, dict) or not stated.get("command") or not stated.get("apiVersion"):
            raise ConfigException("exec of the user must state a command and an apiVersion")
        arguments, variables = stated.get("args") or [], stated.get("env") or []
        if not isinstance(arguments, list) or not isinstance(variables, list):
            raise ConfigException("args and env of the user's exec must be lists")
        self._command = [str(part) for part in (stated["command"], *arguments)]
        self._version = stated["apiVersion"]
        stdin = sys.stdin
        self._interactive = stated.get("interactiveMode") != "Never" and stdin is not None and stdin.isatty()
        asked = {
            "apiVersion": self._version,
            "kind": "ExecCredential",
            "spec": {"interactive": self._interactive},
        }
        own = {str(each["name"]): str(each.get("value", "")) for each in variables}
        self._environment = {**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(asked)}

    async def run(self) -> Mapping[str, Any]:
        """Run it and return the status of its answer, which has a token or a certificate with its key.

        Raises:
            ConfigException: it fails, gives no answer in time, or none with credentials.
            OSError: it cannot be started.
        """
        code, said, words = await self._answer()
        name = self._command[0]
        if code != 0:
            text = words.decode(errors="replace").strip()
            raise ConfigException(f"exec: {name} ended with {code}{': ' if text else ''}{text}")
        try:
            answer = json.loads(said)
        except (ValueError, RecursionError) as error:
            raise ConfigException(f"exec: what {name} prints is no ExecCredential") from error
        if not isinstance(answer, dict) or answer.get("apiVersion") != self._version:
            found = answer.get("apiVersion") if isinstance(answer, dict) else None
            raise ConfigException(f"exec: what {name} prints is no ExecCredential of {self._version}, but of {found}")
        status = without_nulls(answer.get("status"))
        if not isinstance(status, dict) or not (
            status.get("token") or (status.get("clientCertificateData") and status.get("clientKeyData"))
        ):
            # Requests without credentials are forbidden, not refused as nobody's: it would never be asked again.
            raise ConfigException(f"exec: {name} gives neither a token nor a client certificate with its key")
        return {name: value for name, value in status.items() if value}

    async def _answer(self) -> tuple[int | None, bytes, bytes]:
        """How it ended and what it printed; people at a terminal see what it says to them."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            env=self._environment,
            stdin=None if self._interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if self._interactive else asyncio.subprocess.PIPE,
            start_new_session=not self._interactive,
        )
        reading = [
            asyncio.create_task(_answer_of(process, self._command[0])),
            asyncio.create_task(_last_words(process)),
        ]
        try:
            async with asyncio.timeout(PLUGIN_SECONDS):
                said, words = await asyncio.gather(*reading)
                await process.wait()
        except TimeoutError as error:
            raise ConfigException(f"exec: {self._command[0]} gave no answer within {PLUGIN_SECONDS:g} s") from error
        finally:
            for each in reading:
                each.cancel()
            await asyncio.gather(*reading, return_exceptions=True)
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    if self._interactive:
                        process.kill()
                    else:  # with its children, who may hold its pipes
                        os.killpg(process.pid, signal.SIGKILL)
                await _ended(process)
        return process.returncode, said, words


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait for the end of a process that was killed: it is told once all that it has printed is read."""
    with suppress(TimeoutError):  # a child of one who was asked at a terminal may go on printing
        async with asyncio.timeout(_END_SECONDS):
            await asyncio.gather(process.wait(), *map(_read_up, (process.stdout, process.stderr)))


async def _read_up(pipe: asyncio.StreamReader | None) -> None:
    while pipe is not None and await pipe.read(_CHUNK):
        pass


async def _answer_of(process: asyncio.subprocess.Process, name: str) -> bytes:
    pipe, said = process.stdout, bytearray()
    while pipe is not None and (part := await pipe.read(_CHUNK)):
        said += part
        if len(said) > LARGEST_ANSWER:
            raise ConfigException(f"exec: {name} prints more than {LARGEST_ANSWER} bytes, which is no ExecCredential")
    return bytes(said)


async def _last_words(process: asyncio.subprocess.Process) -> bytes:
    words = b""
    while process.stderr is not None and (part := await process.stderr.read(_CHUNK)):
        words = (words + part)[-_SHOWN:]
    return words

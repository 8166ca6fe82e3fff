"""What the command ``berth`` loads before components run: it stays in memory as long as they do, on every node."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SHOWS = """
import json, sys
from berth.cli.entry import main
try:
    main()
finally:
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.parametrize("component", ["node", "pinning"])
def test_an_agent_does_without_what_other_commands_load(component: str) -> None:
    command = [sys.executable, "-c", SHOWS, "run", component, "--health-port", "70000"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "--health-port '70000'" in found.stderr
    loaded = set(json.loads(found.stdout))
    assert {"agents", "aiohttp", "structlog"} <= loaded
    assert not loaded & {"kopf", "kubernetes_asyncio", "numpy", "rich", "typer", "yaml"}


def test_other_commands_have_what_they_need() -> None:
    command = [sys.executable, "-c", "from berth.cli.entry import main; main()", "plan", "-f", "/nowhere"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "/nowhere" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("main", ["main", "kubectl_main"])
def test_ctrl_c_while_a_command_is_loaded_ends_it_without_a_traceback(main: str) -> None:
    interrupted = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # which jobs in the background ignore\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'yaml': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        f"from berth.cli.entry import {main}; {main}()"
    )
    found = subprocess.run([sys.executable, "-c", interrupted, "plan"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (130, "")

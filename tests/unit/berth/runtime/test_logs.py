"""Log lines as people and machines see them; in a process of its own, since logging is global."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

PRELUDE = """
import logging, structlog
from berth.runtime.logs import configure_logs
"""


def stderr_of(code: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", PRELUDE + code], capture_output=True, text=True, check=True, timeout=60
    )
    assert answer.stdout == ""  # standard output belongs to commands that print results
    return answer.stderr


def records(code: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stderr_of(code).splitlines()]


def test_structlog_and_standard_logging_have_one_format() -> None:
    own, foreign = records(
        """
configure_logs()
structlog.get_logger("berth.x").info("bound", pod="shop/web-0", node="n1", odd={1, 1})
logging.getLogger("aiohttp.y").warning("closed %s", 3)
"""
    )
    assert own.pop("time") < foreign.pop("time")
    assert own == {
        "event": "bound", "pod": "shop/web-0", "node": "n1", "odd": "{1}", "level": "info", "logger": "berth.x"
    }  # fmt: skip
    assert foreign == {"event": "closed 3", "level": "warning", "logger": "aiohttp.y"}


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("warning", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_level_applies_to_both(level: str, shown: list[str]) -> None:
    lines = records(
        f"""
configure_logs(level={level!r})
for name in ("debug", "info", "warning", "error"):
    getattr(structlog.get_logger("berth"), name)("own")
    getattr(logging.getLogger("other"), name)("foreign")
"""
    )
    assert [line["level"] for line in lines if line["event"] == "own"] == shown
    assert [line["level"] for line in lines if line["event"] == "foreign"] == shown


FAILING = """
def send(token):
    raise ValueError("refused")
try:
    send("s3cr3t" + "-t0ken")
except ValueError:
    structlog.get_logger("berth").exception("own failed")
    logging.getLogger("other").exception("foreign failed")
"""


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "text"])
def test_tracebacks_are_shown_without_local_variables(as_json: bool) -> None:
    text = stderr_of(f"configure_logs(as_json={as_json}){FAILING}")
    assert text.count("refused") >= 2
    assert "s3cr3t-t0ken" not in text


def test_json_tracebacks_are_one_line_each() -> None:
    own, foreign = records(f"configure_logs(){FAILING}")
    for record in (own, foreign):
        (trace,) = record["exception"]
        assert (trace["exc_type"], trace["exc_value"]) == ("ValueError", "refused")
        assert trace["frames"][-1]["name"] == "send"


def test_text_has_no_colours_when_nobody_watches() -> None:
    text = stderr_of('configure_logs(as_json=False)\nstructlog.get_logger("berth").info("bound", pod="web-0")')
    assert "bound" in text
    assert "pod=web-0" in text
    assert "\x1b" not in text


def test_kopf_is_quiet_below_warning() -> None:
    lines = records(
        """
configure_logs(level="debug")
logging.getLogger("kopf.objects").info("handler succeeded")
logging.getLogger("kopf.objects").warning("handler failed")
"""
    )
    assert [line["event"] for line in lines] == ["handler failed"]

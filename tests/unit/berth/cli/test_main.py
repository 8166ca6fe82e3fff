"""The command ``berth`` itself."""

from __future__ import annotations

import pytest

from tests.support.probe import berth


@pytest.mark.parametrize("arguments", [["--help"], []], ids=["--help", "nothing"])
def test_the_command_explains_itself(arguments: list[str]) -> None:
    with berth(*arguments) as process:
        output, errors = process.popen.communicate(timeout=30)
    assert "run" in output + errors
    assert "pod placement for Kubernetes" in output + errors

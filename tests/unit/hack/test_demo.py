"""How demos end."""

from __future__ import annotations

import pytest

from hack.demo import exit_status
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

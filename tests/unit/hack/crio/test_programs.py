"""What is told where CRI-O cannot be built."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.crio.__main__ import main
from hack.crio.programs import CRIO
from hack.localcluster import tools


def test_a_proxy_without_it_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BERTH_TOOLS_DIR", str(tmp_path / "tools"))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOPROXY", "off")
    assert main() == 1
    *_, reason, remedy = capsys.readouterr().err.splitlines()
    assert reason == "module lookup disabled by GOPROXY=off"
    assert "CRI-O, which tests of pinning need, could not be built: have GOPROXY name a proxy that has" in remedy
    assert str(tools.apart(CRIO)) in remedy
    assert not tools.apart(CRIO).exists()

"""``python -m hack.codegen``: exit statuses and what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.codegen.__main__ import main


def test_check_shows_a_diff_and_fails_when_a_file_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = ["--root", str(tmp_path)]
    assert main(["--check", *root]) == 1
    assert main(root) == 0
    assert main(["--check", *root]) == 0
    capsys.readouterr()
    target = tmp_path / "crds" / "appgroup.diktyo.x-k8s.io_appgroups.yaml"
    target.write_text(target.read_text().replace("minimum: 1\n", "minimum: 2\n", 1))
    assert main(["--check", *root]) == 1
    shown = capsys.readouterr().out
    assert "-                minimum: 2" in shown
    assert "+                minimum: 1" in shown
    assert "make manifests" in shown

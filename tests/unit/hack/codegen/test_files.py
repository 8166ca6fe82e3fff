"""All generated files: written, and compared with what the models say."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.codegen.files import ROOT, drift, generated_files, write


def test_files_in_the_tree_are_up_to_date() -> None:
    assert drift(ROOT) == []


def test_what_was_written_is_up_to_date(tmp_path: Path) -> None:
    assert write(tmp_path) == list(generated_files())
    assert drift(tmp_path) == []


@pytest.mark.parametrize("missing", sorted(generated_files()))
def test_a_missing_file_is_drift(missing: str, tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / missing).unlink()
    assert any(missing in line for line in drift(tmp_path))


def test_a_manifest_of_no_kind_is_drift(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "crds" / "old.yaml").write_text("")
    assert drift(tmp_path) == ["crds/old.yaml: no model generates this file; delete it"]

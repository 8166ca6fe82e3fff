"""What fails once is run again alone, unless too much fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.second_try import MOST_FILES, failed_files, run

ONCE = """
from pathlib import Path

def test_first():
    pass

def test_second():
    mark = Path(__file__).with_suffix(".tried")
    tried = mark.exists()
    mark.touch()
    assert tried
"""
ALWAYS = """
def test_it():
    assert False
"""
BROKEN = """
import no_such_module
"""
FINE = """
def test_it():
    pass
"""


@pytest.mark.parametrize(
    ("files", "code", "said"),
    [
        pytest.param([FINE, FINE], 0, [], id="all-pass"),
        pytest.param([ONCE, FINE], 0, ["once more, alone", "a fault to look into: {0}"], id="one-fails-once"),
        pytest.param([ALWAYS, FINE], 1, ["once more, alone: {0}"], id="one-fails-always"),
        pytest.param([ALWAYS, ONCE], 1, ["once more, alone: {0}, {1}"], id="one-of-two-fails-always"),
        pytest.param([ONCE] * MOST_FILES, 0, ["a fault to look into: {0}, {1}"], id="as-many-as-may"),
        pytest.param([ONCE] * (MOST_FILES + 1), 1, [], id="too-many"),
        pytest.param([BROKEN, FINE], 2, [], id="does-not-even-load"),
    ],
)
def test_what_counts(
    files: list[str],
    code: int,
    said: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    names = [f"test_{number}.py" for number in range(len(files))]
    for name, text in zip(names, files, strict=True):
        (tmp_path / name).write_text(text)
    assert run(["-p", "no:hypothesispytest", "-p", "no:xdist", "."]) == code
    shown = capfd.readouterr().out
    for text in said:
        assert text.format(*names) in shown
    assert ("once more" in shown) == bool(said)
    assert ("a fault to look into" in shown) == any("a fault" in text for text in said)


def test_only_the_failing_file_is_run_again_and_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_fine.py").write_text(FINE)
    (tmp_path / "test_once.py").write_text(ONCE)
    run(["-v", "."])
    again = capfd.readouterr().out.partition("once more")[2]
    assert "collected 2 items" in again
    assert "test_fine" not in again


def test_without_a_record_nothing_has_failed(tmp_path: Path) -> None:
    assert failed_files(tmp_path) == []

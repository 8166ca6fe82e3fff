"""What fails once is run again alone, unless too much fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.second_try import MOST_FILES, failed_tests, run

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
        pytest.param(
            [ONCE, FINE], 0, ["once more, alone", "a fault to look into: {0}::test_second"], id="one-fails-once"
        ),
        pytest.param([ALWAYS, FINE], 1, ["once more, alone: {0}", "failed: {0}::test_it"], id="one-fails-always"),
        pytest.param(
            [ALWAYS, ONCE], 1, ["once more, alone: {0}, {1}", "failed: {0}::test_it"], id="one-of-two-fails-always"
        ),
        pytest.param(
            [ONCE] * MOST_FILES,
            0,
            ["once more, alone", "look into: {0}::test_second", "a fault to look into: {1}::test_second"],
            id="as-many-as-may",
        ),
        pytest.param([ONCE] * (MOST_FILES + 1), 1, ["failed: {0}::test_second"], id="too-many"),
        pytest.param([BROKEN, FINE], 2, ["failed: {0}"], id="does-not-even-load"),
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
    told = tmp_path / "told"
    told.write_text("failed: of another suite\n")
    assert run(["-p", "no:hypothesispytest", "-p", "no:xdist", "."], told) == code
    shown = capfd.readouterr().out
    for text in said:
        assert text.format(*names) in shown
    for word in ("once more", "a fault to look into", "failed: "):
        assert (word in shown) == any(word in text for text in said)
    after = [text.format(*names) for text in said if "once more" not in text]
    lines = told.read_text().splitlines()
    assert lines[0] == "failed: of another suite"
    assert [text for text in after if not any(line.endswith(text) for line in lines[1:])] == []
    assert bool(lines[1:]) == bool(after)


def test_only_the_failing_file_is_run_again_and_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_fine.py").write_text(FINE)
    (tmp_path / "test_once.py").write_text(ONCE)
    run(["-v", "."], tmp_path / "told")
    again = capfd.readouterr().out.partition("once more")[2]
    assert "collected 2 items" in again
    assert "test_fine" not in again


def test_a_run_that_ends_otherwise_is_told_by_its_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    assert run(["no-such-folder"], tmp_path / "told") == 4
    assert (tmp_path / "told").read_text() == "status 4: pytest no-such-folder\n"


def test_without_a_record_nothing_has_failed(tmp_path: Path) -> None:
    assert failed_tests(tmp_path) == []

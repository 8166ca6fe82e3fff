"""The rules of the layout, on trees of a few files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.layout import LOGIC, MAX_LINES, ROOT, TESTED_ELSEWHERE, logic, main

FUNCTION = "def function():\n" + "    pass\n" * LOGIC


def tree(root: Path, **files: str) -> Path:
    """Files by path, in which ``__`` stands for ``/``."""
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "code", "text"),
    [
        ({"berth__a": "\n" * MAX_LINES}, 0, ""),
        ({"berth__a": "\n" * (MAX_LINES + 1)}, 1, "berth/a.py: 401 lines, at most 400; split it"),
        ({"tests__support__a": "\n" * (MAX_LINES + 1)}, 1, "tests/support/a.py: 401 lines"),
        ({"berth__a": FUNCTION, "tests__unit__berth__test_a": ""}, 0, ""),
        ({"berth__a": FUNCTION, "tests__unit__berth__test_a_when_full": ""}, 0, ""),
        ({"berth__a": FUNCTION, "berth__a_b": FUNCTION, "tests__unit__berth__test_a_b_c": ""}, 0, "a.py: 41 lines of"),
        ({"berth__a": "", "tests__unit__berth__test_ab": ""}, 1, "tests/unit/berth/test_ab.py: no module in berth/"),
        ({"berth__a": "", "tests__unit__test_a": ""}, 1, "tests/unit/test_a.py: no module in ./"),
        ({"berth__a__b": "", "tests__unit__berth__test_a": ""}, 0, ""),
        ({"berth__main": "", "tests__unit__berth__conftest": "", "tests__unit__berth__helpers": ""}, 0, ""),
        ({"tests__unit__test_examples": ""}, 0, ""),
        ({"berth__a": FUNCTION}, 0, "warning: berth/a.py: 41 lines of logic without tests/unit/berth/test_a.py"),
        ({"berth__a": FUNCTION, "tests__integration__test_a": ""}, 0, "warning: berth/a.py"),
        ({"hack__demo": FUNCTION, "bench__b__c": FUNCTION}, 0, ""),
    ],
    ids=[
        "as long as allowed",
        "too long",
        "too long a helper",
        "tested",
        "tested in an aspect",
        "the longest name counts",
        "a name is not a prefix of letters",
        "in the wrong directory",
        "test of a package",
        "helpers are no tests",
        "examples",
        "not tested",
        "integration tests do not count",
        "exempt",
    ],
)
def test_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], code: int, text: str) -> None:
    assert main(tree(tmp_path, **files)) == code
    shown = capsys.readouterr().out.strip()
    assert text in shown
    assert bool(text) == bool(shown)


def test_dunder_modules_are_tested_without_their_underscores(tmp_path: Path) -> None:
    (tmp_path / "berth").mkdir()
    (tmp_path / "berth" / "__main__.py").write_text("")
    assert main(tree(tmp_path, tests__unit__berth__test_main="")) == 0


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("A = 1\n\nclass B:\n    c = 2\n", 0),
        ("def a():\n    def b():\n        pass\n    return b\n", 4),
        ("class A:\n    async def b(self):\n        pass\n", 2),
    ],
    ids=["data", "nested", "method"],
)
def test_logic_is_what_functions_hold(source: str, lines: int) -> None:
    assert logic(source) == lines


def test_every_exemption_is_about_something_and_names_something() -> None:
    for exempt, instead in TESTED_ELSEWHERE.items():
        assert (ROOT / exempt).exists()
        assert (ROOT / instead).exists()

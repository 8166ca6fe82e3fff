"""Tables and goals: what is compared with what, and what counts as missed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.latency.__main__ import main
from bench.latency.cells import CELLS, Row, goals
from bench.latency.scenarios import PUBLISHED
from bench.latency.tables import errors_off, missed, page, row

GOOD: Row = {
    "latency": [19.5, 1, 100],
    "convergence": [5.0, 3, 100],
    "success": [1.0, 0, 100],
    "first": [21.0, 1, 100],
    "moves": [0.8, 0.4, 100],
    "cancelled": [0.0, 0, 100],
    "failed": [0.0, 0, 100],
    "extra": [1.0, 0, 100],
}
CROWD: Row = {
    "ratio": [1.0, 0, 9],
    "convergence then": [1, 0, 9],
    "moves then": [0, 0, 9],
    "within": [0.8, 0, 9],
}


def test_a_row_has_means_over_the_runs_that_have_a_figure_and_the_most_pods() -> None:
    found = row(
        [{"convergence": 1.0, "extra": 0.0}, {"convergence": None, "extra": 2.0}, {"convergence": 4.0, "extra": 1.0}]
    )
    assert found == {"convergence": [2.5, 2.1213, 2], "extra": [2.0, 1.0, 3]}


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        pytest.param("minimum 0 S1", {}, [], id="all is well"),
        pytest.param("minimum 0 S1", {"latency": [20.5, 1, 100]}, ["latency 20.50, goal 20"], id="too far"),
        pytest.param("minimum 0 S1", {"first": [23.0, 1, 100]}, ["first 23.00, goal 22.5"], id="too far at first"),
        pytest.param("minimum 0.3 S1", {"first": [23.0, 1, 100]}, [], id="no goal for that"),
        pytest.param("soft 1 S3", {"moves": [2.3, 1, 100]}, ["moves 2.30, goal 2.2"], id="too many moves"),
        pytest.param("hard 1 S2", {"convergence": [7.5, 1, 100]}, ["convergence 7.50, goal 7"], id="too late"),
        pytest.param("minimum 0 S1", {"success": [0.99, 0, 100]}, ["success 0.9900, goal 0.995"], id="not always"),
        pytest.param("minimum 0 S1", {"failed": [0.1, 0, 100]}, ["failed 0.1, goal 0"], id="a request failed"),
        pytest.param("minimum 0 S1", {"extra": [2.0, 0, 100]}, ["2 pods too many at once, goal 1"], id="two more pods"),
        pytest.param("calm minimum", {"moves": [1.2, 0, 100]}, ["moves 1.20, goal 1"], id="moves without need"),
        pytest.param("crowd 0.3", CROWD, ["0.80 of the users within the limit, goal 0.90"], id="users beyond"),
        pytest.param("crowd 1.0", CROWD, [], id="no goal where nobody can be probed"),
    ],
)
def test_what_is_missed(name: str, change: Row, words: list[str]) -> None:
    assert missed({name: GOOD | change}) == [f"{name}: {each}" for each in words]


def test_a_rule_is_reproduced_within_three_milliseconds_and_three_standard_errors() -> None:
    stated = PUBLISHED["LAIS-H"][0]
    own = GOOD | {"latency": [stated.latency + 2.9, 1, 1000], "convergence": [stated.convergence + 8, 30.0, 1000]}
    assert errors_off(own["convergence"], stated.convergence) == pytest.approx(8 / 3)
    assert missed({"LAIS-H S1": own}) == []
    own |= {"latency": [stated.latency + 3.1, 1, 1000], "convergence": [stated.convergence + 10, 30.0, 1000]}
    assert len(missed({"LAIS-H S1": own})) == 2


def test_all_cells_but_those_of_a_hard_limit_and_some_users_have_goals() -> None:
    assert [cell.name for cell in CELLS if not goals(cell.name)] == ["hard 0.3 S1", "hard 0.3 S2", "hard 0.3 S3"]


def test_the_command_writes_tables_and_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figures.json"
    main(["--runs", "3", "--processes", "1", "--only", "hard 0 S1", "--only", "LAIS-H S1", "--json", str(file)])
    rows = json.loads(file.read_text())
    assert set(rows) == {"hard 0 S1", "LAIS-H S1"}
    printed = capsys.readouterr().out
    assert printed.startswith(page(rows))
    assert "| hard 0 S1 |" in printed
    assert "| LAIS-H S1 |" in printed


def test_a_name_that_no_cell_begins_with_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--only", "soft 0 S9"])
    assert "no cell begins with soft 0 S9: LAIS-H S1, " in capsys.readouterr().err

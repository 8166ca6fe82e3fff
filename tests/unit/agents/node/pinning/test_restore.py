"""What a container is to have back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agents.node.pinning.cpuset import Cpuset
from agents.node.pinning.cri import CriError, RuntimeClient
from agents.node.pinning.hierarchy import Hierarchy, Version
from agents.node.pinning.journal import Entry, Journal
from agents.node.pinning.restore import before, restore, unchanged
from agents.node.pinning.writer import CpusetWriter


@pytest.mark.parametrize(
    ("cpus", "mems", "allowed", "expected"),
    [
        pytest.param("0-3", "0", "0-7", ({0, 1, 2, 3}, {0}), id="what it had"),
        pytest.param("", "", "0-7", (set(range(8)), {0, 1}), id="it had stated nothing"),
        pytest.param("0-7", "0-1", "4-7", ({4, 5, 6, 7}, {0, 1}), id="its pod has fewer now"),
        pytest.param("0-3", "0", "4-7", ({4, 5, 6, 7}, {0}), id="its pod has none of them now"),
        pytest.param("many", "all", "0-3", ({0, 1, 2, 3}, {0, 1}), id="a journal edited by hand"),
    ],
)
def test_what_it_gets(cpus: str, mems: str, allowed: str, expected: tuple[set[int], set[int]]) -> None:
    first, last = map(int, allowed.split("-"))
    found = Cpuset(
        cpus="1",
        mems="1",
        effective_cpus=frozenset({1}),
        effective_mems=frozenset({1}),
        allowed_cpus=frozenset(range(first, last + 1)),
        allowed_mems=frozenset({0, 1}),
    )
    assert before(Entry(container="c", cgroup="/c", cpus=cpus, mems=mems), found) == expected


@pytest.mark.parametrize(
    ("written", "effective", "allowed", "expected"),
    [
        pytest.param("0-1", {0, 1}, {0, 1, 2, 3}, True, id="as it was written"),
        pytest.param("0-1", {0}, {0, 1, 2, 3}, False, id="somebody took some away"),
        pytest.param("0-1", {0, 1, 2, 3}, {0, 1, 2, 3}, False, id="somebody gave it all"),
        pytest.param("0-1", {0}, {0, 2}, True, id="a CPU is offline"),
        pytest.param("", {0, 1}, {0, 1}, False, id="nobody knows what was written"),
        pytest.param("many", {0, 1}, {0, 1}, False, id="a journal edited by hand"),
    ],
)
def test_whether_somebody_has_changed_it(written: str, effective: set[int], allowed: set[int], expected: bool) -> None:
    found = Cpuset(
        cpus="",
        mems="",
        effective_cpus=frozenset(effective),
        effective_mems=frozenset({0}),
        allowed_cpus=frozenset(allowed),
        allowed_mems=frozenset({0}),
    )
    assert unchanged(Entry(container="c", cgroup="/c", cpus="0-3", mems="0", written=written), found) is expected


async def test_many_that_have_ended_are_searched_for_once_and_struck_out_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a node that lets go of hundreds of pods would do nothing else for as long as that takes."""
    (tmp_path / "cpuset").mkdir()
    hierarchy, runtime = Hierarchy(tmp_path / "cpuset", Version.V1), RuntimeClient(tmp_path / "none.sock")
    journal = Journal.open(tmp_path / "journal")
    journal.add(
        Entry(container=f"{number:064x}", cgroup=f"/kubepods/{number}", cpus="", mems="") for number in range(9)
    )
    done: list[str] = []
    walk, replace = os.walk, Path.replace
    monkeypatch.setattr(os, "walk", lambda top: (done.append("walk"), walk(top))[1])
    monkeypatch.setattr(Path, "replace", lambda self, to: (done.append("write"), replace(self, to))[1])
    outcomes = await restore(journal, CpusetWriter(runtime, Version.V1), hierarchy, list(journal.entries.values()))
    assert [(outcome.ended, outcome.problem) for outcome in outcomes] == [(True, "")] * 9
    assert (done, dict(journal.entries)) == (["walk", "write"], {})
    journal.close()


async def test_one_that_has_ended_stays_where_the_journal_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "cpuset").mkdir()
    hierarchy, runtime = Hierarchy(tmp_path / "cpuset", Version.V1), RuntimeClient(tmp_path / "none.sock")
    journal = Journal.open(tmp_path / "journal")
    journal.add([Entry(container="a" * 64, cgroup="/kubepods/a", cpus="", mems="")])
    (tmp_path / "journal" / "journal.new").symlink_to("/dev/full")
    (outcome,) = await restore(journal, CpusetWriter(runtime, Version.V1), hierarchy, list(journal.entries.values()))
    assert "no space left on device" in str(outcome)
    assert journal.entries.keys() == {"a" * 64}
    journal.close()


async def test_one_that_cannot_be_struck_out_is_told_to_have_its_cpus_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory stands for a full disk: who reads that it failed would start the pod again."""
    hierarchy, runtime = Hierarchy(tmp_path / "cpuset", Version.V1), RuntimeClient(tmp_path / "none.sock")
    runs = hierarchy.root / "pod" / ("a" * 64)
    runs.mkdir(parents=True)
    for cgroup, cpus in ((runs.parent, "0-3"), (runs, "0-3")):
        for name, text in (("cpus", cpus), ("effective_cpus", cpus), ("mems", "0"), ("effective_mems", "0")):
            (cgroup / f"cpuset.{name}").write_text(text)
    journal = Journal.open(tmp_path / "journal")
    journal.add(
        Entry(container=letter * 64, cgroup=f"/pod/{letter * 64}", cpus="0-3", mems="0", pod=letter)
        for letter in ("a", "b")
    )
    (tmp_path / "journal" / "journal.new").mkdir()

    async def set_cpuset(*_: str, hurry: bool) -> bool:
        raise CriError("no such container", answered=True, unknown=True)

    monkeypatch.setattr(runtime, "set_cpuset", set_cpuset)
    found = await restore(journal, CpusetWriter(runtime, Version.V1), hierarchy, list(journal.entries.values()))
    journal.close()
    has_back, has_ended = [each.problem.partition(": ")[0] for each in found]
    assert (has_back, has_ended) == (
        "has its CPUs back, and stays in the journal",
        "has ended, and stays in the journal",
    )

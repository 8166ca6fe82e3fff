"""The journal of cpusets: what is on disk is what was written down, or nothing was."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.node.pinning.journal import MAX_ENTRIES, Entry, Journal, JournalError, JournalLockedError


@pytest.fixture
def boot(tmp_path: Path) -> Path:
    file = tmp_path / "boot_id"
    file.write_text("first\n")
    return file


@pytest.fixture
def opened(tmp_path: Path, boot: Path) -> Callable[[], Journal]:
    return lambda: Journal.open(tmp_path / "journal" / "pinning", boot_id=boot)


def entry(number: int, cpus: str = "0-3") -> Entry:
    return Entry(container=f"c{number}", cgroup=f"/x/c{number}", cpus=cpus, mems="0", namespace="n", pod="p", name="w")


def test_what_was_written_down_is_there_for_the_next_agent(opened: Callable[[], Journal]) -> None:
    journal = opened()
    journal.add([entry(1), entry(2)])
    journal.add([entry(3)])
    journal.remove(["c2", "never there"])
    journal.close()
    assert dict(opened().entries) == {"c1": entry(1), "c3": entry(3)}


def test_what_was_written_down_first_counts(opened: Callable[[], Journal]) -> None:
    """A second write of the same container has the pinned value before it."""
    journal = opened()
    journal.add([entry(1, "0-3")])
    journal.add([entry(1, "2")])
    assert journal.entries["c1"].cpus == "0-3"


def test_what_was_given_last_is_kept_beside_what_was_there_first(opened: Callable[[], Journal]) -> None:
    journal = opened()
    journal.add([msgspec.structs.replace(entry(1, "0-3"), written="2")])
    journal.add([msgspec.structs.replace(entry(1, "2"), written="3")])
    assert (journal.entries["c1"].cpus, journal.entries["c1"].written) == ("0-3", "3")


def test_a_mark_says_what_a_container_had_in_its_own_words(opened: Callable[[], Journal]) -> None:
    journal = opened()
    journal.add([entry(1, ""), entry(2)])
    back = msgspec.structs.replace(entry(1, ""), written="0-3")
    journal.mark(back)
    journal.close()
    journal = opened()
    assert (dict(journal.entries), dict(journal.marks)) == ({"c2": entry(2)}, {"c1": back})
    journal.add([msgspec.structs.replace(entry(1, "0-3"), written="2")])
    assert dict(journal.marks) == {}
    assert (journal.entries["c1"].cpus, journal.entries["c1"].written) == ("", "2")
    journal.mark(back)
    journal.remove(["c1"])
    assert dict(journal.marks) == {}


def test_changes_at_the_same_time_are_made_one_after_another(opened: Callable[[], Journal]) -> None:
    journal = opened()
    with ThreadPoolExecutor(8) as pool:
        changes = [pool.submit(journal.add, [entry(number)]) for number in range(60)]
        changes += [pool.submit(journal.remove, [f"c{number}"]) for number in range(100, 130)]
        for change in changes:
            change.result()
    assert len(journal.entries) == 60
    journal.close()
    assert len(opened().entries) == 60


def test_entries_of_an_earlier_boot_are_let_go(opened: Callable[[], Journal], boot: Path) -> None:
    journal = opened()
    journal.add([entry(1)])
    journal.close()
    boot.write_text("second\n")
    journal = opened()
    assert dict(journal.entries) == {}
    journal.add([entry(2)])
    journal.close()
    assert dict(opened().entries) == {"c2": entry(2)}


def test_one_process_has_it_at_a_time(opened: Callable[[], Journal]) -> None:
    journal = opened()
    with pytest.raises(JournalLockedError, match="stop the agent of this node first"):
        opened()
    journal.close()
    opened().close()


def test_nothing_is_written_without_a_change(opened: Callable[[], Journal], tmp_path: Path) -> None:
    journal = opened()
    journal.add([entry(1)])
    file = tmp_path / "journal" / "pinning" / "journal.json"
    before = file.stat().st_mtime_ns, file.stat().st_ino
    journal.add([entry(1)])
    journal.remove(["c2"])
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == before


def test_there_is_an_end_to_it(opened: Callable[[], Journal]) -> None:
    journal = opened()
    journal.add(entry(number) for number in range(MAX_ENTRIES))
    with pytest.raises(JournalError, match=f"more than {MAX_ENTRIES}; pin fewer pods"):
        journal.add([entry(MAX_ENTRIES)])
    assert len(journal.entries) == MAX_ENTRIES
    journal.remove(["c0"])
    journal.add([entry(MAX_ENTRIES)])


def test_what_could_not_be_read_again_is_not_written(opened: Callable[[], Journal]) -> None:
    """Lists of CPUs are long where sockets have every other CPU of a large machine."""
    long = ",".join(str(cpu) for cpu in range(0, 2**16, 2))
    journal = opened()
    journal.add(entry(number, long) for number in range(20))
    with pytest.raises(JournalError, match=r"bytes are more than \d+; pin fewer pods"):
        journal.add(entry(number, long) for number in range(20, 60))
    journal.close()
    assert len(opened().entries) == 20


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "no journal", id="empty"),
        pytest.param('{"version": 1, "boot": "first", "entries": [{', "no journal", id="cut off"),
        pytest.param('{"version": 1, "boot": "first"}', "no journal", id="without entries"),
        pytest.param('{"x":' + "[" * 100_000, "no journal", id="nested without end"),
        pytest.param('{"version": 2, "boot": "first", "entries": []}', "version 2, not 1", id="of a later agent"),
        pytest.param('{"version": 2, "bootId": "first"}', "version 2, not 1; have an agent", id="of another layout"),
    ],
)
def test_what_is_no_journal_is_not_taken_for_an_empty_one(
    opened: Callable[[], Journal], tmp_path: Path, text: str, problem: str
) -> None:
    opened().close()
    (tmp_path / "journal" / "pinning" / "journal.json").write_text(text)
    for _ in range(2):
        with pytest.raises(JournalError, match=rf"journal\.json: .*{problem}.* remove it and start again the pods"):
            opened()


def test_a_journal_that_ends_anywhere_is_none(opened: Callable[[], Journal], tmp_path: Path) -> None:
    """Of a file system that has lost the end of it: what is left must not be taken for all that was pinned."""
    journal = opened()
    journal.add([entry(1), msgspec.structs.replace(entry(2), written="2")])
    journal.mark(entry(1))
    journal.close()
    file = tmp_path / "journal" / "pinning" / "journal.json"
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(JournalError, match="no journal"):
            opened()
    file.write_bytes(whole)
    journal = opened()
    assert (set(journal.entries), set(journal.marks)) == ({"c2"}, {"c1"})


def test_a_directory_that_cannot_be_made(tmp_path: Path, boot: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"file/pinning: not a directory; nothing is pinned without a journal"):
        Journal.open(tmp_path / "file" / "pinning", boot_id=boot)


def test_a_full_disk_changes_nothing(opened: Callable[[], Journal], tmp_path: Path) -> None:
    journal = opened()
    journal.add([entry(1)])
    # What is written to this device finds no space left.
    (tmp_path / "journal" / "pinning" / "journal.new").symlink_to("/dev/full")
    with pytest.raises(JournalError, match=r"journal\.json: no space left on device; .*make room"):
        journal.add([entry(2)])
    assert dict(journal.entries) == {"c1": entry(1)}
    journal.add([entry(3)])
    journal.close()
    assert set(opened().entries) == {"c1", "c3"}


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


@given(text=TEXTS, cpus=TEXTS)
def test_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, text: str, cpus: str) -> None:
    directory = tmp_path_factory.mktemp("j")
    (directory / "boot").write_text("b")
    written = Entry(container=text, cgroup=text, cpus=cpus, mems=cpus, pod=text)
    journal = Journal.open(directory, boot_id=directory / "boot")
    journal.add([written])
    journal.close()
    assert json.loads((directory / "journal.json").read_text())["boot"] == "b"
    journal = Journal.open(directory, boot_id=directory / "boot")
    assert dict(journal.entries) == {text: written}
    journal.close()

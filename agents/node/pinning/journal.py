"""The values of cpusets before they were first written, on disk: they survive whatever ends the agent.

One file, which is replaced as a whole: written beside, synchronised, renamed, and the directory synchronised. So it is
the old one or the new one at every moment, with a power cut as well. An entry is on disk before the cpuset is written;
where it cannot be, as on a full disk, nothing is pinned that is not in it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

import msgspec

DIRECTORY: Final = Path("/var/lib/berth/pinning")
"""Where the journal is; it has to outlive the agent's pod."""
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
"""The kernel's name of this boot."""
MAX_ENTRIES: Final = 4096
"""Containers at most: more than four for each pod of a node that has eight times what kubelets take by default."""
_FILE: Final = "journal.json"
_LOCK: Final = "lock"
_VERSION: Final = 1
_MAX_BYTES: Final = 2**23
"""What is read of the file; no more is written."""
_FORGET: Final = "remove it and start again the pods that are pinned: what CPUs they had is in no other place"


class JournalError(Exception):
    """The journal cannot be read or written; the text names the file and says what to do."""


class JournalLockedError(JournalError):
    """Another process has the journal open."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A container whose cpuset was written, and what it was before."""

    container: str
    """ID of the container"""
    cgroup: str
    """path of its cgroup from the top of the hierarchy, which is mounted elsewhere on the node than in the agent"""
    cpus: str
    """list of CPUs as it was; empty: those of the pod's cgroup"""
    mems: str
    """list of NUMA nodes as it was, in the same way"""
    namespace: str = ""
    """namespace of its pod"""
    pod: str = ""
    """name of its pod"""
    name: str = ""
    """name of the container in its pod"""
    written: str = ""
    """list of CPUs that it was given last; empty: not known"""

    def __str__(self) -> str:
        """Return the container as messages name it."""
        return f"container {self.name} of pod {self.namespace}/{self.pod}"


class _Versioned(msgspec.Struct):
    """Of whatever layout."""

    version: int


class _Document(msgspec.Struct, omit_defaults=True):
    version: int
    boot: str
    entries: list[Entry]
    marks: list[Entry] = []


class Journal:
    """The open journal; one process has it at a time."""

    def __init__(
        self, directory: Path, lock: int, boot: str, entries: Iterable[Entry], marks: Iterable[Entry] = ()
    ) -> None:
        """Use :meth:`open`."""
        self._directory = directory
        self._lock = lock
        self._boot = boot
        self._entries = {entry.container: entry for entry in entries}
        self._marks = {entry.container: entry for entry in marks}
        # Changes are made in threads; two at once would write the same file.
        self._turn = threading.Lock()

    @classmethod
    def open(cls, directory: Path = DIRECTORY, *, boot_id: Path = BOOT_ID) -> Self:
        """Open the journal of a directory, which is made if need be; entries of an earlier boot are let go.

        After a reboot there is no container any more that was there before.

        Raises:
            JournalLockedError: another process has it open.
            JournalError: it cannot be read, or what is there is no journal.
        """
        file = directory / _FILE
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = _open_lock(directory / _LOCK)
        except OSError as error:
            raise JournalError(_told(directory, error)) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            boot = boot_id.read_text().strip()
            document = _read(file)
        except BlockingIOError as error:
            os.close(lock)
            text = f"{directory}: another process pins by this journal; stop the agent of this node first"
            raise JournalLockedError(text) from error
        except OSError as error:
            os.close(lock)
            raise JournalError(_told(file, error)) from error
        except JournalError:
            os.close(lock)
            raise
        if document is None or document.boot != boot:
            return cls(directory, lock, boot, ())
        return cls(directory, lock, boot, document.entries, document.marks)

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Entries by the ID of the container."""
        return MappingProxyType(self._entries)

    @property
    def marks(self) -> Mapping[str, Entry]:
        """Containers that have their CPUs back in other words than before, by ID; nothing of them is to be restored.

        One that had stated no CPUs has those of its pod written out, which are fewer than its pod's when more come
        online: nobody else has pinned it then.
        """
        return MappingProxyType(self._marks)

    def add(self, entries: Iterable[Entry]) -> None:
        """Write down containers; one that is there already, or marked, keeps what it was before it was first written.

        Raises:
            JournalError: the disk is full or cannot be written, or there are too many; nothing was added then.
        """
        with self._turn:
            known = {**self._marks, **self._entries}
            added = {entry.container: _kept(entry, known.get(entry.container)) for entry in entries}
            marks = {key: entry for key, entry in self._marks.items() if key not in added}
            self._replace({**self._entries, **added}, marks)

    def remove(self, containers: Iterable[str]) -> None:
        """Strike out containers, by ID, and their marks; those that are not there are passed over.

        Raises:
            JournalError: the disk cannot be written; nothing was struck out then.
        """
        gone = set(containers)
        with self._turn:
            self._replace(
                {key: entry for key, entry in self._entries.items() if key not in gone},
                {key: entry for key, entry in self._marks.items() if key not in gone},
            )

    def mark(self, entry: Entry) -> None:
        """Strike out a container and mark it; its :attr:`Entry.written` is what it was given back.

        Raises:
            JournalError: the disk cannot be written; nothing has changed then.
        """
        with self._turn:
            entries = {key: other for key, other in self._entries.items() if key != entry.container}
            marks = {**self._marks, entry.container: entry}
            self._replace(entries, dict(list(marks.items())[-MAX_ENTRIES:]))

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._lock)

    def _replace(self, entries: dict[str, Entry], marks: dict[str, Entry]) -> None:
        if (entries, marks) == (self._entries, self._marks):
            return
        file = self._directory / _FILE
        if len(entries) > MAX_ENTRIES:
            raise JournalError(f"{file}: {len(entries)} containers are more than {MAX_ENTRIES}; pin fewer pods")
        text = msgspec.json.encode(_Document(_VERSION, self._boot, list(entries.values()), list(marks.values())))
        if len(text) > _MAX_BYTES:
            raise JournalError(f"{file}: {len(text)} bytes are more than {_MAX_BYTES}; pin fewer pods")
        beside = file.with_suffix(".new")
        try:
            with beside.open("wb") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(file)
            _synchronise(self._directory)
        except OSError as error:
            # What is left of it would take the room that the next one needs.
            with contextlib.suppress(OSError):
                beside.unlink()
            raise JournalError(_told(file, error)) from error
        self._entries, self._marks = entries, marks


def _open_lock(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        # Of a disk that has failed: what was written down there before can be given back all the same.
        return os.open(file, os.O_RDONLY | os.O_CLOEXEC)


def _kept(entry: Entry, known: Entry | None) -> Entry:
    return entry if known is None else msgspec.structs.replace(known, written=entry.written)


def _read(file: Path) -> _Document | None:
    try:
        with file.open("rb") as stream:
            written = stream.read(_MAX_BYTES)
        version = msgspec.json.decode(written, type=_Versioned).version
        if version == _VERSION:
            return msgspec.json.decode(written, type=_Document)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise JournalError(f"{file}: no journal ({error}); {_FORGET}") from error
    raise JournalError(
        f"{file}: a journal of version {version}, not {_VERSION}; have an agent of that version restore what is "
        f"pinned, or {_FORGET}"
    )


def _synchronise(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _told(path: Path, error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"{path}: {reason}; nothing is pinned without a journal: make room, or have the directory writable"

"""Types that are worked out before there are threads."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from berth.runtime import struct_types

worked_out: list[str] = []


def noted(name: str) -> type[int]:
    """Called whenever msgspec works the type out that has this in an annotation."""
    worked_out.append(name)
    return int


class Base(msgspec.Struct):
    """A type with types below it."""

    a: noted("base")  # type: ignore[valid-type]


class Below(Base):
    """One of these, and others in it."""

    inner: Inner


class Inner(msgspec.Struct):
    """A part."""

    b: noted("inner")  # type: ignore[valid-type]


class Unreadable(msgspec.Struct):
    """A type that no message can be told to be of."""

    either: Base | Inner


def test_all_types_are_worked_out_once_and_for_all() -> None:
    struct_types.prepare()
    assert {"base", "inner"} <= set(worked_out)
    worked_out.clear()
    msgspec.convert({"a": 1, "inner": {"b": 2}}, Below)
    msgspec.json.Decoder(Base).decode(b'{"a": 1}')
    assert worked_out == []


def test_types_that_cannot_be_read_hold_nothing_up() -> None:
    struct_types.prepare()
    with pytest.raises(TypeError, match="multiple Struct types"):
        msgspec.json.Decoder(Unreadable)


IN_THREADS = """
import sys, threading
import msgspec
from berth.runtime import struct_types

sys.setswitchinterval(1e-6)

def define():
    class Part(msgspec.Struct):
        holder: str | None = None
    class Whole(msgspec.Struct):
        metadata: dict[str, str]
        spec: Part | None = None
    return Whole

for _ in range(200):
    kind = define()
    struct_types.prepare()
    begin = threading.Barrier(2)
    def read():
        begin.wait()
        msgspec.convert({"metadata": {"name": "a"}, "spec": {"holder": "b"}}, kind)
    threads = [threading.Thread(target=read) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


def test_threads_may_begin_to_read_a_type_at_once() -> None:
    """Without the preparation this ends with a segmentation fault, in a process of its own."""
    ended = subprocess.run([sys.executable, "-c", IN_THREADS], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")

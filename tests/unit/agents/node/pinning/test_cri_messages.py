"""Messages of the runtime interface on the wire: field numbers are those of api.proto, whatever the library does."""

from __future__ import annotations

from typing import Any

import pytest

from agents.node.pinning.cri_messages import message


def update() -> Any:
    made = message("UpdateContainerResourcesRequest")(container_id="c1")
    made.linux.cpuset_cpus, made.linux.cpuset_mems = "0-3", "0"
    return made


def running() -> Any:
    made = message("ListContainersRequest")()
    made.filter.state.state = 1
    return made


@pytest.mark.parametrize(
    ("made", "wire"),
    [
        pytest.param(update(), b"\x0a\x02c1\x12\x08\x32\x030-3\x3a\x010", id="cpus are 6, mems 7, and nothing else"),
        pytest.param(running(), b"\x0a\x04\x12\x02\x08\x01", id="those that run"),
        pytest.param(
            message("ContainerStatusRequest")(container_id="c1", verbose=True), b"\x0a\x02c1\x10\x01", id="verbose"
        ),
    ],
)
def test_what_is_sent(made: Any, wire: bytes) -> None:
    assert made.SerializeToString() == wire


def test_what_is_read_of_a_container() -> None:
    wire = b"\x0a\x02c1\x1a\x06\x0a\x04main\x30\x01\x42\x0a\x0a\x01k\x12\x05value\x99\x03abcdefgh"
    container = message("Container").FromString(wire)
    assert (container.id, container.metadata.name, container.state) == ("c1", "main", 1)
    assert dict(container.labels) == {"k": "value"}


def test_a_message_that_is_not_declared() -> None:
    with pytest.raises(KeyError):
        message("RunPodSandboxRequest")

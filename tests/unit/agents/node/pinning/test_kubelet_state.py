"""Whether the kubelet pins, by the state that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.node.pinning.kubelet_state import pins


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"policyName":"none","defaultCpuSet":"","checksum":1353318690}', "", id="none"),
        pytest.param(
            '{"policyName":"static","defaultCpuSet":"0,2-7","entries":{"u":{"c":"1"}},"checksum":1}',
            "the kubelet's CPU manager has the policy static and pins; set its cpuManagerPolicy to none",
            id="static",
        ),
        pytest.param('{"checksum":1}', "no state of a CPU manager", id="without a policy"),
        pytest.param('{"a":' + "[" * 100_000, "no state of a CPU manager", id="nested without end"),
        pytest.param('{"policyNa', "so that the kubelet may pin; start the kubelet again", id="cut off"),
        pytest.param(None, "is not there, so that the kubelet may pin; name the directory that is its", id="not there"),
    ],
)
def test_what_it_says(tmp_path: Path, text: str | None, expected: str) -> None:
    if text is not None:
        (tmp_path / "cpu_manager_state").write_text(text)
    found = pins(tmp_path)
    assert expected in found
    assert bool(found) is bool(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"policyName":"None","machineState":{},"checksum":4236770233}', "", id="none"),
        pytest.param(
            '{"policyName":"Static","machineState":{"0":{"cells":[0]}},"checksum":1}',
            "the kubelet's memory manager has the policy Static and pins; set its memoryManagerPolicy to None",
            id="static",
        ),
        pytest.param('{"policyNa', "memory_manager_state: no state of a memory manager", id="cut off"),
    ],
)
def test_the_memory_manager_pins_as_well(tmp_path: Path, text: str, expected: str) -> None:
    """It gives containers the NUMA nodes that it has chosen: CPUs of another socket would be far from their memory."""
    (tmp_path / "cpu_manager_state").write_text('{"policyName":"none"}')
    (tmp_path / "memory_manager_state").write_text(text)
    found = pins(tmp_path)
    assert expected in found
    assert bool(found) is bool(expected)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "cpu_manager_state").mkdir()
    assert pins(tmp_path).endswith("is a directory, so that the kubelet may pin; let the agent read it")

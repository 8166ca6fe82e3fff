"""Every command of README.md runs, in the order in which a reader meets them.

Left out: `make test`, which is what runs this; the reader's own cluster is the demo's. Demos on real nodes, which need
root and a container runtime, are run by themselves.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.real_nodes import require_real_nodes

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text()
PINNING = "make demo-pinning"
NEAR_THE_USER = "make demo-latency"
LEFT_OUT = {"make test", PINNING, NEAR_THE_USER}


def blocks(language: str) -> list[str]:
    """Contents of the fenced code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def shell() -> Iterator[subprocess.CompletedProcess[str]]:
    """All shell blocks, run as one script, so that exports carry over; each command is echoed."""
    commands = [line for block in blocks("sh") for line in block.splitlines() if line and line not in LEFT_OUT]
    script = "\n".join(["set -euo pipefail", "set -x", *commands])
    try:
        yield subprocess.run(
            ["bash", "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=1500
        )
    finally:
        subprocess.run(["make", "demo-down"], cwd=REPOSITORY, capture_output=True, check=False, timeout=400)


@pytest.mark.timeout(1800)
def test_every_command_succeeds(shell: subprocess.CompletedProcess[str]) -> None:
    assert shell.returncode == 0, f"{shell.stdout[-4000:]}\n{shell.stderr[-4000:]}"


def test_the_demo_ends_with_the_comparison(shell: subprocess.CompletedProcess[str]) -> None:
    row = r"^{} {{2,}}(\d+\.\d\d) +(\d+) +(\d+) of 10 +(\d+) of 10$"
    found = {
        name: re.search(row.format(name), shell.stdout, flags=re.MULTILINE)
        for name in ("kube-scheduler", "Berth", "Berth, replicas spread")
    }
    assert all(found.values()), shell.stdout[-4000:]
    costs = {name: float(match[1]) for name, match in found.items() if match}
    assert costs["Berth"] < 1 < costs["Berth, replicas spread"] < 5 < costs["kube-scheduler"]
    kept = {name: (int(match[3]), int(match[4])) for name, match in found.items() if match}
    assert (kept["Berth"][0], kept["Berth, replicas spread"]) == (10, (10, 10))


def test_the_readme_shows_what_the_demo_prints(shell: subprocess.CompletedProcess[str]) -> None:
    [shown] = [block for block in blocks("text") if "mean cost" in block]
    # Where kube-scheduler puts pods is left to chance; what a plan under rules finds in its time differs a little.
    lines = [line for line in shown.splitlines() if not line.startswith(("kube-scheduler", "Berth, replicas spread"))]
    assert [line for line in lines if line not in shell.stdout.splitlines()] == []


def test_explain_names_the_members(shell: subprocess.CompletedProcess[str]) -> None:
    assert "redis-cart" in shell.stdout.split("make demo-down")[-1]


def test_explain_says_what_is_on_a_node(shell: subprocess.CompletedProcess[str]) -> None:
    assert re.search(r"^Node [a-z0-9-]+: \d+ pods? placed by Berth", shell.stdout, flags=re.MULTILINE)


def shown_by(command: str, tmp_path: Path) -> str:
    """What a demo on real nodes prints; it is stopped afterwards."""
    require_real_nodes(tmp_path.parent)  # it has a directory of its own
    assert f"{command}\n" in blocks("sh")
    try:
        shown = subprocess.run(
            command.split(), cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=900
        )
    finally:
        subprocess.run(["make", "demo-down"], cwd=REPOSITORY, capture_output=True, check=False, timeout=400)
    assert shown.returncode == 0, f"{shown.stdout[-4000:]}\n{shown.stderr[-4000:]}"
    _, _, next_steps = shown.stdout.partition("\nLook around\n")
    assert "\nexport PATH=$(hack/cluster bin):$PATH\nkubectl " in next_steps  # kubectl need not be installed
    return shown.stdout


@pytest.mark.timeout(1000)
def test_the_demo_of_pinning_shows_a_socket_for_each(tmp_path: Path) -> None:
    shown = shown_by(PINNING, tmp_path)
    row = r"^batch +(\S) +(\S+)\nother +(\S) +(\S+)\nweb +(\S) +(\S+)$"
    before, labelled, after = re.findall(row, shown, flags=re.MULTILINE)
    assert [table[::2] for table in (before, labelled, after)] == [("-", "-", "-"), ("C", "-", "B"), ("-", "-", "-")]
    (whole,) = {*before[1::2], *after[1::2]}
    batch, other, web = labelled[1::2]
    assert other == whole
    assert len({batch, web, whole}) == 3
    [text] = [block for block in blocks("text") if "PINNED" in block]
    headings = {line for line in text.splitlines() if not re.search(r"\d", line)}
    assert headings <= set(shown.splitlines())


@pytest.mark.timeout(1000)
def test_the_demo_near_the_user_moves_what_the_dry_run_tells_and_loses_nobody(tmp_path: Path) -> None:
    shown = shown_by(NEAR_THE_USER, tmp_path)
    [told] = re.findall(r"^web-\S+ would go from (node-\d) to (node-\d): ", shown, flags=re.MULTILINE)
    moves = re.findall(
        r"the pod went from (node-\d) to (node-\d): (\d+) ms before, (\d+) ms after$", shown, re.MULTILINE
    )
    assert (moves[0][:2], len(moves)) == (told, 2)
    assert all(int(before) > int(after) for _, _, before, after in moves)
    assert re.search(r"^\d+ requests, 0 of them lost", shown, flags=re.MULTILINE)
    assert re.search(r"The plot as a picture: \S+\.svg$", shown, flags=re.MULTILINE)
    [text] = [block for block in blocks("text") if "in the west" in block]
    headings = {line for line in text.splitlines() if line[:1].isupper() and not re.search(r"\d", line)}
    assert headings <= set(shown.splitlines())


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=yaml.safe_load(text).get("kind", "pod")) for text in blocks("yaml")]
)
def test_yaml_blocks_are_yaml(text: str) -> None:
    assert isinstance(yaml.safe_load(text), dict)


def test_the_text_names_both_set_up_commands() -> None:
    assert {"make demo\n", "make test\n"} <= set(blocks("sh"))

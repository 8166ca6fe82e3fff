"""``berth plan`` as a command: options, files, exit statuses, forms of the answer. No cluster.

With one: tests/integration/test_plan_cluster.py. What is planned: test_run.py beside this file.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from berth.cli.main import app, kubectl_app
from berth.cli.plan.command import read_sources
from berth.cli.progress import progress_on_stderr
from tests.support import plans
from tests.support.api_server import Answer, Request, api_server, refusal
from tests.support.topologies import probe_report, probed_peer

ROOT = Path(__file__).parents[5]
EXAMPLES = ROOT / "examples"


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, ["plan", *arguments], input=text, env={"COLUMNS": "100"})


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A file with two nodes and a pod."""
    path = tmp_path / "shop.yaml"
    path.write_text(plans.text(plans.node("n1"), plans.node("n2"), plans.pod("web")))
    return path


def test_the_examples_plan_out_of_the_box() -> None:
    result = run("-f", str(EXAMPLES), "-o", "json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    # Other schedulers place the pod with the meter, and a router on each node.
    assert document["summary"] | {"nodesUsed": 1} == {
        "pods": 42, "placed": 42, "notPlaced": 0, "nodes": 24, "nodesUsed": 1, "ignoredPods": 1 + 24,
    }  # fmt: skip
    assert [group["placed"] for group in document["appGroups"]] == [31, 11]
    assert all(group["meanEdgeCost"] < 2 for group in document["appGroups"])


@pytest.mark.parametrize("namespace", ["A b", "a/b", "Shop"])
def test_what_is_no_name_of_a_namespace_is_refused(namespace: str, shop: Path) -> None:
    result = run("-f", str(shop), "-n", namespace)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{namespace!r} is no name of a namespace" in result.stderr


def test_the_example_with_replicas_survives_a_zone_at_next_to_no_cost() -> None:
    files = ["-f", str(EXAMPLES / "replicas"), "-f", str(EXAMPLES / "plan")]
    [group] = json.loads(run(*files, "-o", "json", "--strategy", "replicas").stdout)["appGroups"]
    assert (group["survival"]["surviveNode"], group["survival"]["surviveZone"]) == (10, 10)
    assert group["meanEdgeCost"] < 0.2
    assert group["pairsOverLimit"] == 0 or group["crossZoneShare"] < 0.05
    assert "serviceSettings" not in group


@pytest.mark.parametrize(
    ("options", "cost"),
    [
        pytest.param([], 784.0, id="as by default"),
        pytest.param(["--cost-unit-microseconds", "1000"], 79.0, id="in milliseconds"),
        pytest.param(["--latency-percentile", "p99"], 900.0, id="by another percentile"),
    ],
)
def test_measured_costs_are_those_of_a_controller_that_was_started_likewise(
    options: list[str], cost: float, tmp_path: Path
) -> None:
    net = plans.topology({})
    net["spec"]["configmapName"] = "netperf"
    pair = "latency.milliseconds.origin.n1.destination.n2"
    data = {f"netperf.p90.{pair}": "78.4", f"netperf.p99.{pair}": "90"}
    perf = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "netperf"}, "data": data}
    nodes = [plans.node(f"n{number}", region=f"r{number}", zone=f"z{number}", cpu="1") for number in (1, 2)]
    pods = [
        plans.pod("front", group="shop", workload="front", nodeName="n1"),
        plans.pod("back", group="shop", workload="back"),
    ]
    path = tmp_path / "all.yaml"
    path.write_text(plans.text(*nodes, net, perf, plans.appgroup("shop", {"front": ["back"], "back": []}), *pods))
    result = run("-f", str(path), "-o", "json", *options)
    assert result.exit_code == 0, result.output
    [shop] = json.loads(result.stdout)["appGroups"]
    assert shop["meanEdgeCost"] == cost


@pytest.mark.parametrize(("allowed", "cost"), [(True, 784.0), (False, 20.0)], ids=["measured", "not-allowed"])
def test_the_clusters_reports_give_a_new_topology_its_costs(allowed: bool, cost: float, tmp_path: Path) -> None:
    nodes = [plans.node(f"n{number}", region=f"r{number}", zone=f"z{number}", cpu="1") for number in (1, 2)]
    reports = [probe_report(name, probed_peer(peer, 78_400)) for name, peer in (("n1", "n2"), ("n2", "n1"))]
    items = {"/nodes": nodes, "/probereports": reports}

    def answer(request: Request) -> Answer:
        found = [listed for path, listed in items.items() if request.path.partition("?")[0].endswith(path)]
        if not allowed and "/probereports" in request.path:
            return refusal(403, "Forbidden")
        return Answer(body={"metadata": {"resourceVersion": "1"}, "items": found[0] if found else []})

    pods = [
        plans.pod("front", group="shop", workload="front", nodeName="n1"),
        plans.pod("back", group="shop", workload="back"),
    ]
    shop = plans.appgroup("shop", {"front": ["back"], "back": []})
    path = tmp_path / "shop.yaml"
    path.write_text(plans.text(plans.topology({}, {("r1", "r2"): 20}), shop, *pods))
    with api_server(answer) as server:
        result = run("-f", str(path), "--from-cluster", "--kubeconfig", server.kubeconfig(tmp_path), "-o", "json")
    assert result.exit_code == 0, result.output
    [found] = json.loads(result.stdout)["appGroups"]
    assert found["meanEdgeCost"] == cost


def test_nodes_without_csi_drivers_are_planned_with(tmp_path: Path) -> None:
    """The API server shows null for their drivers, as of every node of kind, k3s and minikube."""
    items = {
        "/nodes": [plans.node("n1")],
        "/csinodes": [{"metadata": {"name": "n1", "ownerReferences": None}, "spec": {"drivers": None}}],
        "/pods": [{**plans.pod("web"), "status": {"conditions": None, "containerStatuses": None}}],
    }

    def answer(request: Request) -> Answer:
        found = [listed for path, listed in items.items() if request.path.partition("?")[0].endswith(path)]
        return Answer(body={"metadata": {"resourceVersion": "1"}, "items": found[0] if found else None})

    with api_server(answer) as server:
        result = run("--from-cluster", "--kubeconfig", server.kubeconfig(tmp_path), "-o", "json")
    assert result.exit_code == 0, result.output
    assert [pod["node"] for pod in json.loads(result.stdout)["pods"]] == ["n1"]


def commands_of_the_docs() -> list[str]:
    """Every `berth plan` command of README and docs that needs files of this repository alone."""
    command = re.compile(r"^ *(?:\.venv/bin/|kubectl )?berth plan (-f examples[^#\n|]*)", re.MULTILINE)
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "berth" / "cli" / "plan" / "command.py"]
    return sorted({found.strip() for file in files for found in command.findall(file.read_text())})


@pytest.mark.parametrize("command", commands_of_the_docs())
def test_plans_of_the_docs_have_nothing_to_remark(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = run(*command.split(), "-o", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["notes"] == []


def test_the_docs_show_plans_of_the_examples() -> None:
    assert len(commands_of_the_docs()) >= 2


def test_the_example_nodes_are_those_of_the_demo_cluster() -> None:
    demo = yaml.safe_load((ROOT / "hack" / "topologies" / "demo.yaml").read_text())
    listed = yaml.safe_load((EXAMPLES / "plan" / "nodes.yaml").read_text())["items"]
    expected = {
        f"{zone['name']}-{number:02d}": (region["name"], zone["name"])
        for region in demo["regions"]
        for zone in region["zones"]
        for number in range(1, zone["nodes"] + 1)
    }
    found = {
        item["metadata"]["name"]: tuple(
            item["metadata"]["labels"][f"topology.kubernetes.io/{key}"] for key in ("region", "zone")
        )
        for item in listed
    }
    assert found == expected
    assert all(item["status"]["allocatable"] == demo["capacity"] for item in listed)


def test_the_table_is_the_default(shop: Path) -> None:
    result = run("-f", str(shop))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "1 of 1 pods placed on 1 of 2 nodes"
    assert result.stderr == ""


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_forms_for_programs_say_the_same(shop: Path, form: str, read: Any) -> None:
    document = read(run("-f", str(shop), "-o", form).stdout)
    assert (document["kind"], document["version"], plans.where(document)) == ("PlacementPlan", 3, {"web": "n1"})


def test_standard_input(shop: Path) -> None:
    result = run("-f", "-", "-f", str(shop), "-o", "json", text=plans.text(plans.pod("piped")))
    assert set(plans.where(json.loads(result.stdout))) == {"piped", "web"}


def test_some_pods_without_a_node_give_3(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(plans.text(plans.node("n1"), plans.pod("large", cpu="64")))
    result = run("-f", str(path))
    assert result.exit_code == 3
    assert "1 Insufficient cpu" in result.stdout


BROKEN = plans.text(plans.pod("web", cpu="4x"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param([], "nothing to plan; name manifests with -f FILE, or use --from-cluster", id="nothing"),
        pytest.param(["-f", "none.yaml"], "none.yaml: no such file or directory; name readable", id="no such file"),
        pytest.param(["-f", "empty"], "directory empty has no .yaml, .yml, .json file", id="empty directory"),
        pytest.param(["-f", "binary.yaml"], "binary.yaml: not UTF-8 text; name readable", id="no text"),
        pytest.param(["-f", "broken.yaml"], "broken.yaml:13: Pod default/web: spec.containers[0]", id="bad manifest"),
        pytest.param(["-f", "shop.yaml", "--strategy", "magic"], "strategy 'magic' is unknown", id="strategy"),
        pytest.param(
            ["-f", "shop.yaml", "--config", "none.yaml"], "none.yaml: no such file", id="no such configuration"
        ),
        pytest.param(
            ["--from-cluster", "--kubeconfig", "none"], "kubeconfig none: no such file; name a", id="no such kubeconfig"
        ),
        pytest.param(["--from-cluster", "--kubeconfig", "dead"], "cannot be reached", id="no server there"),
    ],
)
def test_bad_input_gives_2_and_no_answer(
    shop: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(shop.parent)
    Path("empty").mkdir()
    Path("binary.yaml").write_bytes(b"\xff\xfe\x00")
    Path("broken.yaml").write_text(BROKEN)
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    Path("dead").write_text(
        yaml.safe_dump({"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "x"})
    )
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_the_namespace_of_manifests_that_name_none(shop: Path) -> None:
    document = json.loads(run("-f", str(shop), "-n", "mine", "-o", "json").stdout)
    assert [pod["namespace"] for pod in document["pods"]] == ["mine"]


def test_sections_and_nodes_on_request(shop: Path) -> None:
    text = run("-f", str(shop), "--show", "nodes", "--all-nodes").stdout
    assert "n2" in text
    assert "TERMS" not in text


def test_a_configuration_file_counts(shop: Path) -> None:
    config = shop.parent / "placement.yaml"
    config.write_text("profiles: [{schedulerName: mine}]")
    document = json.loads(run("-f", str(shop), "--config", str(config), "-o", "json").stdout)
    assert document["ignored"] == [{"schedulerName": "berth-scheduler", "pods": 1}]


def test_it_is_part_of_the_plugin_too(shop: Path) -> None:
    result = CliRunner().invoke(kubectl_app, ["plan", "-f", str(shop)])
    assert result.exit_code == 0


def test_directories_are_read_to_the_bottom_without_what_is_hidden(tmp_path: Path) -> None:
    for name in ("b.yaml", "a/z.yml", "a/note.txt", ".git/x.yaml", "c.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    found = [str(Path(name).relative_to(tmp_path)) for name, _ in read_sources([str(tmp_path)])]
    assert found == ["a/z.yml", "b.yaml", "c.json"]


@pytest.mark.parametrize(
    ("times", "lines"),
    [([0, 1, 1.5], []), ([0, 2.5, 3, 6], ["planning: 1 of 9", "planning: 3 of 9"])],
    ids=["quick", "slow"],
)
def test_progress_without_a_terminal_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], times: list[float], lines: list[str]
) -> None:
    ticks = iter(times)
    with progress_on_stderr(clock=lambda: next(ticks)) as report:
        for number in range(1, len(times)):
            report("planning", number, 9)
    assert capsys.readouterr().err.splitlines() == lines


def test_progress_towards_an_end_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    ticks = iter([0.0, 3.0])
    with progress_on_stderr(clock=lambda: next(ticks)) as report:
        report("reading manifests", 200, 0)
    assert capsys.readouterr().err == "reading manifests: 200\n"


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_on_stderr(quiet=True) as report:
        report("planning", 1, 2)
    assert capsys.readouterr().err == ""

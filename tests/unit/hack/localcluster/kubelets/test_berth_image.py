"""Berth's image: what is in it and how it lies there. That it runs: end-to-end tests."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path, PurePosixPath

import pytest
import yaml

from hack.localcluster import ClusterError
from hack.localcluster.kubelets import berth_image
from hack.localcluster.paths import REPOSITORY


def test_what_the_project_requires_is_in_it_and_what_develops_it_is_not() -> None:
    names = {item.metadata["Name"].lower() for item in berth_image.closure("kube-berth")}
    assert {"kube-berth", "kopf", "numpy", "aiohttp", "multidict"} <= names
    assert names.isdisjoint({"pytest", "mypy", "ruff", "matplotlib", "scipy", "pip", "hypothesis"})


def test_without_the_project_the_remedy_is_told() -> None:
    with pytest.raises(ClusterError, match=r"not-berth is not installed here: use \.venv/bin/python"):
        berth_image.closure("not-berth")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("numpy/core.py", True, id="module"),
        pytest.param("numpy/__pycache__/core.cpython-311.pyc", True, id="compiled"),
        pytest.param("numpy/__pycache__/core.cpython-311.opt-1.pyc", False, id="compiled otherwise"),
        pytest.param("numpy/tests/test_core.py", False, id="tests"),
        pytest.param("tests.py", True, id="a file of that name"),
        pytest.param("config-3.11-x86_64-linux-gnu/libpython3.11.a", False, id="for compilers"),
        pytest.param("site-packages/mypy/main.py", False, id="other packages of the base Python"),
        pytest.param("../../../bin/berth", False, id="commands"),
    ],
)
def test_wanted(path: str, expected: bool) -> None:
    assert berth_image.wanted(PurePosixPath(path)) is expected


@pytest.mark.skipif(sys.platform != "linux", reason="ldd is Linux's")
def test_libraries_are_those_of_the_system_with_the_loader() -> None:
    found = {path.name for path in berth_image.libraries([Path(sys.executable).resolve()])}
    assert any(name.startswith("libc.so") for name in found)
    assert any(name.startswith("ld-linux") for name in found)


def test_commands_are_those_of_the_project_in_the_images_python() -> None:
    texts = berth_image.written()
    command = texts[PurePosixPath("/opt/berth/bin/berth")]
    assert command.startswith("#!/opt/berth/bin/python\n")
    answer = subprocess.run(
        [sys.executable, "-", "--help"], input=command, capture_output=True, text=True, check=True, cwd="/"
    )
    assert "run" in answer.stdout
    assert PurePosixPath("/opt/berth/bin/berth-agent") in texts


@pytest.fixture
def layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, tarfile.TarInfo]:
    """Entries of a layer of three files, one of them a link, in a directory for its owner alone."""
    secret = tmp_path / "private"
    secret.mkdir(mode=0o700)
    for name, mode in {"module.py": 0o600, "program": 0o700}.items():
        (secret / name).write_text(name)
        (secret / name).chmod(mode)
        os.utime(secret / name, (1.5e9, 1.5e9))
    (secret / "link.so").symlink_to("module.py")
    files = {PurePosixPath("/private/lib") / name: secret / name for name in ("module.py", "program", "link.so")}
    monkeypatch.setattr(berth_image, "copied", lambda: files)
    berth_image.write_layer(tmp_path / "layer.tar")
    with tarfile.open(tmp_path / "layer.tar") as archive:
        return {entry.name: entry for entry in archive}


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param("private", 0o755, id="directory that only its owner may enter"),
        pytest.param("private/lib/module.py", 0o644, id="module"),
        pytest.param("private/lib/program", 0o755, id="program"),
        pytest.param("opt/berth/bin/berth", 0o755, id="command"),
        pytest.param("opt/berth/pyvenv.cfg", 0o644, id="file that is written"),
        pytest.param("tmp", 0o1777, id="temporary files"),
    ],
)
def test_everybody_may_read_and_root_owns(layer: dict[str, tarfile.TarInfo], name: str, mode: int) -> None:
    assert (layer[name].mode, layer[name].uid, layer[name].gid) == (mode, 0, 0)


def test_a_link_is_in_the_image_as_the_file(layer: dict[str, tarfile.TarInfo]) -> None:
    entry = layer["private/lib/link.so"]
    assert (entry.isreg(), entry.size) == (True, len("module.py"))


def test_times_stay_so_that_compiled_modules_count(layer: dict[str, tarfile.TarInfo]) -> None:
    assert layer["private/lib/module.py"].mtime == 1.5e9


def test_directories_come_before_what_is_in_them(layer: dict[str, tarfile.TarInfo]) -> None:
    names = list(layer)
    for name in names:
        parent = str(PurePosixPath(name).parent)
        assert parent == "." or names.index(parent) < names.index(name)


def test_the_python_of_the_image_is_where_it_is_here(layer: dict[str, tarfile.TarInfo]) -> None:
    assert layer["opt/berth/bin/python"].linkname == str(Path(sys.executable).resolve())


@pytest.mark.parametrize("part", ["controllers", "agent"])
def test_deploy_names_this_image(part: str) -> None:
    kustomization = yaml.safe_load((REPOSITORY / "deploy" / part / "kustomization.yaml").read_text())
    (image,) = kustomization["images"]
    assert f"docker.io/library/{image['name']}:{image['newTag']}" == berth_image.TAG
    assert image["newTag"] == version(berth_image.PROJECT)


def test_commands_are_found_by_their_names_as_in_the_dockerfiles_image() -> None:
    """For ``kubectl exec POD -- berth-agent probe HOST``."""
    assert "\nENV PATH=/opt/berth/bin:$PATH\n" in (REPOSITORY / "Dockerfile").read_text()
    (path,) = (
        value for name, _, value in (item.partition("=") for item in berth_image.CONFIG["Env"]) if name == "PATH"
    )
    assert path.split(":")[0] == "/opt/berth/bin"


def test_modules_of_the_project_are_compiled_for_where_they_lie(tmp_path: Path) -> None:
    found = berth_image.compiled(tmp_path)
    tag = sys.implementation.cache_tag
    packages = berth_image.PREFIX / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    made = found[packages / "berth" / "cli" / "__pycache__" / f"entry.{tag}.pyc"].read_bytes()
    source = (REPOSITORY / "berth" / "cli" / "entry.py").stat()
    # Python takes one whose flags, time and size of the source are these, and makes it anew otherwise.
    assert made[4:16] == struct.pack("<III", 0, int(source.st_mtime), source.st_size)
    assert {path.name.partition(".")[0] for path in found} >= {"entry", "pinner", "handlers"}


def test_the_dockerfiles_image_has_pythons_own_modules_compiled(tmp_path: Path) -> None:
    """The base image brings none of them so, and where nothing can be written each start would make them anew."""
    stages = (REPOSITORY / "Dockerfile").read_text().split("\nFROM ")
    commands = [line for line in stages[-1].partition("\nUSER ")[0].splitlines() if line.startswith("RUN python -m ")]
    assert len(commands) == 1
    *command, directory = commands[0].removeprefix("RUN python ").split()
    base = stages[-1].partition("-slim")[0]
    assert directory == f"/usr/local/lib/{base.replace(':', '')}"
    (tmp_path / "own.py").touch()
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "of_others.py").touch()
    subprocess.run([sys.executable, *command, str(tmp_path)], check=True)
    assert [path.name for path in tmp_path.rglob("*.pyc")] == [f"own.{sys.implementation.cache_tag}.pyc"]

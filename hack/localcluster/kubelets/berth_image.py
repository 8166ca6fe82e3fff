"""Berth's image, made of this environment: its Python, the libraries that load, and what the project needs to run.

It has what the Dockerfile's image has, without a registry, a base image or a container builder, and runs on machines of
this kind alone.
"""

from __future__ import annotations

import importlib.util
import io
import py_compile
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from hack.localcluster.errors import ClusterError
from hack.localcluster.kubelets.images import write_archive
from hack.localcluster.paths import REPOSITORY

PROJECT = "kube-berth"
PREFIX = PurePosixPath("/opt/berth")
"""Where the Dockerfile has the environment too."""
TAG = "docker.io/library/berth:0.1.0"
"""What a container runtime makes of ``berth:0.1.0``, the image that deploy/ names."""
CONFIG = {
    "Entrypoint": [f"{PREFIX}/bin/berth"],
    "Env": [f"PATH={PREFIX}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
    "User": "65532:65532",
}
"""As the Dockerfile has it."""
COMMANDS = ("berth", "berth-agent")
PACKAGES = ("berth", "controllers", "agents")

_SITE = PREFIX / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
_LEFT_OUT = re.compile(r"tests?|idlelib|tkinter|turtledemo|ensurepip|lib2to3|pydoc_data|config-.*|(site|dist)-packages")
"""Directories that nothing imports in production, or that are looked at by themselves."""


def closure(name: str) -> list[Distribution]:
    """The installed distribution *name* and all that it requires, without extras.

    Raises:
        ClusterError: *name* is not installed.
    """
    found: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        current = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        try:
            item = found.get(current) or distribution(current)
        except PackageNotFoundError as error:
            if current == name:
                raise ClusterError(f"{name} is not installed here: use .venv/bin/python, after 'make .venv'") from error
            # Required of another platform or version of Python.
            continue
        if current not in found:
            found[current] = item
            required = [text for text in item.requires or [] if "extra ==" not in text]
            waiting += [match[0] for text in required if (match := re.match(r"[A-Za-z0-9._-]+", text))]
    return list(found.values())


def wanted(path: PurePosixPath | Path) -> bool:
    """Whether a file belongs into the image, by its path below the directory that is copied."""
    unused = path.suffix == ".a" or path.name.endswith((".opt-1.pyc", ".opt-2.pyc"))
    return not unused and ".." not in path.parts and not any(map(_LEFT_OUT.fullmatch, path.parts[:-1]))


def copied() -> dict[PurePosixPath, Path]:
    """Files of the image that are on this machine: where they go, and where they are.

    Raises:
        ClusterError: the project is not installed in this Python.
    """
    executable = Path(sys.executable).resolve()
    standard = Path(sysconfig.get_path("stdlib"))
    found = {PurePosixPath(executable): executable}
    found.update({PurePosixPath(path): path for path in _below(standard)})
    for item in closure(PROJECT):
        sources = {file: Path(str(item.locate_file(file))) for file in item.files or [] if wanted(file)}
        found.update({_SITE / file: source for file, source in sources.items() if source.is_file()})
    # An editable installation has a link to these.
    for path in (path for package in PACKAGES for path in _below(REPOSITORY / package)):
        found[_SITE / path.relative_to(REPOSITORY)] = path
    objects = [path for path in found.values() if path == executable or ".so" in path.suffixes]
    found.update({PurePosixPath(path): path for path in libraries(objects)})
    return found


def compiled(scratch: Path) -> dict[PurePosixPath, Path]:
    """The project's modules as Python keeps them, made in *scratch*.

    Where nothing can be written it would make them at every start, which takes a second, and memory that stays taken.
    """
    found = {}
    sources = [path for package in PACKAGES for path in _below(REPOSITORY / package) if path.suffix == ".py"]
    for number, source in enumerate(sources):
        module, file = _SITE / source.relative_to(REPOSITORY), scratch / f"{number}.pyc"
        mode = py_compile.PycInvalidationMode.TIMESTAMP
        py_compile.compile(str(source), str(file), str(module), doraise=True, invalidation_mode=mode)
        found[PurePosixPath(importlib.util.cache_from_source(str(module)))] = file
    return found


def _below(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.rglob("*")):
        if wanted(path.relative_to(directory)) and path.is_file():
            yield path


def libraries(objects: Iterable[Path]) -> set[Path]:
    """Shared libraries of the system that the programs and libraries *objects* load, and what loads them."""
    answer = subprocess.run(["ldd", *map(str, objects)], capture_output=True, text=True, check=False).stdout
    loaded = {Path(match) for match in re.findall(r"^\t(?:\S+ => )?(/\S+) \(0x", answer, re.MULTILINE)}
    # Packages bring libraries of their own, which are copied with them.
    return {path for path in loaded if not path.is_relative_to(sys.prefix)}


def written() -> dict[PurePosixPath, str]:
    """Files of the image that are written for it, with their contents."""
    python = Path(sys.executable).resolve()
    scripts = {item.name: item.value for item in distribution(PROJECT).entry_points if item.group == "console_scripts"}
    found = {
        PREFIX / "pyvenv.cfg": f"home = {python.parent}\ninclude-system-site-packages = false\n",
        PurePosixPath("/etc/passwd"): "berth:x:65532:65532::/:/none\n",
    }
    for command in COMMANDS:
        module, _, function = scripts[command].partition(":")
        lines = [f"#!{PREFIX}/bin/python", "import sys", f"from {module} import {function}", f"sys.exit({function}())"]
        found[PREFIX / "bin" / command] = "\n".join([*lines, ""])
    return found


def write_layer(path: Path) -> None:
    """Write the image's files as a tar to *path*: readable by everybody, owned by root."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".compiled-") as scratch:
        _write_layer(path, copied() | compiled(Path(scratch)), written())


def _write_layer(path: Path, files: dict[PurePosixPath, Path], texts: dict[PurePosixPath, str]) -> None:
    python = PREFIX / "bin" / "python"
    directories = {parent for name in (*files, *texts, python) for parent in name.parents if parent.name}
    with tarfile.open(path, "w") as layer:
        for directory in sorted(directories):
            layer.addfile(_entry(directory, tarfile.DIRTYPE, 0o755))
        layer.addfile(_entry(PurePosixPath("/tmp"), tarfile.DIRTYPE, 0o1777))
        for name, source in files.items():
            # Some are links here; what is in the image is the file. Times count: compiled modules name their source's.
            with source.open("rb") as content:
                status = source.stat()
                entry = _entry(name, tarfile.REGTYPE, 0o755 if status.st_mode & 0o100 else 0o644)
                entry.size, entry.mtime = status.st_size, int(status.st_mtime)
                layer.addfile(entry, content)
        for name, text in texts.items():
            entry = _entry(name, tarfile.REGTYPE, 0o755 if text.startswith("#!") else 0o644)
            entry.size = len(text.encode())
            layer.addfile(entry, io.BytesIO(text.encode()))
        link = _entry(python, tarfile.SYMTYPE, 0o777)
        link.linkname = str(Path(sys.executable).resolve())
        layer.addfile(link)


def _entry(name: PurePosixPath, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(str(name).removeprefix("/"))
    entry.type, entry.mode = kind, mode
    return entry


def write(path: Path, tag: str) -> None:
    """Write the image to *path*, named *tag*.

    Raises:
        ClusterError: the project is not installed in this Python.
    """
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".image-") as scratch:
        layer = Path(scratch) / "layer.tar"
        write_layer(layer)
        write_archive(path, tag=tag, layer=layer, config=CONFIG)

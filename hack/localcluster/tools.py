"""The programs of a control plane, built once from the pinned modules under hack/tools and cached by version.

The cache directory's name holds the Kubernetes version and a hash of everything
that decides what the programs are, so a change of the pins builds anew and an
unchanged tree never does.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.localcluster import golang
from hack.localcluster.errors import ClusterError
from hack.localcluster.paths import REPOSITORY, tools_cache

MODULES = REPOSITORY / "hack" / "tools"
"""Directory of the tools manifest."""

_BUILT_FROM = (".mod", ".sum", ".go")
"""Suffixes of files there that decide what the programs are."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One program."""

    name: str
    """File name of the built program."""
    package: str
    """Go package that it is built from."""
    module: Path = MODULES
    """Directory of the go.mod that pins the package."""
    tags: tuple[str, ...] = ()
    """Build tags; those of one module's tools are given for all of them."""


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(name="etcd", package="go.etcd.io/etcd/server/v3"),
        Tool(name="kube-apiserver", package="k8s.io/kubernetes/cmd/kube-apiserver"),
        Tool(name="kube-controller-manager", package="k8s.io/kubernetes/cmd/kube-controller-manager"),
        Tool(name="kube-scheduler", package="k8s.io/kubernetes/cmd/kube-scheduler"),
        Tool(name="kubectl", package="k8s.io/kubernetes/cmd/kubectl"),
        Tool(name="kwok", package="sigs.k8s.io/kwok/cmd/kwok", module=MODULES / "kwok"),
        Tool(name="kubelet", package="k8s.io/kubernetes/cmd/kubelet"),
        Tool(name="pause", package="berth.dev/pause", module=MODULES / "pause"),
    )
}
"""Every program that can be built, by name."""

STANDARD = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
"""What a local cluster needs; the kubelet and what its pods need, for real nodes alone, are built on request."""


def pinned_version(package_module: str, module_file: Path) -> str:
    """Version of *package_module* (``k8s.io/kubernetes``) that *module_file* requires.

    Raises:
        ClusterError: it requires none.
    """
    match = re.search(rf"^\s*(?:require )?{re.escape(package_module)} (v\S+)", module_file.read_text(), re.MULTILINE)
    if not match:
        raise ClusterError(f"{module_file} requires no {package_module}: add it and run go mod tidy")
    return match[1]


def kubernetes_version() -> str:
    """Pinned Kubernetes version, as ``v1.36.3``."""
    return pinned_version("k8s.io/kubernetes", MODULES / "go.mod")


def linker_flags() -> str:
    """``-ldflags`` value: no debug information, and the version that the programs report."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = ["-s", "-w", *(f"-X k8s.io/component-base/version.{key}={value}" for key, value in stamps.items())]
    kwok = pinned_version("sigs.k8s.io/kwok", MODULES / "kwok" / "go.mod")
    # The linker ignores a stamp for a package that a program does not contain, so one set of flags serves all.
    return " ".join([*flags, f"-X sigs.k8s.io/kwok/pkg/consts.Version={kwok}"])


def cache_key() -> str:
    """Name of the cache directory: the Kubernetes version and a hash of pins, own sources, flags and platform."""
    return f"{kubernetes_version()}-{_digest(MODULES, linker_flags())}"


def _digest(module: Path, flags: str) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in module.rglob("*") if path.suffix in _BUILT_FROM):
        digest.update(f"{path.relative_to(module)}\n".encode())
        digest.update(path.read_bytes())
    digest.update(f"{flags} {platform.system()} {platform.machine()}".encode())
    return digest.hexdigest()[:12]


def tools_dir() -> Path:
    """Directory of the built programs of this version; ``BERTH_TOOLS_DIR`` replaces the cache above it."""
    override = os.environ.get("BERTH_TOOLS_DIR")
    return (Path(override) if override else tools_cache()) / cache_key()


def locate(name: str) -> Path | None:
    """Path of the program if it exists already: in ``KUBEBUILDER_ASSETS`` when that is set, else in the cache."""
    directories = [tools_dir()]
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        directories.insert(0, Path(assets))
    for directory in directories:
        if os.access(directory / name, os.X_OK):
            return directory / name
    return None


def ensure(names: Iterable[str] = STANDARD, *, report: Callable[[str], None] = print) -> dict[str, Path]:
    """Paths of the programs, building what is missing; callers in parallel build once.

    Args:
        names: programs, keys of `TOOLS`.
        report: receives progress lines.

    Raises:
        ClusterError: unknown name, or the build fails.
    """
    names = list(names)
    unknown = [name for name in names if name not in TOOLS]
    if unknown:
        raise ClusterError(f"unknown tool {unknown[0]!r}: known are {', '.join(TOOLS)}")
    if any(locate(name) is None for name in names):
        directory = tools_dir()
        with _to_build_in(directory, report=report):
            # Whoever held the lock before us may have built what we miss.
            missing = [TOOLS[name] for name in names if locate(name) is None]
            if missing:
                _build(missing, directory, report=report)
    found = {name: locate(name) for name in names}
    return {name: path for name, path in found.items() if path is not None}


def apart(tool: Tool) -> Path:
    """Path that a program that is no part of a cluster has once it is built; its sources alone decide."""
    flags = " ".join([linker_flags(), *tool.tags])
    return tools_dir().parent / f"{tool.name}-{_digest(tool.module, flags)}" / tool.name


def ensure_apart(tool: Tool, *, report: Callable[[str], None] = print) -> Path:
    """Path of a program that is no part of a cluster, building it if it is missing.

    Raises:
        ClusterError: the build fails.
    """
    program = apart(tool)
    if not program.exists():
        with _to_build_in(program.parent, report=report):
            if not program.exists():
                _build([tool], program.parent, report=report)
    return program


@contextmanager
def _to_build_in(directory: Path, *, report: Callable[[str], None]) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with _locked(directory.parent / "build.lock", report=report):
        yield


@contextmanager
def _locked(path: Path, *, report: Callable[[str], None]) -> Iterator[None]:
    """Hold the exclusive lock *path*; the kernel frees it when the holder dies."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"another process is building the tools: waiting for {path}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(tools: list[Tool], directory: Path, *, report: Callable[[str], None]) -> None:
    by_module: dict[Path, list[Tool]] = {}
    for tool in tools:
        by_module.setdefault(tool.module, []).append(tool)
    begun = time.monotonic()
    for module, group in by_module.items():
        go = golang.find(golang.required_version(module / "go.mod"), report=report)
        report(
            f"building {', '.join(tool.name for tool in group)} with {go} (minutes the first time, cached afterwards)"
        )
        with tempfile.TemporaryDirectory(dir=directory, prefix=".build-") as scratch:
            _go_build(go, module, group, Path(scratch), report=report)
    report(f"built {', '.join(tool.name for tool in tools)} in {time.monotonic() - begun:.0f} s into {directory}")


def _go_build(go: Path, module: Path, tools: list[Tool], scratch: Path, *, report: Callable[[str], None]) -> None:
    command = [str(go), "build", "-v", "-trimpath", "-buildvcs=false", "-mod=readonly"]
    command += ["-ldflags", linker_flags(), "-tags", ",".join(tag for tool in tools for tag in tool.tags)]
    command += ["-o", f"{scratch}/"]
    # GOTOOLCHAIN=local: the go line decides which Go is needed, nothing fetches another one behind our back.
    env = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    begun = last = time.monotonic()
    compiled = 0
    tail: list[str] = []
    with subprocess.Popen(
        [*command, *(tool.package for tool in tools)], cwd=module, env=env, stderr=subprocess.PIPE, text=True
    ) as build:
        for line in build.stderr or ():
            tail = [*tail[-19:], line.rstrip()]
            compiled += 1
            if time.monotonic() - last >= 5:
                last = time.monotonic()
                report(f"  {last - begun:4.0f} s, {compiled} packages downloaded or compiled, now {line.strip()}")
    if build.returncode != 0:
        raise ClusterError("go build failed:\n" + "\n".join(tail))
    for tool in tools:
        # go names a program after its package's last element that is no version: etcd's is called "server".
        # Both directories are in one file system, so the rename is atomic.
        element = [part for part in tool.package.split("/") if not re.fullmatch(r"v\d+", part)][-1]
        (scratch / element).rename(scratch.parent / tool.name)

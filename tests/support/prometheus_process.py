"""A real Prometheus that scrapes pages of text: of the machine, or from Debian's package without installing it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hack.localcluster import ports
from hack.localcluster.paths import REPOSITORY, tools_cache
from tests.support.api_server import Answer, Request, api_server

_CHILD = REPOSITORY / "hack" / "localcluster" / "child.py"
_GROWS = re.compile(r"^(\w+_(?:bucket|sum|count)\{.*\}) (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """What one target says."""

    text: str
    """in the text format; every ``_bucket``, ``_sum`` and ``_count`` grows by its figure with each scrape"""
    labels: Mapping[str, str] = field(default_factory=dict)
    """labels that Prometheus gives to it, as a ServiceMonitor would"""
    honor_labels: bool = False
    """whether its own labels come before these"""

    def at(self, scrape: int) -> bytes:
        """Return the page of the scrape with this number, from 1."""
        return _GROWS.sub(lambda found: f"{found[1]} {float(found[2]) * scrape:g}", self.text).encode()


def program() -> Path:
    """Return the program: that of the machine, else from Debian's package, unpacked once into the cache of tools.

    Skips the test where there is neither.
    """
    found = shutil.which("prometheus")
    if found:
        return Path(found)
    home = tools_cache() / "prometheus"
    unpacked = home / "usr" / "bin" / "prometheus"
    if not unpacked.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as directory:
            try:
                subprocess.run(["apt-get", "download", "-q", "prometheus"], cwd=directory, check=True, timeout=120)
                (package,) = Path(directory).glob("prometheus_*.deb")
                subprocess.run(["dpkg", "-x", str(package), "unpacked"], cwd=directory, check=True, timeout=120)
            except (OSError, subprocess.SubprocessError, ValueError) as error:
                pytest.skip(f"no Prometheus; install it, on Debian with apt-get install prometheus ({error})")
            if not unpacked.exists():  # another run may have been faster
                (Path(directory) / "unpacked").rename(home)
    return unpacked


@contextmanager
def running_prometheus(directory: Path, pages: Mapping[str, Page]) -> Iterator[str]:
    """Have it scrape the pages (name to page) every second, and give its address."""
    scrapes: Counter[str] = Counter()

    def page(request: Request) -> Answer:
        name = request.path.strip("/")
        scrapes[name] += 1
        return Answer(200, pages[name].at(scrapes[name]), {"Content-Type": "text/plain; version=0.0.4"})

    (port,) = ports.allocate(1)
    with api_server(page) as targets:
        config = _config(targets.url.removeprefix("http://"), pages)
        with prometheus(directory, config, f"127.0.0.1:{port}"):
            yield f"http://127.0.0.1:{port}"


@contextmanager
def prometheus(
    directory: Path, config: Mapping[str, Any], address: str, *options: str, inside: Sequence[str] = ()
) -> Iterator[None]:
    """Run it with a configuration, which listens on an address; it is not ready yet.

    Args:
        directory: of its files.
        config: what ``--config.file`` has.
        address: host and port.
        options: further ones.
        inside: beginning of a command line that runs what follows somewhere else, such as in another network.
    """
    file = directory / "prometheus.json"  # JSON is YAML too
    file.write_text(json.dumps(config))
    arguments = [f"--config.file={file}", f"--storage.tsdb.path={directory / 'data'}"]
    arguments += [f"--web.listen-address={address}", *options]
    command = [sys.executable, str(_CHILD), str(os.getpid()), *inside, str(program()), *arguments]
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)


def _config(address: str, pages: Mapping[str, Page]) -> dict[str, Any]:
    jobs = [
        {
            "job_name": name,
            "metrics_path": f"/{name}",
            "honor_labels": page.honor_labels,
            "static_configs": [{"targets": [address], "labels": dict(page.labels)}],
        }
        for name, page in pages.items()
    ]
    return {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}

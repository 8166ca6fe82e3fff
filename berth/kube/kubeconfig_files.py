"""Kubeconfig files, read and merged as kubectl does it.

What is null is absent, as for Go; what comes first counts; files are looked for beside the kubeconfig that names them.
No message has anything of a user in it: messages go to logs.
"""

from __future__ import annotations

import os
from os.path import exists, expanduser
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes_asyncio.config.kube_config import ConfigNode, KubeConfigMerger

from berth.kube.connection import ConnectionConfigError
from berth.kube.decoding import without_nulls
from berth.kube.yaml_depth import check_depth

_SECTIONS: Final = ("clusters", "contexts", "users")
_FILES: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Fields of clusters and users that name files."""


class KubeconfigFiles(KubeConfigMerger):
    """The files of one path; the result is `config`, and `save_changes` keeps tokens that were renewed."""

    def __init__(self, paths: str) -> None:
        """Read them.

        Args:
            paths: file, or several separated by ``:``; those that are not there are left out.

        Raises:
            FileNotFoundError: none is there.
            OSError: one cannot be read.
            ConnectionConfigError: one is no kubeconfig.
        """
        if not any(path and exists(expanduser(path)) for path in paths.split(os.pathsep)):
            # The library would log so as well, as a line of its own before the error of a command. Asked as it asks:
            # pathlib ends with an error at a home that nobody has, and at a name that is too long.
            raise FileNotFoundError("no such file")
        self._empty = True
        super().__init__(paths)
        if self._empty:
            raise _no_kubeconfig("it is empty")

    def load_config(self, path: str) -> None:
        """Read one more file."""
        document = _read(path)
        self._empty = self._empty and not document
        merged = self.config_merged
        if merged is None:
            merged = self.config_merged = ConfigNode(path, {section: [] for section in _SECTIONS}, path)
        if document.get("current-context"):
            merged.value.setdefault("current-context", document["current-context"])
        for section in _SECTIONS:
            known = {entry["name"] for entry in merged.value[section]}
            for entry in _entries(document, section, Path(path).absolute().parent):
                if entry["name"] not in known:
                    known.add(entry["name"])
                    merged.value[section].append(ConfigNode(f"{section} of {path}", entry, path))
        self.config_files[path] = document

    @property
    def current_context(self) -> str | None:
        """The context to use unless another is asked for."""
        return None if self.config is None else self.config.value.get("current-context")

    def entries(self, section: str) -> dict[str, dict[str, Any]]:
        """What `clusters`, `contexts` or `users` have under each name."""
        node = self.config
        found = [] if node is None else node.value[section]
        return {entry["name"]: entry.value[section.removesuffix("s")] for entry in found}


def _read(path: str) -> dict[str, Any]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        check_depth(text)
        document = without_nulls(yaml.load(text, Loader=yaml.CSafeLoader))
    except yaml.YAMLError as error:
        # Its text quotes the line, which may hold a token.
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" at line {mark.line + 1}"
        raise _no_kubeconfig(f"no YAML{where}") from error
    except UnicodeDecodeError as error:
        raise _no_kubeconfig("no text in UTF-8") from error
    except RecursionError as error:
        raise _no_kubeconfig("it is nested too deeply") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise _no_kubeconfig("it is no mapping")
    return document


def _entries(document: dict[str, Any], section: str, directory: Path) -> list[dict[str, Any]]:
    """The entries of a section that have names, complete, and with whole paths; of two tokens the one that counts.

    What lies deeper is that of `document`, where renewed tokens are saved from.
    """
    listed = document.get(section, [])
    if not isinstance(listed, list):
        raise _no_kubeconfig(f"its {section} are no list")
    field, found = section.removesuffix("s"), []
    for entry in listed:
        if isinstance(entry, dict) and entry.get("name"):
            stated = entry.get(field, {})
            if not isinstance(stated, dict):
                raise _no_kubeconfig(f"one of its {section} is no mapping")
            found.append({**entry, field: _resolved(stated, directory)})
    return found


def _resolved(stated: dict[str, Any], directory: Path) -> dict[str, Any]:
    paths: dict[str, Any] = {name: str(directory / stated[name]) for name in _FILES if stated.get(name)}
    plugin = stated.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command", "")):
        paths["exec"] = {**plugin, "command": str(directory / str(plugin["command"]))}
    whole = {**stated, **paths}
    if whole.get("tokenFile"):
        whole.pop("token", None)  # the file is replaced when the token expires
    return whole


def _no_kubeconfig(problem: str) -> ConnectionConfigError:
    return ConnectionConfigError(f"not a kubeconfig: {problem}; name another file with --kubeconfig or $KUBECONFIG")

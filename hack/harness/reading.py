"""What ``kubectl get -o json`` prints, read over one connection: a test that waits reads many times a second, and each
kubectl takes a twentieth of a second of a processor to begin.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from hack.localcluster.rest import Api, ApiError

_SELECTORS = {"--field-selector": "fieldSelector", "--selector": "labelSelector", "-l": "labelSelector"}


class _Kind(NamedTuple):
    """A kind that the API server has."""

    path: str
    """of its group and version"""
    plural: str
    namespaced: bool
    version: str
    name: str


class Reader:
    """Reads objects of one cluster; several threads may use it."""

    def __init__(self, api: Api) -> None:
        """Read with this client, which belongs to the reader from now on."""
        self._api = api
        self._kinds: dict[str, _Kind] = {}
        self._lock = threading.Lock()

    def get(self, namespace: str, args: Sequence[str]) -> Any | None:
        """Return what kubectl would print for these arguments; None where that is for kubectl to say.

        Raises:
            ApiError: the API server refuses, as where there is no such object.
            OSError: the API server cannot be reached.
        """
        words = [word for word in args if not word.startswith("-")]
        query = _query([word for word in args if word.startswith("-")])
        if query is None or not 1 <= len(words) <= 2 or any(mark in word for word in words for mark in ",/"):
            return None
        with self._lock:
            kind = self._kinds.get(words[0]) or self._look_up(words[0])
            if kind is None:
                return None
            scope = f"/namespaces/{namespace}" if kind.namespaced else ""
            path = "/".join([f"{kind.path}{scope}/{kind.plural}", *(quote(name) for name in words[1:])])
            found = self._request(path + query)
        managed = "--show-managed-fields" in args
        if len(words) == 2:
            return _shown(found, kind, managed=managed)
        items = [_shown(item, kind, managed=managed) for item in found["items"]]
        return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}

    def _request(self, path: str) -> Any:
        """Read; once more over another connection where the server has ended this one, as when it was restarted."""
        try:
            return self._api.request("GET", path)
        except OSError:
            return self._api.request("GET", path)

    def _look_up(self, word: str) -> _Kind | None:
        """Learn which kinds there are; None where none is called that. Kinds may come later."""
        groups = self._request("/apis")["groups"]
        versions = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
        self._kinds = {}
        for path in versions:
            group, _, _ = path.removeprefix("/apis/").rpartition("/")
            try:
                resources = self._request(path)["resources"]
            except ApiError:  # it is about to go
                continue
            for each in resources:
                if "/" in each["name"]:
                    continue
                version = path.removeprefix("/api/").removeprefix("/apis/")
                kind = _Kind(path, each["name"], each["namespaced"], version, each["kind"])
                names = [each["name"], each["singularName"], each["kind"].lower(), *each.get("shortNames", ())]
                for name in names if path == "/api/v1" else [*names, f"{each['name']}.{group}"]:
                    self._kinds.setdefault(name, kind)
        return self._kinds.get(word)


def _query(options: Sequence[str]) -> str | None:
    """The query for these options; None where there are others."""
    parts = []
    for option in options:
        name, _, value = option.partition("=")
        if name in _SELECTORS and value:
            parts.append(f"{_SELECTORS[name]}={quote(value)}")
        elif option != "--show-managed-fields":
            return None
    return f"?{'&'.join(parts)}" if parts else ""


def _shown(found: dict[str, Any], kind: _Kind, *, managed: bool) -> dict[str, Any]:
    """An object as kubectl shows it: items of lists have no kind of their own."""
    if not managed:
        found["metadata"].pop("managedFields", None)
    return {"apiVersion": kind.version, "kind": kind.name, **found}

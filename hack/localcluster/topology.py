"""Topology files: regions, their zones and the simulated nodes in them.

A file looks like this; only ``regions``, ``name``, ``zones`` and ``nodes`` are required::

    namePattern: "{zone}-{index:03d}"
    capacity: {cpu: "8", memory: 32Gi, pods: "110"}
    labels: {disk: ssd}
    regions:
      - name: eu-west
        zones:
          - name: eu-west-1a
            nodes: 6
          - name: eu-west-1b
            nodes:
              - {count: 4}
              - {count: 2, capacity: {cpu: "32"}, taints: [{key: big, effect: NoSchedule}], namePattern: "big-{number}"}

``capacity``, ``allocatable``, ``labels``, ``annotations``, ``taints`` and ``namePattern`` may stand at the top,
in a region, in a zone and in a group of nodes: mappings are merged and the inner entry
wins, taints add up, and the innermost pattern counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from hack.localcluster.errors import ClusterError

DEFAULT_PATTERN = "{zone}-{index:03d}"
"""Name of a node where the file gives no pattern; index counts from 1 within the zone."""

DEFAULT_CAPACITY: Mapping[str, str] = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
"""Capacity of a node where the file gives none."""

_SHARED = ("capacity", "allocatable", "labels", "annotations", "taints", "namePattern")
_QUANTITY = re.compile(r"\d+(\.\d+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e\d+)?")
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class TopologyError(ClusterError):
    """A topology file is wrong; the message names file, field and remedy."""


@dataclass(frozen=True, kw_only=True)
class NodeSpec:
    """One simulated node."""

    name: str
    """Node name, also its ``kubernetes.io/hostname`` label."""
    region: str
    """Value of ``topology.kubernetes.io/region``."""
    zone: str
    """Value of ``topology.kubernetes.io/zone``."""
    capacity: Mapping[str, str]
    """Resource quantities of ``status.capacity``."""
    allocatable: Mapping[str, str]
    """Resource quantities of ``status.allocatable``: the capacity, except where the file says otherwise."""
    labels: Mapping[str, str]
    """Further labels."""
    annotations: Mapping[str, str]
    """Further annotations."""
    taints: tuple[Mapping[str, str], ...]
    """Taints."""


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """The fields that every level may give, merged so far."""

    capacity: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULT_CAPACITY))
    allocatable: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    pattern: str = DEFAULT_PATTERN


def load(path: Path) -> list[NodeSpec]:
    """Nodes that the file at *path* describes, in its order.

    Raises:
        TopologyError: the file is missing, is no YAML or breaks a rule; the message names the field.
    """
    try:
        document = yaml.safe_load(path.read_text())
    except OSError as error:
        raise TopologyError(f"{path}: cannot be read ({error.strerror}): give the path of a topology file") from error
    except yaml.YAMLError as error:
        raise TopologyError(f"{path}: is not YAML: {error}") from error
    return parse(document, source=str(path))


def parse(document: Any, *, source: str) -> list[NodeSpec]:
    """Nodes that the decoded *document* describes; *source* is named in errors.

    Raises:
        TopologyError: the document breaks a rule.
    """
    return _Parser(source).nodes(document)


class _Parser:
    """Walks a document, remembering which names are taken."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._names: set[str] = set()
        self._zones: dict[str, str] = {}

    def nodes(self, document: Any) -> list[NodeSpec]:
        root = self._mapping(document, "(top level)", allowed=("regions", *_SHARED), required=("regions",))
        settings = self._merge(_Settings(), root, "")
        found: list[NodeSpec] = []
        for where, item in self._items(root["regions"], "regions"):
            region = self._mapping(item, where, allowed=("name", "zones", *_SHARED), required=("name", "zones"))
            found += self._region(region, where, self._merge(settings, region, f"{where}."))
        return found

    def _region(self, region: Mapping[str, Any], where: str, settings: _Settings) -> list[NodeSpec]:
        name = self._label_value(region["name"], f"{where}.name")
        found: list[NodeSpec] = []
        for inner, item in self._items(region["zones"], f"{where}.zones"):
            zone = self._mapping(item, inner, allowed=("name", "nodes", *_SHARED), required=("name", "nodes"))
            zone_name = self._label_value(zone["name"], f"{inner}.name")
            if zone_name in self._zones:
                other = self._zones[zone_name]
                raise self._error(
                    f"{inner}.name", f"{zone_name!r} is also {other}", "give every zone a name of its own"
                )
            self._zones[zone_name] = f"{inner}.name"
            found += self._zone(
                zone, inner, region=name, name=zone_name, settings=self._merge(settings, zone, f"{inner}.")
            )
        return found

    def _zone(
        self, zone: Mapping[str, Any], where: str, *, region: str, name: str, settings: _Settings
    ) -> list[NodeSpec]:
        groups = zone["nodes"]
        if not isinstance(groups, list):
            groups = [{"count": groups}]
            prefixes = [f"{where}.nodes"]
        else:
            prefixes = [f"{where}.nodes[{number}].count" for number in range(len(groups))]
        found: list[NodeSpec] = []
        for prefix, item in zip(prefixes, groups, strict=True):
            at = prefix.removesuffix(".count")
            group = self._mapping(item, at, allowed=("count", *_SHARED), required=("count",))
            count = group["count"]
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                raise self._error(prefix, f"{count!r} is no number of nodes", "write a whole number, as in 6")
            merged = self._merge(settings, group, f"{at}.")
            for _ in range(count):
                found.append(self._node(merged, at, region=region, zone=name, index=len(found) + 1))
        return found

    def _node(self, settings: _Settings, where: str, *, region: str, zone: str, index: int) -> NodeSpec:
        try:
            name = settings.pattern.format(region=region, zone=zone, index=index, number=len(self._names) + 1)
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise self._error(
                "namePattern",
                f"{settings.pattern!r} cannot be filled in ({error})",
                "use {region}, {zone}, {index}, {number}",
            ) from error
        if not _NODE_NAME.fullmatch(name):
            raise self._error(
                "namePattern",
                f"{settings.pattern!r} gives {name!r} for a node of {where}, which is no node name",
                "use lower-case letters, digits, '-' and '.'",
            )
        if name in self._names:
            raise self._error(
                "namePattern", f"{settings.pattern!r} gives {name!r} twice ({where})", "add {zone}, {index} or {number}"
            )
        self._names.add(name)
        return NodeSpec(
            name=name,
            region=region,
            zone=zone,
            capacity=settings.capacity,
            allocatable={**settings.capacity, **settings.allocatable},
            labels=settings.labels,
            annotations=settings.annotations,
            taints=settings.taints,
        )

    def _merge(self, outer: _Settings, level: Mapping[str, Any], where: str) -> _Settings:
        pattern = level.get("namePattern", outer.pattern)
        if not isinstance(pattern, str):
            raise self._error(
                f"{where}namePattern", f"{pattern!r} is no text", f"write for example {DEFAULT_PATTERN!r}"
            )
        return replace(
            outer,
            capacity={**outer.capacity, **self._quantities(level.get("capacity", {}), f"{where}capacity")},
            allocatable={**outer.allocatable, **self._quantities(level.get("allocatable", {}), f"{where}allocatable")},
            labels={**outer.labels, **self._texts(level.get("labels", {}), f"{where}labels", label=True)},
            annotations={**outer.annotations, **self._texts(level.get("annotations", {}), f"{where}annotations")},
            taints=(*outer.taints, *self._taints(level.get("taints", []), f"{where}taints")),
            pattern=pattern,
        )

    def _quantities(self, value: Any, where: str) -> dict[str, str]:
        found = {str(key): str(item) for key, item in self._mapping(value, where).items()}
        for key, item in found.items():
            if not _QUANTITY.fullmatch(item):
                raise self._error(
                    f"{where}.{key}", f"{item!r} is not a valid quantity", "write for example '8', 500m or 32Gi"
                )
        return found

    def _texts(self, value: Any, where: str, *, label: bool = False) -> dict[str, str]:
        found = self._mapping(value, where)
        for key, item in found.items():
            if not isinstance(item, str):
                raise self._error(f"{where}.{key}", f"{item!r} is no text", f"put it in quotes: '{item}'")
            if label:
                self._label_value(item, f"{where}.{key}")
        return dict(found)

    def _taints(self, value: Any, where: str) -> list[Mapping[str, str]]:
        found: list[Mapping[str, str]] = []
        for at, item in self._items(value, where):
            taint = self._mapping(item, at, allowed=("key", "value", "effect"), required=("key", "effect"))
            if taint["effect"] not in _EFFECTS:
                raise self._error(
                    f"{at}.effect", f"{taint['effect']!r} is no taint effect", f"use {', '.join(_EFFECTS)}"
                )
            found.append(self._texts(taint, at))
        return found

    def _label_value(self, value: Any, where: str) -> str:
        if not isinstance(value, str) or not _LABEL_VALUE.fullmatch(value):
            raise self._error(
                where,
                f"{value!r} is no label value",
                "use at most 63 letters, digits, '-', '_' and '.', in quotes if numeric",
            )
        return value

    def _items(self, value: Any, where: str) -> list[tuple[str, Any]]:
        if not isinstance(value, list):
            raise self._error(where, f"is {type(value).__name__}, not a list", "start each entry with '- '")
        return [(f"{where}[{number}]", item) for number, item in enumerate(value)]

    def _mapping(
        self, value: Any, where: str, *, allowed: tuple[str, ...] = (), required: tuple[str, ...] = ()
    ) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._error(where, f"is {type(value).__name__}, not a mapping", "write 'key: value' pairs")
        for key in value:
            if allowed and key not in allowed:
                raise self._error(where, f"unknown field {key!r}", f"known fields are {', '.join(allowed)}")
        for key in required:
            if key not in value:
                raise self._error(where, f"field {key!r} is missing", f"add '{key}:'")
        return value

    def _error(self, where: str, problem: str, remedy: str) -> TopologyError:
        return TopologyError(f"{self._source}: {where}: {problem}: {remedy}")

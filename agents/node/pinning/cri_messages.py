"""Messages of the Container Runtime Interface, ``runtime.v1``: the few fields that pinning reads and writes.

Numbers and types are those of ``api.proto`` in k8s.io/cri-api; fields that are not listed are skipped by protobuf, and
are never sent: a runtime takes what is absent for "no change".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE: Final = "runtime.v1"
"""Package of the messages, and of the service."""
SERVICE: Final = f"/{PACKAGE}.RuntimeService"
"""Path of the service's methods."""
RUNNING: Final = 1
"""ContainerState CONTAINER_RUNNING."""

MAP: Final = "map of strings"
"""Type of a field that is a map of strings to strings."""
FIELDS: Final[Mapping[str, Mapping[str, tuple[int, str]]]] = {
    "ContainerStateValue": {"state": (1, "int32")},
    "ContainerFilter": {"id": (1, "string"), "state": (2, "ContainerStateValue")},
    "ListContainersRequest": {"filter": (1, "ContainerFilter")},
    "ContainerMetadata": {"name": (1, "string"), "attempt": (2, "uint32")},
    "Container": {
        "id": (1, "string"),
        "metadata": (3, "ContainerMetadata"),
        "state": (6, "int32"),
        "labels": (8, MAP),
    },
    "ListContainersResponse": {"containers": (1, "Container list")},
    "ContainerStatusRequest": {"container_id": (1, "string"), "verbose": (2, "bool")},
    "ContainerStatusResponse": {"info": (2, MAP)},
    "LinuxContainerResources": {"cpuset_cpus": (6, "string"), "cpuset_mems": (7, "string")},
    "UpdateContainerResourcesRequest": {"container_id": (1, "string"), "linux": (2, "LinuxContainerResources")},
    "UpdateContainerResourcesResponse": {},
}
"""Messages that pinning needs, by name: number and type of each field."""

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "string": _Field.TYPE_STRING,
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "uint32": _Field.TYPE_UINT32,
}


class Messages:
    """Classes of messages of :data:`PACKAGE`."""

    def __init__(self, fields: Mapping[str, Mapping[str, tuple[int, str]]]) -> None:
        """Declare messages: by name, the number and the type of each field."""
        file = descriptor_pb2.FileDescriptorProto(name="berth/cri.proto", package=PACKAGE, syntax="proto3")
        for name, described in fields.items():
            declared = file.message_type.add(name=name)
            for field, (number, kind) in described.items():
                _add(declared, field, number, kind)
        self._pool = descriptor_pool.DescriptorPool()
        self._pool.Add(file)

    def __call__(self, name: str) -> Any:
        """Return the class of the messages of that name; fields are attributes of theirs."""
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


def _add(described: descriptor_pb2.DescriptorProto, name: str, number: int, kind: str) -> None:
    field = described.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
        return
    field.type = _Field.TYPE_MESSAGE
    if kind == MAP:
        # A map is a list of entries, of a message that only the map has.
        entry = f"{name.capitalize()}Entry"
        inner = described.nested_type.add(name=entry)
        inner.options.map_entry = True
        _add(inner, "key", 1, "string")
        _add(inner, "value", 2, "string")
        field.label, field.type_name = _Field.LABEL_REPEATED, f".{PACKAGE}.{described.name}.{entry}"
        return
    if kind.endswith(" list"):
        field.label = _Field.LABEL_REPEATED
    field.type_name = f".{PACKAGE}.{kind.removesuffix(' list')}"


message: Final = Messages(FIELDS)
"""Messages that pinning needs."""

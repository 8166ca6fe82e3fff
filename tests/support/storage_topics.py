"""Topics of generated situations that are about volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from tests.support.situations import Draw, Situation

DISK_ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
ZONES = ["east", "west", "east__west", "north"]


def storage_class(name: str, *, wait: bool, provisioner: str, zones: list[str] | None = None) -> dict[str, Any]:
    """A StorageClass; ``zones`` limit where it provisions."""
    found: dict[str, Any] = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if wait else "Immediate",
    }
    if zones is not None:
        found["allowedTopologies"] = [{"matchLabelExpressions": [{"key": "@.test/zone", "values": zones}]}]
    return found


def volume(name: str, *, size: str, storage_class_name: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """An available CSI volume that every node reaches."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class_name,
            "csi": {"driver": "csi.test", "volumeHandle": name},
        },
        "status": {"phase": "Available"},
    }


def claim(name: str, *, size: str, storage_class_name: str, mode: str = "ReadWriteOnce") -> dict[str, Any]:
    """A claim without volume."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "@-a"},
        "spec": {
            "accessModes": [mode],
            "storageClassName": storage_class_name,
            "resources": {"requests": {"storage": size}},
        },
        "status": {"phase": "Pending"},
    }


def bind(item: dict[str, Any], to: dict[str, Any]) -> None:
    """Bind a claim to a volume, completely."""
    item["spec"]["volumeName"] = to["metadata"]["name"]
    item["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    item["status"]["phase"] = "Bound"
    to["spec"]["claimRef"] = {"namespace": item["metadata"]["namespace"], "name": item["metadata"]["name"]}
    to["status"]["phase"] = "Bound"


def use(item: dict[str, Any], claim_name: str) -> None:
    """Let a pod use a claim."""
    volumes = item["spec"].setdefault("volumes", [])
    volumes.append({"name": f"v{len(volumes)}", "persistentVolumeClaim": {"claimName": claim_name}})


def claims(draw: Draw, found: Situation) -> None:
    """Claims that are bound, can be matched, can be provisioned, or cannot be served."""
    for number, item in enumerate(found.nodes):
        if draw(st.booleans()):
            item["metadata"]["labels"][DISK_ZONE] = "east" if number % 2 else "west"
    zones = draw(st.sampled_from([None, ["a"], ["a", "b"]]))
    provisioner = draw(st.sampled_from(["csi.test", "kubernetes.io/no-provisioner"]))
    found.storage.append(storage_class("@-wait", wait=True, provisioner=provisioner, zones=zones))
    found.storage.append(storage_class("@-now", wait=False, provisioner="csi.test"))
    volumes = [_volume(draw, number, found) for number in range(draw(st.integers(0, 3)))]
    found.storage += volumes
    for number in range(draw(st.integers(1, 2))):
        name = f"@-c{number}"
        use(found.pod, name)
        if draw(st.integers(1, 8)) == 1:
            continue  # a claim that does not exist
        wait = draw(st.sampled_from([True, True, True, False]))
        size = draw(st.sampled_from(["1Gi", "5Gi"]))
        item = claim(name, size=size, storage_class_name="@-wait" if wait else "@-now")
        free = [v for v in volumes if "claimRef" not in v["spec"]]
        fate = draw(st.sampled_from(["bound", "bound", "reserved", "selected", "open", "open"]))
        if fate == "bound" and free:
            bind(item, draw(st.sampled_from(free)))
        elif fate == "reserved" and free:
            reserved = draw(st.sampled_from(free))
            reserved["spec"]["claimRef"] = {"namespace": "@-a", "name": name}
        elif fate == "selected":
            chosen = draw(st.sampled_from(found.nodes))["metadata"]["name"]
            item["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": chosen}
        found.storage.append(item)


def _volume(draw: Draw, number: int, found: Situation) -> dict[str, Any]:
    labels = {DISK_ZONE: draw(st.sampled_from(ZONES))} if draw(st.booleans()) else {}
    size = draw(st.sampled_from(["1Gi", "5Gi", "10Gi"]))
    item = volume(f"@-v{number}", size=size, storage_class_name="@-wait", labels=labels)
    item["status"]["phase"] = draw(st.sampled_from(["Available", "Available", "Released"]))
    where = draw(st.sampled_from(["", "zone", "node"]))
    if where:
        key, values = "@.test/zone", [draw(st.sampled_from(["a", "b"]))]
        if where == "node":
            key = "kubernetes.io/hostname"
            chosen = draw(st.lists(st.sampled_from(found.nodes), min_size=1, max_size=2, unique_by=id))
            values = [node["metadata"]["name"] for node in chosen]
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}
        item["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return item


def zoned_volumes(draw: Draw, found: Situation) -> None:
    """A bound volume whose labels name its zones, under today's key or the one of old."""
    item = claim("@-zc", size="1Gi", storage_class_name="@-zoned")
    key = draw(st.sampled_from([DISK_ZONE, "topology.kubernetes.io/region", OLD_ZONE]))
    home = volume("@-zv", size="1Gi", storage_class_name="@-zoned", labels={key: draw(st.sampled_from(ZONES))})
    bind(item, home)
    found.storage += [storage_class("@-zoned", wait=False, provisioner="csi.test"), home, item]
    use(found.pod, "@-zc")
    for node in found.nodes:
        labels = node["metadata"]["labels"]
        labels.pop(DISK_ZONE, None)
        for name in draw(st.lists(st.sampled_from([key, key, DISK_ZONE]), max_size=2)):
            labels[name] = draw(st.sampled_from(["east", "west"]))


def one_pod_claims(draw: Draw, found: Situation) -> None:
    """Claims with ReadWriteOncePod, taken or not."""
    item = claim("@-only", size="1Gi", storage_class_name="@-one", mode="ReadWriteOncePod")
    home = volume("@-vonly", size="1Gi", storage_class_name="@-one")
    home["spec"]["accessModes"] = ["ReadWriteOncePod"]
    bind(item, home)
    found.storage += [storage_class("@-one", wait=False, provisioner="csi.test"), home, item]
    use(found.pod, "@-only")
    for other in found.pods:
        if other["metadata"]["namespace"] == "@-a" and draw(st.integers(1, 4)) == 1:
            use(other, "@-only")


def csi_limits(draw: Draw, found: Situation) -> None:
    """Nodes that can attach few volumes."""
    found.storage.append(storage_class("@-lim", wait=True, provisioner="lim.test"))
    for item in found.nodes:
        name = item["metadata"]["name"]
        driver: dict[str, Any] = {"name": "lim.test", "nodeID": name}
        if draw(st.booleans()):
            driver["allocatable"] = {"count": draw(st.integers(1, 2))}
        found.storage.append(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": name},
                "spec": {"drivers": [driver]},
            }
        )
    for number, item in enumerate([found.pod, *(p for p in found.pods if p["metadata"]["namespace"] == "@-a")]):
        for part in range(draw(st.integers(1, 2))):
            home = volume(f"@-lv{number}-{part}", size="1Gi", storage_class_name="@-lim")
            home["spec"]["csi"]["driver"] = "lim.test"
            mine = claim(f"@-lc{number}-{part}", size="1Gi", storage_class_name="@-lim")
            if draw(st.booleans()) or item is not found.pod:
                bind(mine, home)
                found.storage.append(home)
            found.storage.append(mine)
            use(item, mine["metadata"]["name"])
        if draw(st.booleans()):
            found.storage.append(_attachment(draw, found))


def _attachment(draw: Draw, found: Situation) -> dict[str, Any]:
    """A volume that hangs on a node without any pod of it."""
    number = sum(item["kind"] == "VolumeAttachment" for item in found.storage)
    home = volume(f"@-av{number}", size="1Gi", storage_class_name="@-lim")
    home["spec"]["csi"]["driver"] = "lim.test"
    found.storage.append(home)
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": f"@-at{number}"},
        "spec": {
            "attacher": "lim.test",
            "nodeName": draw(st.sampled_from(found.nodes))["metadata"]["name"],
            "source": {"persistentVolumeName": home["metadata"]["name"]},
        },
    }


def tracked_capacity(draw: Draw, found: Situation) -> None:
    """A driver that says how much room it has where."""
    driver = "@.csi.test"
    found.storage.append(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": driver},
            "spec": {"storageCapacity": draw(st.sampled_from([True, True, True, False]))},
        }
    )
    found.storage.append(storage_class("@-tracked", wait=True, provisioner=driver))
    for zone in draw(st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True)):
        item: dict[str, Any] = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": f"@-cap-{zone}", "namespace": "@-a"},
            "storageClassName": "@-tracked",
            "nodeTopology": {"matchLabels": {"@.test/zone": zone}},
            "capacity": draw(st.sampled_from(["1Gi", "5Gi", "10Gi"])),
        }
        if draw(st.booleans()):
            item["maximumVolumeSize"] = draw(st.sampled_from(["1Gi", "5Gi"]))
        found.storage.append(item)
    found.storage.append(claim("@-tc", size=draw(st.sampled_from(["1Gi", "5Gi"])), storage_class_name="@-tracked"))
    use(found.pod, "@-tc")


def disks(draw: Draw, found: Situation) -> None:
    """In-tree disks that pods mount directly, for reading or for writing."""
    for item in [found.pod, *found.pods]:
        if item is not found.pod and draw(st.booleans()):
            continue
        read_only = draw(st.booleans())
        source: dict[str, Any] = draw(
            st.sampled_from(
                [
                    {"gcePersistentDisk": {"pdName": "d1", "readOnly": read_only}},
                    {"awsElasticBlockStore": {"volumeID": "d1", "readOnly": read_only}},
                    {"iscsi": {"targetPortal": "t:1", "iqn": "iqn.2001-04.a:d1", "lun": 0, "readOnly": read_only}},
                    {"rbd": {"monitors": ["m1", "m2"], "image": "i", "readOnly": read_only}},
                    {"rbd": {"monitors": ["m2", "m3"], "image": "i", "pool": "rbd", "readOnly": read_only}},
                ]
            )
        )
        volumes = item["spec"].setdefault("volumes", [])
        volumes.append({"name": f"v{len(volumes)}", **source})

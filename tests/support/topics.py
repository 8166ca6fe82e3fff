"""The topics of generated situations: each makes one rule of placement matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.support.situations import (
    DISK,
    LEVEL,
    OVERHEAD,
    RACK,
    ZONE,
    Draw,
    Situation,
    chance,
    container,
    labels_of,
    selector_of,
)
from tests.support.storage_topics import claims, csi_limits, disks, one_pod_claims, tracked_capacity, zoned_volumes

Spec = dict[str, Any]


def spec_of(item: dict[str, Any]) -> Spec:
    """The spec of a manifest."""
    spec: Spec = item["spec"]
    return spec


def resources(draw: Draw, found: Situation) -> None:
    """Requests of containers, init containers and sidecars, overhead, and little room."""
    for item in found.nodes:
        allocatable = item["status"]["allocatable"]
        allocatable["cpu"] = draw(st.sampled_from(["1", "1500m", "2", "3"]))
        allocatable["memory"] = draw(st.sampled_from(["512Mi", "1Gi", "2Gi"]))
        allocatable["pods"] = str(draw(st.sampled_from([1, 2, 20])))
    for item in [*found.pods, found.pod]:
        spec = spec_of(item)
        spec["containers"] = [_container(draw, f"c{number}") for number in range(draw(st.integers(1, 2)))]
        spec["initContainers"] = [
            _container(draw, f"i{number}", init=True) for number in range(draw(st.integers(0, 3)))
        ]
        if chance(draw, 4):
            spec["runtimeClassName"], spec["overhead"] = "weighty", dict(OVERHEAD)


def _container(draw: Draw, name: str, *, init: bool = False) -> dict[str, Any]:
    requests = {}
    if draw(st.booleans()):
        requests["cpu"] = draw(st.sampled_from(["0", "1m", "250m", "0.5", "1", "1250m"]))
    if draw(st.booleans()):
        requests["memory"] = draw(st.sampled_from(["1", "128Mi", "0.5Gi", "1e9", "1Gi"]))
    found = container(name, **requests)
    if init and draw(st.booleans()):
        found["restartPolicy"] = "Always"
    return found


def pod_level_resources(draw: Draw, found: Situation) -> None:
    """Requests for the pod as a whole."""
    for item in found.nodes:
        item["status"]["allocatable"]["cpu"] = draw(st.sampled_from(["1", "2", "4"]))
    for item in [*found.pods, found.pod]:
        if draw(st.booleans()):
            spec = spec_of(item)
            spec["containers"] = [container("c0", cpu="100m"), container("c1")]
            spec["resources"] = {"requests": {"cpu": draw(st.sampled_from(["500m", "1", "2"]))}}
            spec.pop("initContainers", None)


def resized(draw: Draw, found: Situation) -> None:
    """Pods whose resize in place is under way: what the kubelet reports counts too."""
    for item in found.nodes:
        item["status"]["allocatable"]["cpu"] = draw(st.sampled_from(["2", "3"]))
    for item in found.pods:
        spec = spec_of(item)
        spec["containers"] = [container("c0", cpu=draw(st.sampled_from(["500m", "2"])))]
        spec.pop("initContainers", None)
        spec.pop("resources", None)
        spec.pop("overhead", None)
        spec.pop("runtimeClassName", None)
        actual = {"requests": {"cpu": draw(st.sampled_from(["1", "1500m"]))}}
        status = {"name": "c0", "image": "x", "imageID": "x", "ready": True, "restartCount": 0, "resources": actual}
        if draw(st.booleans()):
            status["allocatedResources"] = {"cpu": draw(st.sampled_from(["500m", "2"]))}
        item["status"] = {"phase": "Running", "containerStatuses": [status]}
        if chance(draw, 3):
            condition = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
            item["status"]["conditions"] = [condition]
    spec_of(found.pod)["containers"] = [container("c0", cpu=draw(st.sampled_from(["500m", "1", "1500m"])))]
    spec_of(found.pod).pop("resources", None)


def extended_resources(draw: Draw, found: Situation) -> None:
    """Devices, local storage and huge pages."""
    name = draw(st.sampled_from(["example.com/gadget", "ephemeral-storage", "hugepages-2Mi"]))
    amounts = {"example.com/gadget": ["0", "1", "2"], "hugepages-2Mi": ["0", "2Mi", "4Mi"]}.get(
        name, ["0", "1Gi", "2Gi"]
    )
    for item in found.nodes:
        amount = draw(st.sampled_from([*amounts, ""]))
        status = item["status"]
        status["allocatable"].pop(name, None)
        if amount:
            status["allocatable"][name] = amount
            status["capacity"] = {**status["capacity"], name: amount}
    for item in [*found.pods, found.pod]:
        if draw(st.booleans()) or item is found.pod:
            amount = draw(st.sampled_from(amounts))
            first = spec_of(item)["containers"][0]
            first["resources"].setdefault("requests", {}).setdefault("cpu", "1m")
            first["resources"]["requests"][name] = amount
            first["resources"]["limits"] = {name: amount}


def taints(draw: Draw, found: Situation) -> None:
    """Taints of all effects, tolerations of all operators."""
    taint = st.fixed_dictionaries(
        {
            "key": st.sampled_from(["k1", "k2"]),
            "value": st.sampled_from(["", "v1", "v2"]),
            "effect": st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
        }
    )
    for item in found.nodes:
        item["spec"]["taints"] = draw(st.lists(taint, max_size=2, unique_by=lambda t: (t["key"], t["effect"])))
    tolerations = []
    for _ in range(draw(st.integers(0, 2))):
        operator = draw(st.sampled_from(["Exists", "Equal", ""]))
        toleration = {
            "key": draw(st.sampled_from(["k1", "k2"])),
            "operator": operator,
            "effect": draw(st.sampled_from(["", "NoSchedule", "NoExecute", "PreferNoSchedule"])),
        }
        if operator != "Exists":
            toleration["value"] = draw(st.sampled_from(["", "v1", "v2"]))
        elif chance(draw, 3):
            toleration["key"] = ""
        tolerations.append(toleration)
    spec_of(found.pod)["tolerations"] = tolerations


def cordoned(draw: Draw, found: Situation) -> None:
    """Nodes that are unschedulable, and pods that do not mind."""
    for item in found.nodes:
        item["spec"]["unschedulable"] = draw(st.booleans())
    if chance(draw, 3):
        key = "node.kubernetes.io/unschedulable"
        spec_of(found.pod)["tolerations"] = [{"key": key, "operator": "Exists", "effect": "NoSchedule"}]


def node_affinity(draw: Draw, found: Situation) -> None:
    """nodeSelector and node affinity, required and preferred, with every operator."""
    for item in found.nodes:
        labels = item["metadata"]["labels"]
        for key, values in ((DISK, ["ssd", "hdd", ""]), (LEVEL, ["0", "3", "7", "high"])):
            value = draw(st.sampled_from([*values, None]))
            if value is not None:
                labels[key] = value
    spec = spec_of(found.pod)
    if draw(st.booleans()):
        spec["nodeSelector"][DISK] = draw(st.sampled_from(["ssd", "hdd", ""]))
    affinity: dict[str, Any] = {}
    if draw(st.booleans()):
        terms = [_node_term(draw, found) for _ in range(draw(st.integers(1, 2)))]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if draw(st.booleans()):
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": draw(st.integers(1, 100)), "preference": _node_term(draw, found)}
            for _ in range(draw(st.integers(1, 2)))
        ]
    if affinity:
        spec.setdefault("affinity", {})["nodeAffinity"] = affinity


def _node_term(draw: Draw, found: Situation) -> dict[str, Any]:
    term: dict[str, Any] = {}
    if chance(draw, 4):
        name = draw(st.sampled_from([item["metadata"]["name"] for item in found.nodes]))
        operator = draw(st.sampled_from(["In", "NotIn"]))
        term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [name]}]
    expressions = []
    for _ in range(draw(st.integers(0 if term else 1, 2))):
        operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
        key = LEVEL if operator in ("Gt", "Lt") else draw(st.sampled_from([DISK, LEVEL]))
        expression: dict[str, Any] = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            values = ["ssd", "hdd", ""] if key == DISK else ["3", "7", "high"]
            expression["values"] = draw(st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True))
        elif operator in ("Gt", "Lt"):
            expression["values"] = [draw(st.sampled_from(["0", "1", "3", "5"]))]
        expressions.append(expression)
    if expressions:
        term["matchExpressions"] = expressions
    return term


def host_ports(draw: Draw, found: Situation) -> None:
    """Ports on the nodes' addresses, with protocols, wildcards and sidecars."""
    for item in [*found.pods, found.pod]:
        spec = spec_of(item)
        target = draw(st.sampled_from([*spec["containers"], *_sidecars(spec)]))
        ports = [_port(draw) for _ in range(draw(st.integers(1, 2)))]
        distinct = {(port["hostPort"], port["protocol"], port.get("hostIP", "")): port for port in ports}
        target["ports"] = list(distinct.values())


def _sidecars(spec: Spec) -> list[dict[str, Any]]:
    return [item for item in spec.get("initContainers", []) if item.get("restartPolicy") == "Always"]


def _port(draw: Draw) -> dict[str, Any]:
    number = draw(st.sampled_from([8080, 8081]))
    port = {"containerPort": number, "hostPort": number, "protocol": draw(st.sampled_from(["TCP", "TCP", "UDP"]))}
    address = draw(st.sampled_from(["", "", "0.0.0.0", "10.0.0.1", "10.0.0.2"]))
    if address:
        port["hostIP"] = address
    return port


def pod_affinity(draw: Draw, found: Situation) -> None:
    """Affinity and anti-affinity between pods, required and preferred, of the new pod and of those there."""
    owners = [found.pod]
    owners += [item for item in found.pods if draw(st.booleans())]
    for item in owners:
        affinity = spec_of(item).setdefault("affinity", {})
        # Anti-affinity of existing pods and affinity of the new one are the interesting cases.
        kinds = ["podAntiAffinity"] if item is not found.pod else ["podAffinity", "podAntiAffinity"]
        for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=len(kinds), unique=True)):
            group: dict[str, Any] = {}
            new = item is found.pod
            if draw(st.booleans()):
                terms = [_pod_term(draw, new=new) for _ in range(draw(st.integers(1, 2)))]
                group["requiredDuringSchedulingIgnoredDuringExecution"] = terms
            if draw(st.booleans()):
                weighted = {"weight": draw(st.integers(1, 100)), "podAffinityTerm": _pod_term(draw, new=new)}
                group["preferredDuringSchedulingIgnoredDuringExecution"] = [weighted]
            affinity[kind] = group
    if found.pods and chance(draw, 2):
        own: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": [_pod_term(draw, new=False)]}
        spec_of(found.pods[0]).setdefault("affinity", {})["podAffinity"] = own


def _pod_term(draw: Draw, *, new: bool) -> dict[str, Any]:
    """A term; no NotIn in the new pod's namespaceSelector, which kube-scheduler 1.36 misreads (ADR 21)."""
    term: dict[str, Any] = {
        "topologyKey": draw(st.sampled_from([ZONE, RACK, "kubernetes.io/hostname"])),
        "labelSelector": selector_of(draw),
    }
    match draw(st.sampled_from(["", "", "names", "selector", "everywhere"])):
        case "names":
            term["namespaces"] = draw(st.sampled_from([["@-b"], ["@-a", "@-b"], ["@-none"]]))
        case "selector":
            operator = draw(st.sampled_from(["In"] if new else ["In", "NotIn"]))
            requirement = {
                "key": "@.test/team",
                "operator": operator,
                "values": [draw(st.sampled_from(["red", "blue"]))],
            }
            term["namespaceSelector"] = {"matchExpressions": [requirement]}
        case "everywhere":
            term["namespaceSelector"] = {}
    spoken = str(term["labelSelector"])
    if "version" not in spoken and chance(draw, 3):
        term[draw(st.sampled_from(["matchLabelKeys", "mismatchLabelKeys"]))] = ["version"]
    return term


def spread(draw: Draw, found: Situation) -> None:
    """Topology spread, hard and soft."""
    keys = draw(st.lists(st.sampled_from([ZONE, RACK]), min_size=1, max_size=2, unique=True))
    constraints = []
    for key in keys:
        hard = not chance(draw, 3)
        constraint: dict[str, Any] = {
            "topologyKey": key,
            "maxSkew": draw(st.integers(1, 2)),
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": draw(st.sampled_from([selector_of(draw), {"matchLabels": {"app": "x"}}, {}])),
        }
        if hard and draw(st.booleans()):
            constraint["minDomains"] = draw(st.integers(1, 3))
        if draw(st.booleans()):
            constraint["nodeAffinityPolicy"] = draw(st.sampled_from(["Honor", "Ignore"]))
        if draw(st.booleans()):
            constraint["nodeTaintsPolicy"] = draw(st.sampled_from(["Honor", "Ignore"]))
        if "version" not in str(constraint["labelSelector"]) and chance(draw, 3):
            constraint["matchLabelKeys"] = ["version"]
        constraints.append(constraint)
    spec_of(found.pod)["topologySpreadConstraints"] = constraints
    for item in found.pods:
        item["metadata"]["labels"] = labels_of(draw)
        item["metadata"]["namespace"] = draw(st.sampled_from(["@-a", "@-a", "@-a", "@-b"]))


def gates(draw: Draw, found: Situation) -> None:
    """Scheduling gates."""
    if draw(st.booleans()):
        spec_of(found.pod)["schedulingGates"] = [{"name": "example.com/not-yet"}]


TOPICS: dict[str, Callable[[Draw, Situation], None]] = {
    "resources": resources,
    "pod-level-resources": pod_level_resources,
    "resized": resized,
    "extended-resources": extended_resources,
    "taints": taints,
    "cordoned": cordoned,
    "node-affinity": node_affinity,
    "host-ports": host_ports,
    "pod-affinity": pod_affinity,
    "spread": spread,
    "gates": gates,
    "claims": claims,
    "zoned-volumes": zoned_volumes,
    "one-pod-claims": one_pod_claims,
    "csi-limits": csi_limits,
    "tracked-capacity": tracked_capacity,
    "disks": disks,
}

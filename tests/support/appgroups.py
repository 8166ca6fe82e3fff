"""AppGroups and their pods on a real cluster, as the appgroup controller's integration tests need them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import msgspec

from berth.api.appgroup import API_VERSION, PLURAL
from berth.api.labels import LABEL_APPGROUP, LABEL_WORKLOAD
from berth.network.groups import GroupKey
from controllers.appgroup.plan import plan_spec
from controllers.appgroup.pods import GroupPod, GroupPods
from controllers.appgroup.status import desired_status, read_status
from hack.harness.cluster import PATIENCE, bound_pod, eventually
from hack.localcluster import LocalCluster


class AppGroups:
    """The AppGroups of one namespace, as the administrator sees and changes them."""

    def __init__(self, cluster: LocalCluster, namespace: str) -> None:
        """Open a connection of its own."""
        self.namespace = namespace
        self._api = cluster.api()
        self._groups = f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}"
        self._pods = f"/api/v1/namespaces/{namespace}/pods"

    def reconnect(self) -> None:
        """Close the connection after the API server has gone; the next request opens another."""
        self._api.close()

    def apply(self, document: dict[str, Any]) -> dict[str, Any]:
        """Apply an AppGroup, its namespace and the server's fields replaced, and return it."""
        name = document["metadata"]["name"]
        body = {**document, "metadata": {"name": name, "namespace": self.namespace}}
        path = f"{self._groups}/{name}?fieldManager=test&force=true"
        answer: dict[str, Any] = self._api.request("PATCH", path, body, content_type="application/apply-patch+yaml")
        return answer

    def get(self, name: str = "boutique") -> dict[str, Any]:
        """Return an AppGroup."""
        answer: dict[str, Any] = self._api.request("GET", f"{self._groups}/{name}")
        return answer

    def writes_between(self, before: str, after: str, name: str = "boutique") -> int:
        """Return how often an AppGroup was written after one version of it and up to another."""
        query = f"watch=true&resourceVersion={before}&fieldSelector=metadata.name={name}&timeoutSeconds=1"
        status, _, content = self._api.raw("GET", f"{self._groups}?{query}")
        events = [json.loads(line) for line in content.splitlines()]
        assert status == HTTPStatus.OK, content
        assert {event["type"] for event in events} <= {"MODIFIED"}, content
        return sum(int(event["object"]["metadata"]["resourceVersion"]) <= int(after) for event in events)

    def all(self) -> list[dict[str, Any]]:
        """Return all AppGroups."""
        answer: list[dict[str, Any]] = self._api.request("GET", self._groups)["items"]
        return answer

    def delete(self, name: str) -> None:
        """Delete an AppGroup."""
        self._api.request("DELETE", f"{self._groups}/{name}")

    def create_pod(self, name: str, workload: str, *, group: str = "boutique", node: str = "") -> None:
        """Create a pod of a group, bound to ``node`` or waiting for a scheduler that does not exist."""
        pod = bound_pod(name, node)
        pod["metadata"]["labels"] = {LABEL_APPGROUP: group, LABEL_WORKLOAD: workload}
        if not node:
            pod["spec"] = {**pod["spec"], "schedulerName": "nobody"}
            del pod["spec"]["nodeName"]
        self._api.request("POST", self._pods, pod)

    def delete_pod(self, name: str) -> None:
        """Delete a pod without grace."""
        self._api.request("DELETE", f"{self._pods}/{name}", {"gracePeriodSeconds": 0})

    def pods(self) -> list[dict[str, Any]]:
        """Return all pods."""
        answer: list[dict[str, Any]] = self._api.request("GET", self._pods)["items"]
        return answer

    def wait_status(self, name: str = "boutique", *, timeout: float = PATIENCE, **expected: Any) -> dict[str, Any]:
        """Wait until the status has the expected fields and is that of the present spec; return the whole object."""

        def reached(document: dict[str, Any]) -> bool:
            status = document.get("status", {})
            current = status.get("observedGeneration") == document["metadata"]["generation"]
            return current and all(status.get(field) == value for field, value in expected.items())

        what = f"status of {name} with {expected or 'an order'}"
        return eventually(lambda: self.get(name), accept=reached, timeout=timeout, what=what)

    def wait_condition(self, condition_type: str, name: str = "boutique", **expected: Any) -> dict[str, Any]:
        """Wait until a condition of the present spec has the expected fields; return the whole object."""

        def reached(document: dict[str, Any]) -> bool:
            found = condition(document, condition_type)
            current = found.get("observedGeneration") == document["metadata"]["generation"]
            return current and all(found.get(field) == value for field, value in expected.items())

        return eventually(lambda: self.get(name), accept=reached, what=f"{condition_type} of {name} with {expected}")

    def settled(self) -> bool:
        """Return whether every status is what follows from the spec and the pods that the API server has now."""
        pods = GroupPods()
        for raw in self.pods():
            pods.update(None, msgspec.convert(raw, GroupPod))
        for document in self.all():
            metadata = document["metadata"]
            members = pods.of(GroupKey(metadata["namespace"], metadata["name"]))
            status = read_status(document)
            if desired_status(plan_spec(document), members, status, now=datetime.now(UTC)) != status:
                return False
        return True


def order_of(document: dict[str, Any]) -> str:
    """Return the selectors of an AppGroup's order by index, with spaces between, checking the indices."""
    entries = sorted(document["status"]["topologyOrder"], key=lambda entry: entry["index"])
    assert [entry["index"] for entry in entries] == list(range(1, len(entries) + 1))
    return " ".join(entry["workload"]["selector"] for entry in entries)


def condition(document: dict[str, Any], condition_type: str) -> dict[str, Any]:
    """Return the condition of a type, empty if it is not there."""
    conditions = document.get("status", {}).get("conditions", [])
    return next((item for item in conditions if item["type"] == condition_type), {})

"""A node with sockets on a real API server: its SocketStatus as the agent writes it, and pods that are on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.api.socketstatus import API_VERSION, CONDITION_PAIRED, KIND, PLACEMENT_MANAGER, PLURAL
from hack.harness.cluster import eventually
from tests.support.placing import Stage

OLD = "2026-01-31T12:00:00Z"
"""A time at which pods were assigned that may move again."""
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"


class SocketStand:
    """The node n1 of a stage with its SocketStatus."""

    def __init__(self, stage: Stage, *, sockets: int = 2, cpus: int = 2) -> None:
        """Make the node and its SocketStatus; `cpus` is for each socket."""
        self.stage = stage
        self.node = stage.nodes("n1")[0]
        self.path = f"/apis/{API_VERSION}/{PLURAL}/{self.node}"
        found = [
            {"socket": number, "cpus": f"{cpus * number}-{cpus * (number + 1) - 1}", "cpuCount": cpus}
            for number in range(sockets)
        ]
        self.apply({}, manager="berth-pinning")
        self.apply({"status": {"sockets": found}}, manager="berth-pinning")

    def close(self) -> None:
        """Delete the SocketStatus, and all else of the stage."""
        self.stage.api.raw("DELETE", self.path)
        self.stage.close()

    def apply(self, body: dict[str, Any], *, manager: str) -> None:
        """Apply a part of the SocketStatus."""
        head = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": self.node}}
        path = f"{self.path}{'/status' if 'status' in body else ''}?fieldManager={manager}&force=true"
        self.stage.api.request("PATCH", path, head | body, content_type=_APPLY)

    def pod(self, name: str, letter: str = "", **labels: str) -> str:
        """Make a pod that runs on the node, without assignment; returns its uid."""
        own = {LABEL_INTERFERENCE_CLASS: letter} if letter else {}
        return self.stage.pod(name, labels=own | labels, nodeName=self.node, cpu="100m")

    def entry(self, name: str, socket: int, *, uid: str = "", time: str = OLD) -> dict[str, Any]:
        """Assignment of a pod of the stage."""
        found = uid or self.stage.pods()[name]["metadata"]["uid"]
        return {"uid": found, "namespace": self.stage.name, "name": name, "socket": socket, "time": time}

    def assign(self, *entries: dict[str, Any], manager: str = PLACEMENT_MANAGER) -> None:
        """Apply assignments, as the placement controller does unless told otherwise."""
        self.apply({"spec": {"assignments": list(entries)}}, manager=manager)

    def place(self, *groups: Sequence[str], time: str = OLD) -> None:
        """Make pods and assign them by socket; the last letter of a name is its class."""
        for name in (name for group in groups for name in group):
            self.pod(name, name[-1].upper())
        self.assign(
            *[self.entry(name, number, time=time) for number, group in enumerate(groups) for name in group],
        )

    def edit(self, name: str, socket: int) -> None:
        """Change one socket, as ``kubectl edit`` does."""
        entries = self.get().get("spec", {}).get("assignments", [])
        changed = [each | {"socket": socket} if each["name"] == name else each for each in entries]
        path = f"{self.path}?fieldManager=kubectl-edit"
        self.stage.api.request("PATCH", path, {"spec": {"assignments": changed}}, content_type=_MERGE)

    # Looking

    def get(self) -> dict[str, Any]:
        """The SocketStatus."""
        found: dict[str, Any] = self.stage.api.request("GET", self.path)
        return found

    def assigned(self) -> dict[str, int]:
        """Socket by name of the pod."""
        return {each["name"]: each["socket"] for each in self.get().get("spec", {}).get("assignments", [])}

    def wait_assigned(self, *groups: Sequence[str]) -> None:
        """Wait until these pods and no others are assigned, whichever socket is which."""

        def grouped() -> set[frozenset[str]]:
            found = self.assigned()
            return {frozenset(name for name in found if found[name] == number) for number in found.values()}

        wanted = {frozenset(group) for group in groups if group}
        eventually(grouped, accept=lambda found: found == wanted, what="assignments")

    def condition(self) -> dict[str, Any]:
        """The condition Paired; empty without one."""
        conditions = self.get().get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == CONDITION_PAIRED), {})

    def wait_condition(self, status: str, reason: str, text: str = "") -> str:
        """Wait for the condition Paired; returns its message."""
        found = eventually(
            self.condition,
            accept=lambda found: (
                (found.get("status"), found.get("reason")) == (status, reason) and text in found["message"]
            ),
            what=f"Paired {status} {reason} {text!r}",
        )
        return str(found["message"])

    def events(self, reason: str) -> list[str]:
        """Notes of the Events about the SocketStatus."""
        items = self.stage.api.request("GET", "/apis/events.k8s.io/v1/events")["items"]
        return [
            item["note"]
            for item in items
            if (item["regarding"]["kind"], item["regarding"]["name"], item["reason"]) == (KIND, self.node, reason)
        ]

"""What ``kubectl get nodes,pods -A -o json`` prints of a large cluster."""

from __future__ import annotations

from typing import Any

PODS_PER_DEPLOYMENT = 50
ZONES = 6
SCHEDULER = "berth-scheduler"


def snapshot(*, nodes: int, pods: int, waiting: int) -> dict[str, Any]:
    """A List of nodes and pods, each pod with the labels and the owner of one of many Deployments.

    Args:
        nodes: nodes, spread over zones.
        pods: pods in all; those that run are spread evenly.
        waiting: how many of them have no node.
    """
    items = [_node(number) for number in range(nodes)]
    items += (_pod(number, "" if number < waiting else f"node-{number % nodes}") for number in range(pods))
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _node(number: int) -> dict[str, Any]:
    labels = {
        "kubernetes.io/hostname": f"node-{number}",
        "topology.kubernetes.io/zone": f"zone-{number % ZONES}",
        "topology.kubernetes.io/region": "region-0",
    }
    room = {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "labels": labels, "uid": f"node-{number}"},
        "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _app(deployment: int) -> dict[str, str]:
    return {"app": f"web-{deployment}"}


def _statuses(number: int) -> list[dict[str, Any]]:
    """What a kubelet reports."""
    return [
        {
            "name": "main",
            "containerID": f"containerd://{number:064x}",
            "image": "registry.example/web:1.0",
            "imageID": f"registry.example/web@sha256:{7:064x}",
            "ready": True,
            "restartCount": 0,
            "started": True,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            "lastState": {},
        }
    ]


def _spec(number: int) -> dict[str, Any]:
    token = f"kube-api-access-{number:05x}"
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    return {
        "volumes": [{"name": token, "projected": {"defaultMode": 420, "sources": sources}}],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "schedulerName": SCHEDULER,
        "serviceAccountName": "default",
        "priority": 0,
        "containers": [
            {
                "name": "main",
                "image": "registry.example/web:1.0",
                "env": [{"name": f"SETTING_{number}", "value": "some value"} for number in range(8)],
                "imagePullPolicy": "IfNotPresent",
                "volumeMounts": [
                    {"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
                ],
                "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
                "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            }
        ],
        "tolerations": [
            {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for name in ("not-ready", "unreachable")
        ],
    }


def _pod(number: int, node: str) -> dict[str, Any]:
    deployment = number // PODS_PER_DEPLOYMENT
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"web-{deployment}-7d9f8b6c5-{number:05}",
            "namespace": f"team-{deployment % 20}",
            "uid": f"pod-{number}",
            "labels": {**_app(deployment), "pod-template-hash": "7d9f8b6c5"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": f"web-{deployment}-7d9f8b6c5", "uid": f"{deployment}"}],
        },
        "spec": _spec(number) | ({"nodeName": node} if node else {}),
        "status": {
            "phase": "Running" if node else "Pending",
            "hostIP": "10.0.0.1",
            "podIP": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
            "qosClass": "Burstable",
            "startTime": "2026-01-01T00:00:00Z",
            "containerStatuses": _statuses(number) if node else [],
            "conditions": [
                {"type": name, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                for name in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
        },
    }

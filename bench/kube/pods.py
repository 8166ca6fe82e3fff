"""Pods as an API server sends them: Online Boutique's, with everything that Berth does not read."""

from __future__ import annotations

import json
from typing import Any

STAMP = "2026-01-01T00:00:00Z"
WORKLOADS = (
    "frontend",
    "cart",
    "checkout",
    "currency",
    "email",
    "payment",
    "catalog",
    "ads",
    "shipping",
    "redis",
    "load",
)


def managed_fields() -> list[dict[str, Any]]:
    """Who wrote which field: the largest part of a real pod."""
    container: dict[str, Any] = {
        ".": {},
        "f:env": {".": {}, **{f'k:{{"name":"V{n}"}}': {".": {}, "f:name": {}, "f:value": {}} for n in range(8)}},
        "f:image": {},
        "f:imagePullPolicy": {},
        "f:livenessProbe": {".": {}, "f:failureThreshold": {}, "f:grpc": {}},
        "f:name": {},
        "f:ports": {".": {}, 'k:{"containerPort":8080,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
        "f:readinessProbe": {".": {}, "f:failureThreshold": {}, "f:periodSeconds": {}},
        "f:resources": {
            ".": {},
            "f:limits": {".": {}, "f:cpu": {}, "f:memory": {}},
            "f:requests": {".": {}, "f:cpu": {}},
        },
        "f:securityContext": {".": {}, "f:capabilities": {}, "f:readOnlyRootFilesystem": {}},
    }
    spec = {"f:containers": {'k:{"name":"server"}': container}, "f:dnsPolicy": {}, "f:restartPolicy": {}}
    conditions: dict[str, Any] = {
        f'k:{{"type":"{kind}"}}': {".": {}, "f:status": {}} for kind in ("Ready", "Initialized", "PodScheduled")
    }
    status = {"f:conditions": conditions, "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIP": {}}
    entry = {"operation": "Update", "apiVersion": "v1", "time": STAMP, "fieldsType": "FieldsV1"}
    return [
        {"manager": "kube-controller-manager", **entry, "fieldsV1": {"f:metadata": {"f:labels": {}}, "f:spec": spec}},
        {"manager": "kubelet", **entry, "subresource": "status", "fieldsV1": {"f:status": status}},
    ]


def pod(number: int, *, version: int = 1) -> dict[str, Any]:
    """Pod number `number`, Running on one of 1000 nodes."""
    workload = WORKLOADS[number % len(WORKLOADS)]
    owner = f"{workload}-{number % 5500:x}c9b7f6"
    mount = {
        "name": "kube-api-access-x2x7k",
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    probe = {"grpc": {"port": 8080, "service": ""}, "timeoutSeconds": 1, "periodSeconds": 10, "failureThreshold": 3}
    toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": f"{owner}-{number:05x}",
            "generateName": f"{owner}-",
            "namespace": f"boutique-{number // 11 % 500:03d}",
            "uid": f"0b5b9c1e-1b1a-4c58-9f5d-{number:012x}",
            "resourceVersion": str(1_000_000 + number + version),
            "creationTimestamp": STAMP,
            "labels": {
                "app": workload,
                "pod-template-hash": f"{number % 5500:x}c9b7f6",
                "app-group.diktyo.x-k8s.io": "online-boutique",
                "app-group.diktyo.x-k8s.io.workload": workload,
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owner,
                    "uid": f"aaaa-{number % 5500}",
                    "controller": True,
                }
            ],
            "managedFields": managed_fields(),
        },
        "spec": {
            "volumes": [
                {
                    "name": "kube-api-access-x2x7k",
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                        ],
                        "defaultMode": 420,
                    },
                }
            ],
            "containers": [
                {
                    "name": "server",
                    "image": f"registry.example/online-boutique/{workload}:v0.10.2",
                    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                    "env": [{"name": f"V{n}", "value": f"service-{n}:7070"} for n in range(8)],
                    "resources": {
                        "limits": {"cpu": "200m", "memory": "128Mi"},
                        "requests": {"cpu": "100m", "memory": "64Mi"},
                    },
                    "volumeMounts": [mount],
                    "livenessProbe": probe,
                    "readinessProbe": probe,
                    "terminationMessagePath": "/dev/termination-log",
                    "imagePullPolicy": "IfNotPresent",
                    "securityContext": {"capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True},
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 5,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "nodeName": f"node-{number % 1000:04d}",
            "securityContext": {"fsGroup": 1000, "runAsNonRoot": True},
            "schedulerName": "berth-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", **toleration},
                {"key": "node.kubernetes.io/unreachable", **toleration},
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": STAMP}
                for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "hostIP": "10.0.0.1",
            "podIP": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
            "startTime": STAMP,
            "containerStatuses": [
                {
                    "name": "server",
                    "state": {"running": {"startedAt": STAMP}},
                    "ready": True,
                    "restartCount": 0,
                    "image": f"registry.example/online-boutique/{workload}:v0.10.2",
                    "imageID": f"registry.example/online-boutique/{workload}@sha256:{number % 11:064x}",
                    "containerID": f"containerd://{number:064x}",
                    "started": True,
                }
            ],
            "qosClass": "Burstable",
        },
    }


def line(number: int, *, kind: str = "MODIFIED", version: int = 2) -> bytes:
    """A line of a watch about that pod."""
    return json.dumps({"type": kind, "object": pod(number, version=version)}, separators=(",", ":")).encode()

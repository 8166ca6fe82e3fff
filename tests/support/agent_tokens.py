"""Clients with the token that the kubelet gives a node agent's pod."""

from __future__ import annotations

from typing import Any

from hack.localcluster import LocalCluster
from hack.localcluster.rest import Api


def agent_token(cluster: LocalCluster, node: str | None, *, namespace: str, account: str = "berth-node") -> str:
    """Return the token of an agent's pod on a node; of no pod for None.

    The pod is made, and the account of the namespace has to be there.
    """
    api = cluster.api()
    spec: dict[str, Any] = {"expirationSeconds": 3600}
    if node is not None:
        pod = {
            "metadata": {"name": f"{account}-on-{node}"},
            "spec": {
                "nodeName": node,
                "serviceAccountName": account,
                "containers": [{"name": "agent", "image": "berth"}],
            },
        }
        metadata = api.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)["metadata"]
        spec["boundObjectRef"] = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    answer = api.request("POST", path, {"spec": spec})
    api.close()
    token: str = answer["status"]["token"]
    return token


def agent_api(cluster: LocalCluster, node: str | None, *, namespace: str, account: str = "berth-node") -> Api:
    """Return a client with such a token; see :func:`agent_token`."""
    return cluster.api(token=agent_token(cluster, node, namespace=namespace, account=account))

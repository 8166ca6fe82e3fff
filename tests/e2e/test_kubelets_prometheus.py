"""Costs by way of Prometheus: a real one scrapes agents on real nodes as the documentation says, and is asked over TLS.

Left out: other meters (tests/integration/test_prometheus_presets.py).
"""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.harness.cluster import REPOSITORY, eventually
from hack.localcluster import LocalCluster
from hack.localcluster.kubelets import packages
from hack.localcluster.kubelets.network import enter
from tests.support.berth_nodes import (
    CONTROLLERS,
    DELAY_MILLISECONDS,
    NAMESPACE,
    NODES,
    all_near,
    changed,
    far_zones,
    roll_out,
    topology,
    zone_costs,
)
from tests.support.costs import condition
from tests.support.placing import Stage
from tests.support.prometheus_process import prometheus
from tests.support.real_nodes import address_of, delayed, real_node

pytestmark = pytest.mark.timeout(600)

PAGE = REPOSITORY / "docs" / "operations" / "node-agent.md"
HOST = "node-1"
"""Node that Prometheus runs on: pods reach it there, and it them."""
PORT = 9090
TOLERANCE = 40
"""Difference of costs of moments that differ by half a minute, on a busy machine: 4 ms."""
ACCOUNT = ("monitoring", "prometheus")
CONTROLLER = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/berth-networktopology"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
"""A token that every pod has; Prometheus takes no notice of it."""


@dataclass(frozen=True)
class Server:
    """A Prometheus."""

    url: str
    """its address, by https"""
    certificate: Path
    """its certificate, which it has signed itself"""

    def vector(self, promql: str) -> list[dict[str, Any]]:
        """Elements of an instant vector; none while it does not answer."""
        query = f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': promql})}"
        trusted = ssl.create_default_context(cafile=str(self.certificate))
        try:
            with urllib.request.urlopen(query, timeout=5, context=trusted) as answer:
                found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        except OSError:
            return []
        return found


def documented(targets: Path) -> dict[str, Any]:
    """The documented configuration with targets from a file: Debian's Prometheus cannot ask an API server."""
    (block,) = re.findall(r"^```yaml\n(scrape_configs:.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    found: dict[str, Any] = yaml.safe_load(block)
    (job,) = found["scrape_configs"]
    assert job.pop("kubernetes_sd_configs") == [{"role": "pod", "namespaces": {"names": [NAMESPACE]}}]
    job["file_sd_configs"] = [{"files": [str(targets)]}]
    return {"global": {"scrape_interval": "2s", "scrape_timeout": "2s"}, **found}


def discovered(cluster: LocalCluster, kubeconfig: Path) -> list[dict[str, Any]]:
    """Targets as a Prometheus in the cluster discovers them with the role ``pod``."""
    answer = cluster.kubectl("-n", NAMESPACE, "get", "pods", "-ojson", kubeconfig=kubeconfig)
    found = []
    for pod in json.loads(answer.stdout)["items"]:
        meta = {
            "__meta_kubernetes_pod_name": pod["metadata"]["name"],
            "__meta_kubernetes_pod_node_name": pod["spec"]["nodeName"],
            "__meta_kubernetes_pod_ip": pod["status"]["podIP"],
        }
        for name, value in pod["metadata"]["annotations"].items():
            meta[f"__meta_kubernetes_pod_annotation_{re.sub('[^a-zA-Z0-9]', '_', name)}"] = value
        found.append({"targets": [pod["status"]["podIP"]], "labels": meta})
    return found


def account(cluster: LocalCluster) -> Path:
    """Kubeconfig of an account with the rights that the documentation names."""
    namespace, name = ACCOUNT
    metadata = {"name": name, "namespace": NAMESPACE}
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    items = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [subject],
        },
    ]
    cluster.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return cluster.service_account_kubeconfig(namespace, name)


@pytest.fixture(scope="module")
def server(deployed: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Prometheus on a node."""
    directory = tmp_path_factory.mktemp("prometheus")
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl for the certificate of Prometheus")
    address = address_of(deployed, HOST)
    certificate, key = directory / "tls.crt", directory / "tls.key"
    request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=prometheus"]
    request += ["-addext", f"subjectAltName=IP:{address}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *request], check=True, capture_output=True)
    web = directory / "web.json"
    web.write_text(json.dumps({"tls_server_config": {"cert_file": str(certificate), "key_file": str(key)}}))
    roll_out(deployed)
    targets = directory / "targets.json"
    targets.write_text(json.dumps(discovered(deployed, account(deployed))))
    config = documented(targets)
    inside = [str(packages.locate("nsenter")), *enter(real_node(deployed, HOST))[1:]]
    with prometheus(directory, config, f"{address}:{PORT}", f"--web.config.file={web}", inside=inside):
        yield Server(f"https://{address}:{PORT}", certificate)


def test_it_finds_and_scrapes_all_parts_on_all_nodes(server: Server) -> None:
    def targets() -> dict[str, str]:
        """Those of parts that are always there: the latency controller is where tests of it have come before."""
        return {
            item["metric"]["pod"]: item["metric"]["node"]
            for item in server.vector("up")
            if item["value"][1] == "1" and not item["metric"]["pod"].startswith("berth-latency-")
        }

    found = eventually(
        targets, accept=lambda seen: len(seen) == len(NODES) + 2 * len(CONTROLLERS), what="targets", timeout=60.0
    )
    assert sorted(node for pod, node in found.items() if pod.startswith("berth-node-")) == sorted(NODES)
    pairs = eventually(
        lambda: {
            (item["metric"]["origin"], item["metric"]["destination"])
            for item in server.vector("netperf_p90_latency_microseconds")
        },
        accept=lambda seen: len(seen) == len(NODES) * (len(NODES) - 1),
        what="pairs of nodes",
        timeout=60.0,
    )
    assert pairs == {(one, other) for one in NODES for other in NODES if one != other}


@pytest.fixture
def asking(stage: Stage, server: Server) -> Iterator[None]:
    """The controller asks that Prometheus."""
    cluster = stage.cluster
    cluster.kubectl("-n", NAMESPACE, "create", "configmap", "prometheus", f"--from-file=ca.crt={server.certificate}")
    template = "/spec/template/spec"
    settings = {"url": server.url, "ca-file": "/prometheus/ca.crt", "token-file": TOKEN}
    operations: list[dict[str, Any]] = [
        {
            "op": "add",
            "path": f"{template}/volumes",
            "value": [{"name": "prometheus", "configMap": {"name": "prometheus"}}],
        },
        {
            "op": "add",
            "path": f"{template}/containers/0/volumeMounts",
            "value": [{"name": "prometheus", "mountPath": "/prometheus"}],
        },
        *(
            {"op": "add", "path": f"{template}/containers/0/args/-", "value": f"--prometheus-{name}={value}"}
            for name, value in settings.items()
        ),
    ]
    with changed(cluster, CONTROLLER, *operations):
        arguments = ("rollout", "status", "deployment/berth-networktopology", "--timeout=120s")
        cluster.kubectl("-n", NAMESPACE, *arguments, timeout=150)
        yield
    cluster.kubectl("-n", NAMESPACE, "delete", "configmap", "prometheus")


@pytest.mark.usefixtures("asking")
def test_costs_from_prometheus_are_those_of_the_reports(stage: Stage) -> None:
    """By TLS with a certificate of one's own, and with a token."""
    eventually(lambda: all_near(stage), what="costs of reports", timeout=240.0)
    chosen = {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "scraped", "annotations": {"berth.dev/source": "prometheus"}},
        "spec": {"configmapName": "", "weights": []},
    }
    stage.cluster.kubectl("-n", stage.name, "apply", "-f", "-", input=json.dumps(chosen))
    source = eventually(
        lambda: condition(topology(stage, "scraped"), "SourceAvailable"),
        accept=lambda found: found.get("status") == "True",
        what="an answer of Prometheus",
        timeout=90.0,
    )
    assert (source["reason"], source["message"]) == ("PrometheusRead", "Prometheus (netperf)")
    eventually(lambda: all_near(stage, "scraped"), what="costs from Prometheus")
    assert topology(stage, "scraped")["status"]["source"] == "prometheus"
    with delayed(stage.cluster, "node-3", DELAY_MILLISECONDS):
        for name in ("net", "scraped"):
            eventually(
                lambda name=name: far_zones(stage, name) == {"local-c"},  # type: ignore[misc]
                what=f"a delay in {name}",
                timeout=120.0,
            )
        costs = {name: zone_costs(stage, name) for name in ("net", "scraped")}
    assert costs["scraped"] == pytest.approx(costs["net"], abs=TOLERANCE)

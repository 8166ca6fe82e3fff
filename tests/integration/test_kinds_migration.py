"""What docs/operations/migration.md promises of objects that upstream's definition has stored."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from hack.harness.cluster import REPOSITORY, Kubectl, eventually
from hack.localcluster import LocalCluster
from tests.support.kinds import app_group, ref, workload

CRD = REPOSITORY / "crds" / "appgroup.diktyo.x-k8s.io_appgroups.yaml"
PAGE = REPOSITORY / "docs" / "operations" / "migration.md"
SHOP = app_group(workload("a", "b", "c", minBandwidth="10M"), workload("b"), workload("c"), numMembers=7)


def upstreams() -> dict[str, Any]:
    """Our definition with what upstream's differs in: maxNetworkCost is 0 by default, the status is no subresource."""
    crd: dict[str, Any] = yaml.safe_load(CRD.read_text())
    (version,) = crd["spec"]["versions"]
    del version["subresources"], version["additionalPrinterColumns"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]
    entry = fields["spec"]["properties"]["workloads"]["items"]["properties"]
    entry["dependencies"]["items"]["properties"]["maxNetworkCost"]["default"] = 0
    kept = {"runningWorkloads", "scheduleStartTime", "topologyCalculationTime", "topologyOrder"}
    status = fields["status"]["properties"]
    fields["status"]["properties"] = {name: value for name, value in status.items() if name in kept}
    return crd


def limits(group: dict[str, Any]) -> list[int | None]:
    entries = group["spec"]["workloads"]
    return [edge.get("maxNetworkCost") for entry in entries for edge in entry.get("dependencies", [])]


def established(cluster: LocalCluster, *command: str, **more: Any) -> None:
    cluster.kubectl(*command, **more)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/appgroups.appgroup.diktyo.x-k8s.io")


@pytest.mark.skipif(shutil.which("jq") is None, reason="the page's command needs jq")
def test_stored_objects_stay_and_the_command_of_the_page_lifts_limits_of_zero(
    fresh_cluster: Callable[..., LocalCluster],
) -> None:
    cluster = fresh_cluster(crds=False, kwok=False)
    kubectl = Kubectl(cluster, "default")
    theirs, apply = json.dumps(upstreams()), ("apply", "--server-side", "--force-conflicts", "-f")
    established(cluster, "create", "-f", "-", input=theirs)
    order = [{"workload": ref("a"), "index": 1}, {"workload": ref("b")}, {"index": 3}]
    stored = {**SHOP, "status": {"runningWorkloads": 3, "topologyOrder": order}}
    kubectl("create", "-f", "-", input=json.dumps(stored))
    # Both definitions take an object without spec.
    kubectl("create", "-f", "-", input=json.dumps({**SHOP, "metadata": {"name": "empty"}, "spec": None}))
    before = kubectl.get("ag", "shop")
    assert limits(before) == [0, 0]
    assert before["status"] == stored["status"]

    established(cluster, *apply, str(CRD.parent))
    after = eventually(lambda: kubectl.get("ag", "shop"), what="the object by our definition")
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])
    # No limit is filled in any more, and writes of whole objects lose their status.
    eventually(lambda: limits(created(kubectl)) == [None, None], what="our definition in force")
    kubectl("replace", "-f", "-", input=json.dumps({**after, "status": {"runningWorkloads": 9}}))
    assert kubectl.get("ag", "shop")["status"] == before["status"]
    # Upstream's controller may go on writing the order as its own definition has it.
    for written in ([{"workload": ref("c")}, {"index": 1}], order):
        patch = json.dumps({"status": {"topologyOrder": written}})
        kubectl("patch", "ag", "shop", "--subresource=status", "--type=merge", "-p", patch)
        assert kubectl.get("ag", "shop")["status"]["topologyOrder"] == written

    [command] = re.findall(r"^kubectl get ag .*? \| kubectl replace -f -$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    _, program, _ = command.split("'")
    listed = kubectl("get", "ag", "-A", "-o", "json")
    lifted = subprocess.run(["jq", program], input=listed, check=True, capture_output=True, text=True).stdout
    kubectl("replace", "-f", "-", input=lifted)
    done = kubectl.get("ag", "shop")
    assert limits(done) == [None, None]
    assert done["status"] == before["status"]
    assert done["spec"]["numMembers"] == SHOP["spec"]["numMembers"]

    established(cluster, *apply, "-", input=theirs)
    eventually(lambda: limits(created(kubectl)) == [0, 0], what="upstream's definition in force again")


def created(kubectl: Kubectl) -> dict[str, Any]:
    """Another AppGroup as it would be stored."""
    document = {**SHOP, "metadata": {"name": "new"}}
    answer = kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(document))
    return dict(json.loads(answer))

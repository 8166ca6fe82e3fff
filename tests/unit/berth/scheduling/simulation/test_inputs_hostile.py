"""Whatever stands in a field of a manifest: it is read, or a problem names object and field, and others stay."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from berth.kube.resources import CONFIGMAPS
from berth.scheduling.simulation.inputs import READ, assemble
from berth.scheduling.simulation.manifests import Source, read_documents
from berth.scheduling.simulation.workloads import WORKLOAD_KINDS
from tests.support import plans
from tests.support.documents import HOSTILE, Path, full, paths, replaced


def _manifests() -> list[dict[str, Any]]:
    """One object of each kind that a plan reads, with an entry in every list and map."""
    group, network = plans.appgroup("shop", {"web": ["db"], "db": []}), plans.topology({("z1", "z2"): 5})
    found = [group, network]
    for resource in (*READ, CONFIGMAPS):
        if resource.kind in plans.FORECASTS:
            continue
        body = full(inspect.type_info(resource.type))
        body["metadata"]["name"] = "it"
        prefix = f"{resource.group}/" if resource.group else ""
        found.append({**body, "apiVersion": f"{prefix}v1", "kind": resource.kind})
    template = next(item for item in found if item["kind"] == "Pod")
    for api_group, kind in WORKLOAD_KINDS:
        pods = {"replicas": 2, "selector": {"matchLabels": {"key": "1"}}, "template": template}
        spec = {**pods, "jobTemplate": {"spec": pods}, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
        version = f"{api_group}/v1" if api_group else "v1"
        found.append({"apiVersion": version, "kind": kind, "metadata": {"name": "it"}, "spec": spec})
    return found


MANIFESTS = _manifests()
PATHS: list[list[Path]] = [
    [path for path in paths(item) if path and path[0] not in ("apiVersion", "kind")] for item in MANIFESTS
]


@settings(max_examples=400, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(which=st.integers(0, len(MANIFESTS) - 1), data=st.data())
def test_a_field_that_makes_no_sense_is_read_or_named(which: int, data: st.DataObject) -> None:
    """Beside it stands a pod that has nothing to do with it."""
    path = data.draw(st.sampled_from(PATHS[which]))
    odd = replaced(MANIFESTS[which], path, data.draw(st.sampled_from(HOSTILE)))
    documents, broken = read_documents([Source("odd", json.dumps(odd)), Source("good", plans.text(plans.pod("other")))])
    inputs, problems = assemble(documents, now="2026-01-01T00:00:00Z", forecasts=plans.FORECASTS)
    assert "other" in [pod.metadata.name for pod in inputs.of("Pod")]
    assert not [problem for problem in (*broken, *problems) if problem.source != "odd"]
    assert all(f": {odd['kind']} " in str(problem) for problem in (*broken, *problems))

"""The sidecar's manifest on a real API server: it is taken as it stands, and without warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

EXAMPLE = Path(__file__).parents[2] / "examples" / "meter" / "deployment.yaml"
PATHS = {"Deployment": "/apis/apps/v1/namespaces/default/deployments", "Service": "/api/v1/namespaces/default/services"}


def test_it_is_taken(module_cluster: Any) -> None:
    api = module_cluster().api()
    try:
        for document in yaml.safe_load_all(EXAMPLE.read_text()):
            stored = api.request("POST", f"{PATHS[document['kind']]}?fieldValidation=Strict", document)
            if document["kind"] == "Deployment":
                [meter] = stored["spec"]["template"]["spec"]["initContainers"]
                assert meter["restartPolicy"] == "Always"
                web = stored["spec"]["template"]["spec"]["containers"][0]
                assert web["lifecycle"]["preStop"]["sleep"] == {"seconds": 5}
    finally:
        api.close()

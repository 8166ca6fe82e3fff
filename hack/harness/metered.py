"""The example of a meter as it runs on real nodes here, where Berth's image is the only one that has a program."""

from __future__ import annotations

from typing import Any, Final

import yaml

from hack.localcluster.paths import REPOSITORY

APPLICATION: Final = """
import http.server, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
http.server.test(http.server.SimpleHTTPRequestHandler, http.server.ThreadingHTTPServer, port=8080)
"""
"""An application in that image; as first process of a container it would not end by SIGTERM otherwise."""


def metered(name: str, *, scheduler: str) -> list[dict[str, Any]]:
    """The Deployment of ``examples/meter`` and its Service.

    Args:
        name: of both.
        scheduler: schedulerName of the pods.
    """
    text = (REPOSITORY / "examples" / "meter" / "deployment.yaml").read_text()
    deployment, service = yaml.safe_load_all(text)
    labels = {"app": name}
    for item in (deployment, service):
        item["metadata"] |= {"name": name, "labels": labels}
    service["spec"]["selector"] = deployment["spec"]["selector"]["matchLabels"] = labels
    deployment["spec"]["template"]["metadata"]["labels"] = dict(labels)
    pod = deployment["spec"]["template"]["spec"]
    pod["schedulerName"] = scheduler
    [web] = pod["containers"]
    web |= {"image": pod["initContainers"][0]["image"], "command": ["/opt/berth/bin/python", "-c", APPLICATION]}
    web |= {"args": [], "workingDir": "/opt/berth/bin"}
    web["readinessProbe"] |= {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1}
    return [deployment, service]

"""The example of a meter as it runs on real nodes here, where Berth's image is the only one that has a program."""

from __future__ import annotations

from typing import Any, Final

import yaml

from hack.localcluster.paths import REPOSITORY

SERVED_BY: Final = "Served-By"
"""Field of its answers that names its node."""
POSTED: Final = "POSTED"
"""Variable with the name of the file to which it adds what is posted; unset: nothing can be."""
POST_SECONDS: Final = 0.2
"""Seconds that it then takes to answer: who is killed has something under way."""
APPLICATION: Final = f"""
import http.server, os, signal, sys, time
class Handler(http.server.SimpleHTTPRequestHandler):
    def end_headers(self):
        self.send_header("{SERVED_BY}", os.environ["NODE_NAME"])
        super().end_headers()
    def do_POST(self):
        with open(os.environ["{POSTED}"], "ab") as file:
            file.write(self.rfile.read(int(self.headers["Content-Length"])) + b"\\n")
        time.sleep({POST_SECONDS})
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
http.server.test(Handler, http.server.ThreadingHTTPServer, port=8080)
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
    node = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    web |= {"args": [], "workingDir": "/opt/berth/bin", "env": [node]}
    web["readinessProbe"] |= {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1, "timeoutSeconds": 5}
    return [deployment, service]

"""A process that speaks to the API server as pods do, by the files of a service account.

It does without the library that reads kubeconfigs, which takes more memory than many components do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from hack.localcluster import LocalCluster

_MODULE: Final = """
import os, pathlib, sys
if sys.orig_argv[1:2] == ["-c"]:  # the component, and not who starts it
    from berth.kube import connection
    connection.SERVICE_ACCOUNT = pathlib.Path(os.environ["POD_ACCOUNT"])
"""


class PodAccount(NamedTuple):
    """The files and variables of a pod."""

    token: Path
    """file with the token"""
    environment: dict[str, str]
    """variables that the process is to have"""


def pod_account(cluster: LocalCluster, directory: Path, token: str | None = None) -> PodAccount:
    """Write the files of an account.

    Args:
        cluster: whose API server it is.
        directory: where they go.
        token: of whom; None: of the administrator.
    """
    account, server = directory / "serviceaccount", urlsplit(cluster.server)
    account.mkdir(parents=True)
    (account / "token").write_text(token or cluster.token)
    (account / "ca.crt").write_bytes(cluster.ca_file.read_bytes())
    (directory / "sitecustomize.py").write_text(_MODULE)
    return PodAccount(
        account / "token",
        {
            "PYTHONPATH": str(directory),
            "POD_ACCOUNT": str(account),
            "KUBERNETES_SERVICE_HOST": str(server.hostname),
            "KUBERNETES_SERVICE_PORT": str(server.port),
        },
    )

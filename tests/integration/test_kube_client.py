"""The client's verbs, refusals, repetitions and credentials against a real API server."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.connection import load_connection
from berth.kube.errors import ApiError
from berth.kube.resources import CONFIGMAPS, LEASES, NAMESPACES, PODS, Resource
from hack.localcluster import LocalCluster
from hack.localcluster.components import Options
from tests.support.kube import client_of, config_map

CERTIFICATES = Path(__file__).resolve().parents[1] / "data" / "client-certificate"


class TestVerbs:
    async def test_create_get_replace_patch_apply_delete(self, cluster: LocalCluster, namespace: str) -> None:
        async with client_of(cluster) as client:
            await client.create(CONFIGMAPS, config_map("a", k="1"), namespace=namespace)
            assert (await client.get(CONFIGMAPS, "a", namespace=namespace)).data == {"k": "1"}
            await client.replace(CONFIGMAPS, "a", config_map("a", k="2"), namespace=namespace)
            await client.merge_patch(CONFIGMAPS, "a", {"data": {"l": "3", "k": None}}, namespace=namespace)
            answer = await client.apply(
                CONFIGMAPS, "a", config_map("a", m="4"), field_manager="berth-test", namespace=namespace
            )
            assert msgspec.json.decode(answer)["data"] == {"l": "3", "m": "4"}
            await client.delete(CONFIGMAPS, "a", namespace=namespace)
            await client.delete(CONFIGMAPS, "a", namespace=namespace)  # gone already is fine
            assert "a" not in {item.metadata.name for item in await client.list_all(CONFIGMAPS, namespace=namespace)}

    async def test_apply_takes_a_field_over_from_somebody_else(self, cluster: LocalCluster, namespace: str) -> None:
        async with client_of(cluster) as client:
            for manager, value in (("one", "1"), ("two", "2")):
                body = config_map("a", k=value)
                answer = await client.apply(CONFIGMAPS, "a", body, field_manager=manager, namespace=namespace)
        assert msgspec.json.decode(answer)["data"] == {"k": "2"}

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("\x7f", id="DEL"),
            pytest.param("\x80 \x9b31m \x9f", id="C1 control characters"),
            pytest.param("a\x85b", id="NEL, a line break of YAML"),
            pytest.param("a \u2028 b\u2029c", id="line and paragraph separators, too"),
            pytest.param("\ufeffa\ufeff", id="byte order marks"),
            pytest.param("\ufffe\uffff", id="no characters"),
            pytest.param("a\r\n\tb \x00\x1b[31m", id="what JSON escapes itself"),
            pytest.param('\\u0085 \\\x85 \\\\ " \U0001f6a2 \ue000', id="backslashes and emoji"),
        ],
    )
    async def test_apply_writes_what_is_a_command_or_a_line_break_for_yaml(
        self, cluster: LocalCluster, namespace: str, text: str
    ) -> None:
        async with client_of(cluster) as client:
            body = config_map("a", k=text)
            answer = await client.apply(CONFIGMAPS, "a", body, field_manager="berth-test", namespace=namespace)
        assert msgspec.json.decode(answer)["data"] == {"k": text}

    async def test_list_with_selectors(self, cluster: LocalCluster, namespace: str) -> None:
        async with client_of(cluster) as client:
            for name, part in (("a", "x"), ("b", "y")):
                body = config_map(name)
                body["metadata"]["labels"] = {"part": part}
                await client.create(CONFIGMAPS, body, namespace=namespace)
            by_label = await client.list_all(CONFIGMAPS, namespace=namespace, label_selector="part in (x,z)")
            by_field = await client.list_all(CONFIGMAPS, namespace=namespace, field_selector="metadata.name=b")
        assert [item.metadata.name for item in by_label] == ["a"]
        assert [item.metadata.name for item in by_field] == ["b"]


async def refused(request: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await request
    return caught.value


class TestRefusals:
    async def test_not_found(self, cluster: LocalCluster, namespace: str) -> None:
        async with client_of(cluster) as client:
            error = await refused(client.get(PODS, "none", namespace=namespace))
        assert (error.status, error.reason, error.not_found) == (404, "NotFound", True)
        assert str(error) == '404 NotFound: pods "none" not found'

    async def test_already_exists(self, cluster: LocalCluster, namespace: str) -> None:
        async with client_of(cluster) as client:
            await client.create(CONFIGMAPS, config_map("a"), namespace=namespace)
            error = await refused(client.create(CONFIGMAPS, config_map("a"), namespace=namespace))
        assert (error.reason, error.conflict) == ("AlreadyExists", True)
        assert '"a" already exists' in str(error)

    async def test_changed_by_somebody_else(self, cluster: LocalCluster, namespace: str) -> None:
        async with client_of(cluster) as client:
            answer = msgspec.json.decode(await client.create(CONFIGMAPS, config_map("a"), namespace=namespace))
            await client.merge_patch(CONFIGMAPS, "a", {"data": {"k": "1"}}, namespace=namespace)
            error = await refused(client.replace(CONFIGMAPS, "a", answer, namespace=namespace))
        assert (error.reason, error.conflict) == ("Conflict", True)
        assert "the object has been modified" in str(error)

    async def test_invalid(self, cluster: LocalCluster, namespace: str) -> None:
        async with client_of(cluster) as client:
            error = await refused(client.create(CONFIGMAPS, config_map("UPPER_case"), namespace=namespace))
        assert (error.status, error.reason) == (422, "Invalid")
        assert "metadata.name" in str(error)

    async def test_a_watch_of_a_kind_that_is_not_there(self, cluster: LocalCluster) -> None:
        ghosts = Resource("ghosts.example", "v1", "ghosts", "Ghost", dict)
        async with client_of(cluster) as client:
            with pytest.raises(ApiError) as caught:
                async for _ in client.watch_chunks(ghosts, resource_version="1"):
                    pass
        assert caught.value.not_found


class TestTrouble:
    async def test_a_read_outlives_a_restart_of_the_server_and_a_create_does_not(
        self, fresh_cluster: Callable[..., LocalCluster]
    ) -> None:
        cluster = fresh_cluster(crds=False, kwok=False, options=Options(controller_manager=False))
        async with client_of(cluster, retries=60) as client:
            await asyncio.to_thread(cluster.kill_apiserver)
            read = asyncio.create_task(client.get(NAMESPACES, "default"))
            patch = asyncio.create_task(
                client.merge_patch(NAMESPACES, "default", {"metadata": {"labels": {"seen": "yes"}}})
            )
            with pytest.raises(TRANSPORT_ERRORS):
                await client.create(CONFIGMAPS, config_map("once"), namespace="default")
            with pytest.raises(TRANSPORT_ERRORS):
                await client.replace(CONFIGMAPS, "once", config_map("once"), namespace="default")
            assert not read.done()
            # While it starts, the server answers 429 and 5xx as well as not at all.
            await asyncio.to_thread(cluster.start_component, "kube-apiserver")
            assert (await read).metadata.name == "default"
            await patch
            assert (await client.get(NAMESPACES, "default")).metadata.labels["seen"] == "yes"
            assert "once" not in {item.metadata.name for item in await client.list_all(CONFIGMAPS)}

    async def test_retries_end(self, cluster: LocalCluster, tmp_path: Path) -> None:
        document = yaml.safe_load(cluster.kubeconfig.read_text())
        document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
        connection = await load_connection(kubeconfig=written(tmp_path / "k", document))
        async with ApiClient(connection, retries=1) as client:
            with pytest.raises(ConnectionError, match=r"cannot connect to 127\.0\.0\.1:1"):
                await client.get(NAMESPACES, "default")

    async def test_another_authority_is_not_trusted(self, cluster: LocalCluster, tmp_path: Path) -> None:
        document = yaml.safe_load(cluster.kubeconfig.read_text())
        document["clusters"][0]["cluster"] = {
            "server": cluster.server,
            "certificate-authority": str(CERTIFICATES / "ca.crt"),
        }
        connection = await load_connection(kubeconfig=written(tmp_path / "k", document))
        async with ApiClient(connection, retries=0) as client:
            with pytest.raises(ssl.SSLCertVerificationError):
                await client.get(NAMESPACES, "default")


def written(path: Path, document: Any) -> str:
    path.write_text(json.dumps(document))
    return str(path)


def kubeconfig(cluster: LocalCluster, path: Path, user: dict[str, Any], **settings: Any) -> str:
    """A kubeconfig of the cluster for that user."""
    settings = {"certificate-authority": str(cluster.ca_file), **settings}
    return written(
        path,
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": cluster.server, **settings}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        },
    )


async def reads(path: str) -> bool:
    async with ApiClient(await load_connection(kubeconfig=path), retries=0) as client:
        return (await client.get(NAMESPACES, "default")).metadata.name == "default"


PLUGIN = """
import json, pathlib, sys
calls = pathlib.Path(sys.argv[1])
calls.write_text(calls.read_text() + "called\\n" if calls.exists() else "called\\n")
status = {"token": pathlib.Path(sys.argv[2]).read_text().strip()}
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""


def plugin(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "plugin.py").write_text(PLUGIN)
    arguments = [str(tmp_path / name) for name in ("plugin.py", "calls", "token")]
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": arguments}
    return {"exec": {**command, "interactiveMode": "Never"}}


class TestCredentials:
    async def test_token(self, cluster: LocalCluster, tmp_path: Path) -> None:
        assert await reads(kubeconfig(cluster, tmp_path / "k", {"token": cluster.token}))

    async def test_token_file(self, cluster: LocalCluster, tmp_path: Path) -> None:
        (tmp_path / "token").write_text(cluster.token + "\n")
        assert await reads(kubeconfig(cluster, tmp_path / "k", {"tokenFile": str(tmp_path / "token")}))

    async def test_plugin(self, cluster: LocalCluster, tmp_path: Path) -> None:
        (tmp_path / "token").write_text(cluster.token)
        assert await reads(kubeconfig(cluster, tmp_path / "k", plugin(tmp_path)))

    async def test_unverified_server(self, cluster: LocalCluster, tmp_path: Path) -> None:
        user = {"token": cluster.token}
        settings = {"insecure-skip-tls-verify": True, "certificate-authority": str(CERTIFICATES / "ca.crt")}
        path = kubeconfig(cluster, tmp_path / "k", user, **settings)
        assert await reads(path)

    async def test_name_of_the_server(self, cluster: LocalCluster, tmp_path: Path) -> None:
        user = {"token": cluster.token}
        good = kubeconfig(cluster, tmp_path / "good", user, **{"tls-server-name": "kubernetes.default.svc"})
        bad = kubeconfig(cluster, tmp_path / "bad", user, **{"tls-server-name": "elsewhere.example"})
        assert await reads(good)
        with pytest.raises(ssl.SSLCertVerificationError):
            await reads(bad)

    async def test_client_certificate(self, fresh_cluster: Callable[..., LocalCluster], tmp_path: Path) -> None:
        options = Options(controller_manager=False, apiserver_args=(f"--client-ca-file={CERTIFICATES / 'ca.crt'}",))
        cluster = fresh_cluster(crds=False, kwok=False, options=options)
        user = {
            "client-certificate": str(CERTIFICATES / "client.crt"),
            "client-key": str(CERTIFICATES / "client.key"),
        }
        assert await reads(kubeconfig(cluster, tmp_path / "k", user))
        # A certificate that appears later is used without a restart, since TLS settings go with each request.
        path = kubeconfig(cluster, tmp_path / "later", {"token": "expired"})
        async with ApiClient(await load_connection(kubeconfig=path), retries=0) as client:
            kubeconfig(cluster, tmp_path / "later", user)
            assert (await client.get(NAMESPACES, "default")).metadata.name == "default"


class TestRenewal:
    async def test_a_refused_token_is_renewed_once_for_all(self, cluster: LocalCluster, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("expired")
        path = kubeconfig(cluster, tmp_path / "k", plugin(tmp_path))
        async with ApiClient(await load_connection(kubeconfig=path)) as client:
            (tmp_path / "token").write_text(cluster.token)
            found = await asyncio.gather(*(client.get(NAMESPACES, "default") for _ in range(20)))
        assert len(found) == 20
        assert (tmp_path / "calls").read_text().splitlines() == ["called"] * 2

    async def test_a_creation_is_sent_again_after_401(
        self, cluster: LocalCluster, namespace: str, tmp_path: Path
    ) -> None:
        path = kubeconfig(cluster, tmp_path / "k", {"token": "expired"})
        async with ApiClient(await load_connection(kubeconfig=path)) as client:
            kubeconfig(cluster, tmp_path / "k", {"token": cluster.token})
            await client.create(CONFIGMAPS, config_map("a"), namespace=namespace)

    async def test_a_watch_is_refused_and_then_works(self, cluster: LocalCluster, tmp_path: Path) -> None:
        path = kubeconfig(cluster, tmp_path / "k", {"token": "expired"})
        async with ApiClient(await load_connection(kubeconfig=path)) as client:
            kubeconfig(cluster, tmp_path / "k", {"token": cluster.token})
            with pytest.raises(ApiError, match="401 Unauthorized"):
                await anext(client.watch_chunks(NAMESPACES, resource_version="0"))
            assert await anext(client.watch_chunks(NAMESPACES, resource_version="0"))

    @pytest.mark.parametrize(
        "spoil",
        [
            pytest.param(lambda path: path.touch(), id="still refused"),
            pytest.param(lambda path: path.unlink(), id="gone"),
            pytest.param(lambda path: path.write_text("{"), id="damaged"),
        ],
    )
    async def test_without_better_credentials_the_refusal_is_told(
        self, cluster: LocalCluster, tmp_path: Path, spoil: Callable[[Path], object]
    ) -> None:
        path = Path(kubeconfig(cluster, tmp_path / "k", {"token": "wrong"}))
        async with ApiClient(await load_connection(kubeconfig=str(path))) as client:
            spoil(path)
            error = await refused(client.get(LEASES, "x", namespace="default"))
        assert (error.status, error.unauthorized) == (401, True)

    async def test_forbidden_is_not_renewed(self, cluster: LocalCluster, namespace: str, tmp_path: Path) -> None:
        path = cluster.service_account_kubeconfig(namespace, "default", path=tmp_path / "k")
        async with ApiClient(await load_connection(kubeconfig=str(path))) as client:
            error = await refused(client.get(NAMESPACES, "default"))
            assert client.connection.generation == 0
        assert (error.status, error.reason) == (403, "Forbidden")
        assert f'"system:serviceaccount:{namespace}:default" cannot get resource "namespaces"' in str(error)

"""Kubeconfig files and service accounts become a Connection; what is wrong with them is told.

Connecting with them: tests/integration/test_kube_client.py.
"""

from __future__ import annotations

import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from berth.kube import connection as connection_module
from berth.kube.connection import ConnectionConfigError, load_connection
from tests.support.kubeconfigs import config, connect, forget_environment, written

CERTIFICATES = Path(__file__).resolve().parents[3] / "data" / "client-certificate"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_environment(monkeypatch, tmp_path / "home")


class TestWhereItIsFound:
    async def test_the_named_file_comes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBECONFIG", written(tmp_path / "env", config(name="env")))
        named = written(tmp_path / "named", config(name="named", namespace="shop"))
        made = await load_connection(kubeconfig=named)
        assert (made.server, made.namespace, made.kubeconfig) == ("https://named.example:6443", "shop", named)

    async def test_then_the_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        written(tmp_path / "home/.kube/config", config(name="home"))
        monkeypatch.setenv("KUBECONFIG", written(tmp_path / "env", config(name="env")))
        assert (await load_connection()).server == "https://env.example:6443"

    async def test_at_last_the_home_directory(self, tmp_path: Path) -> None:
        written(tmp_path / "home/.kube/config", config(name="home"))
        made = await load_connection()
        assert (made.server, made.namespace) == ("https://home.example:6443", "default")

    async def test_several_files_are_merged(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        one = written(tmp_path / "one", config(name="one", namespace="n1"))
        two = written(tmp_path / "two", config(name="two", namespace="n2"))
        monkeypatch.setenv("KUBECONFIG", f"{one}:{tmp_path / 'missing'}:{two}")
        made = await load_connection(context="one")
        assert (made.server, made.namespace) == ("https://one.example:6443", "n1")

    async def test_the_namespace_is_that_of_the_chosen_context(self, tmp_path: Path) -> None:
        document = config(name="current", namespace="of-current")
        document["contexts"].append(
            {"name": "other", "context": {"cluster": "current", "user": "current", "namespace": "of-other"}}
        )
        made = await load_connection(kubeconfig=written(tmp_path / "k", document), context="other")
        assert made.namespace == "of-other"


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service account as the kubelet mounts it."""
    directory = tmp_path / "serviceaccount"
    written(directory / "token", "t0\n")
    written(directory / "ca.crt", (CERTIFICATES / "ca.crt").read_text())
    written(directory / "namespace", "berth-system\n")
    monkeypatch.setattr(connection_module, "SERVICE_ACCOUNT", directory)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return directory


class TestServiceAccount:
    async def test_is_used_inside_a_cluster(self, account: Path) -> None:
        made = await load_connection()
        assert (made.server, made.namespace, made.kubeconfig) == ("https://10.96.0.1:443", "berth-system", None)
        assert await made.headers() == {"authorization": "Bearer t0"}
        assert made.ssl_context().verify_mode is ssl.CERT_REQUIRED

    async def test_a_rotated_token_is_used_after_a_reload(self, account: Path) -> None:
        made = await load_connection()
        written(account / "token", "t1")
        assert await made.reload(seen=0)
        assert await made.headers() == {"authorization": "Bearer t1"}

    async def test_a_kubeconfig_in_the_environment_wins(
        self, account: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", written(tmp_path / "env", config(name="env")))
        assert (await load_connection()).server == "https://env.example:6443"

    @pytest.mark.parametrize("file", ["ca.crt", "token"])
    async def test_an_empty_file_is_told(self, account: Path, file: str) -> None:
        written(account / file, "")
        with pytest.raises(ConnectionConfigError, match=r"service account in .*empty.*automountServiceAccountToken"):
            await load_connection()

    def test_pods_do_without_the_library_for_kubeconfigs(self, account: Path) -> None:
        """It brings 37 MiB of models along, and an agent runs on every node."""
        code = """
import asyncio, pathlib, sys
from berth.kube import client, connection
import berth.runtime.process, agents.node.agent
connection.SERVICE_ACCOUNT = pathlib.Path(sys.argv[1])
made = asyncio.run(connection.load_connection())
print(made.server, "kubernetes_asyncio" in sys.modules)
"""
        command = [sys.executable, "-c", code, str(account)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert said.split() == ["https://10.96.0.1:443", "False"]

    async def test_without_the_variables_it_is_not_used(self, account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
        with pytest.raises(ConnectionConfigError, match=r"kubeconfig .*\.kube/config: no such file"):
            await load_connection()


class TestCredentials:
    @pytest.mark.parametrize(
        ("user", "header"),
        [
            pytest.param({"token": "abc"}, "Bearer abc", id="token"),
            pytest.param({"username": "u", "password": "p"}, "Basic dTpw", id="basic"),
            pytest.param({"client-certificate-data": "", "client-key-data": ""}, None, id="none"),
        ],
    )
    async def test_header(self, tmp_path: Path, user: dict[str, Any], header: str | None) -> None:
        made = await connect(tmp_path, user=user)
        assert await made.headers() == ({"authorization": header} if header else {})

    async def test_token_file_with_its_newline_is_reread(self, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_text("first\n")
        made = await connect(tmp_path, user={"tokenFile": str(token)})
        assert await made.headers() == {"authorization": "Bearer first"}
        token.write_text("second\n")
        assert await made.reload(seen=0)
        assert await made.headers() == {"authorization": "Bearer second"}

    async def test_a_token_file_that_is_empty_for_a_moment_leaves_the_token_before(self, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_text("first")
        made = await connect(tmp_path, user={"tokenFile": str(token)})
        token.write_text("")
        with pytest.raises(ConnectionConfigError, match="is empty"):
            await made.reload(seen=0)
        assert await made.headers() == {"authorization": "Bearer first"}

    async def test_a_token_that_no_header_can_hold_is_told(self, tmp_path: Path) -> None:
        made = await connect(tmp_path, user={"token": "first\nsecond"})
        with pytest.raises(ConnectionConfigError, match="the token is no line of text; log in"):
            await made.headers()

    async def test_a_context_chosen_for_other_commands_meanwhile_is_not_followed(self, tmp_path: Path) -> None:
        made = await connect(tmp_path, user={"token": "old"})
        own, other = config(user={"token": "new"}), config(name="other")
        merged = {**own, **{name: own[name] + other[name] for name in ("clusters", "users", "contexts")}}
        written(tmp_path / "k", {**merged, "current-context": "other"})
        another = await made.another()
        await made.reload(seen=0)
        for connection in (made, another):
            assert connection.server == "https://x.example:6443"
            assert await connection.headers() == {"authorization": "Bearer new"}

    async def test_many_refusals_read_the_credentials_once(self, tmp_path: Path) -> None:
        made = await connect(tmp_path)
        assert [await made.reload(seen=0) for _ in range(3)] == [True, True, True]
        assert made.generation == 1

    async def test_credentials_refused_again_are_not_read_at_once(self, tmp_path: Path) -> None:
        made = await connect(tmp_path)
        assert await made.reload(seen=0)
        assert not await made.reload(seen=1)
        assert made.generation == 1
        assert await made.reload()  # asked for, not a refusal
        assert made.generation == 2

    async def test_a_vanished_kubeconfig_is_told_at_reload(self, tmp_path: Path) -> None:
        made = await connect(tmp_path)
        (tmp_path / "k").unlink()
        with pytest.raises(ConnectionConfigError, match="no such file"):
            await made.reload()


class TestProxy:
    async def test_of_the_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTPS_PROXY", "proxy:3128")
        assert (await connect(tmp_path)).proxy == "http://proxy:3128"

    async def test_of_the_environment_inside_a_cluster(self, account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
        assert (await load_connection()).proxy == "http://proxy:3128"
        monkeypatch.setenv("NO_PROXY", "10.96.0.0/12")
        assert (await load_connection()).proxy is None

    async def test_one_that_cannot_be_used_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(ConnectionConfigError, match=r"kubeconfig .*: proxy-url 'socks5://p:1' cannot be used"):
            await connect(tmp_path, cluster={"proxy-url": "socks5://p:1"})


class TestTls:
    async def test_verified_by_default(self, tmp_path: Path) -> None:
        context = (await connect(tmp_path)).ssl_context()
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
        assert not context.verify_flags & ssl.VERIFY_X509_STRICT

    async def test_unverified_when_the_file_says_so(self, tmp_path: Path) -> None:
        context = (await connect(tmp_path, cluster={"insecure-skip-tls-verify": True})).ssl_context()
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)

    async def test_authority_and_client_certificate(self, tmp_path: Path) -> None:
        made = await connect(
            tmp_path,
            cluster={"certificate-authority": str(CERTIFICATES / "ca.crt")},
            user={
                "client-certificate": str(CERTIFICATES / "client.crt"),
                "client-key": str(CERTIFICATES / "client.key"),
            },
        )
        context = made.ssl_context()
        (authority,) = context.get_ca_certs()
        assert authority["subject"] == ((("commonName", "berth test authority"),),)
        assert made.ssl_context() is context

    @pytest.mark.parametrize(
        ("certificate", "key"),
        [
            pytest.param("client.crt", "ca.crt", id="no key"),
            pytest.param("client.key", "client.key", id="no certificate"),
            pytest.param("ca.crt", "client.key", id="they do not belong together"),
        ],
    )
    async def test_unusable_client_certificate(self, tmp_path: Path, certificate: str, key: str) -> None:
        user = {"client-certificate": str(CERTIFICATES / certificate), "client-key": str(CERTIFICATES / key)}
        made = await connect(tmp_path, user=user)
        with pytest.raises(ConnectionConfigError, match=r"certificates are unusable: .*; check certificate-authority"):
            made.ssl_context()

    async def test_server_name_and_proxy(self, tmp_path: Path) -> None:
        made = await connect(tmp_path, cluster={"tls-server-name": "k8s", "proxy-url": "http://proxy:3128"})
        assert (made.server_hostname, made.proxy) == ("k8s", "http://proxy:3128")
        plain = await connect(tmp_path)
        assert (plain.server_hostname, plain.proxy) == (None, None)

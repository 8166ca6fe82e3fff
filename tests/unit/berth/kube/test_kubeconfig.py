"""Kubeconfigs that are unusable are told so; fields of their users become headers."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from berth.kube.connection import ConnectionConfigError, load_connection
from tests.support.kubeconfigs import config, connect, forget_environment, written

CERTIFICATES = Path(__file__).resolve().parents[3] / "data" / "client-certificate"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_environment(monkeypatch, tmp_path / "home")


@pytest.mark.parametrize(
    ("document", "text"),
    [
        pytest.param("", "not a kubeconfig: it is empty; name another", id="empty"),
        pytest.param("just words", "not a kubeconfig: it is no mapping; name another", id="no mapping"),
        pytest.param("[1, 2]", "not a kubeconfig: it is no mapping", id="a list"),
        pytest.param(
            {**config(), "contexts": "x"}, "its contexts are no list; name another", id="contexts are no list"
        ),
        pytest.param("{", "no YAML at line", id="no yaml"),
        pytest.param("\x00", "no YAML", id="binary"),
        pytest.param("clusters: []", "", id="only clusters"),
        pytest.param({**config(), "current-context": "gone"}, "no context 'gone'; choose one of", id="unknown context"),
        pytest.param({**config(), "current-context": ""}, "no context is chosen (current-context);", id="no context"),
        pytest.param({**config(), "clusters": []}, "name x in", id="unknown cluster"),
        pytest.param({**config(), "users": [{"name": "y"}]}, "names the user 'x', which it", id="unknown user"),
        pytest.param({**config(), "users": None}, "names the user 'x', which it does not have", id="no users"),
        pytest.param(
            {**config(), "clusters": [{"name": "x", "cluster": {"insecure-skip-tls-verify": True}}]},
            "no server",
            id="cluster without server",
        ),
        pytest.param(
            config(cluster={"server": "10.0.0.1:6443"}), "'10.0.0.1:6443' is no URL; write https", id="no scheme"
        ),
        pytest.param(config(cluster={"server": "ftp://api"}), "'ftp://api' is no URL; write https", id="other scheme"),
        pytest.param(config(cluster={"server": "https://:6443"}), "'https://:6443' is no URL", id="no host"),
        pytest.param(config(cluster={"server": "https://a..b"}), "'https://a..b' is no URL", id="no name of a host"),
        pytest.param(config(cluster={"server": "https://a:99999"}), "'https://a:99999' is no URL", id="no port"),
        pytest.param(config(user={"tokenFile": "/nowhere/token"}), "/nowhere/token", id="token file is gone"),
        pytest.param(
            config(user={"tokenFile": "/dev/null"}), "the token file /dev/null is empty", id="token file is empty"
        ),
        pytest.param(
            config(cluster={"certificate-authority": "/nowhere/ca.crt"}), "/nowhere/ca.crt", id="authority is gone"
        ),
        pytest.param(
            config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/nowhere/plugin"}}),
            "/nowhere/plugin",
            id="plugin is gone",
        ),
        pytest.param(
            config(
                user={
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1",
                        "command": sys.executable,
                        "args": ["-c", "print('no json')"],
                    }
                }
            ),
            "prints is no ExecCredential",
            id="plugin prints no json",
        ),
        pytest.param(
            config(
                user={
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1",
                        "command": sys.executable,
                        "args": ["-c", "import sys; sys.exit('log in first')"],
                    }
                }
            ),
            "log in first",
            id="plugin fails, its words are shown",
        ),
    ],
)
async def test_unusable_kubeconfig(tmp_path: Path, document: Any, text: str) -> None:
    path = written(tmp_path / "k", document)
    with pytest.raises(ConnectionConfigError) as caught:
        await load_connection(kubeconfig=path)
    message = str(caught.value)
    assert message.startswith(f"kubeconfig {path}: ")
    assert text in message
    assert "--kubeconfig or $KUBECONFIG" in message


class TestImpersonation:
    async def test_every_field_becomes_its_header(self, tmp_path: Path) -> None:
        extra = {"example.org/scopes": ["view", "edit"]}
        user = {"token": "t", "as": "jane", "as-uid": "7", "as-groups": ["dev", "ops"], "as-user-extra": extra}
        made = await connect(tmp_path, user=user)
        assert list((await made.headers()).items()) == [
            ("authorization", "Bearer t"),
            ("Impersonate-User", "jane"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "dev"),
            ("Impersonate-Group", "ops"),
            ("Impersonate-Extra-example.org%2Fscopes", "view"),
            ("Impersonate-Extra-example.org%2Fscopes", "edit"),
        ]

    async def test_a_reload_brings_the_new_one(self, tmp_path: Path) -> None:
        made = await connect(tmp_path, user={"token": "t", "as": "jane"})
        written(tmp_path / "k", config(user={"token": "t", "as": "joe"}))
        await made.reload()
        assert (await made.headers())["Impersonate-User"] == "joe"

    @pytest.mark.parametrize("field", [{"as-groups": ["dev"]}, {"as-uid": "7"}, {"as-user-extra": {"a": ["b"]}}])
    async def test_nobody_to_act_for(self, tmp_path: Path, field: dict[str, Any]) -> None:
        with pytest.raises(ConnectionConfigError, match=r"kubeconfig .*: as-uid, as-groups .*; set as beside them"):
            await connect(tmp_path, user={"token": "t", **field})

    @pytest.mark.parametrize(
        ("field", "problem"),
        [
            pytest.param({"as": "jane\nX-Role: admin"}, "no header can hold", id="a line break"),
            pytest.param({"as": "jane", "as-groups": ["dev", "a\0b"]}, "no header can hold", id="a control character"),
            pytest.param({"as": "jane", "as-user-extra": {"a": ["b\r"]}}, "no header can hold", id="extra"),
            pytest.param({"as": "jane", "as-groups": "dev"}, "as-groups .*a list", id="groups that are no list"),
            pytest.param({"as": "jane", "as-user-extra": {"a": "b"}}, "a mapping of lists", id="extra that is no list"),
            pytest.param({"as": "jane", "as-user-extra": ["a"]}, "a mapping of lists", id="extra without names"),
        ],
    )
    async def test_what_cannot_be_asked_for(self, tmp_path: Path, field: dict[str, Any], problem: str) -> None:
        """A string for a list would be a group for each of its letters."""
        with pytest.raises(ConnectionConfigError, match=f"kubeconfig .*: .*{problem}"):
            await connect(tmp_path, user={"token": "t", **field})


AUTHORITY, CERTIFICATE, KEY = (CERTIFICATES / name for name in ("ca.crt", "client.crt", "client.key"))


def data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def left(directory: Path) -> list[Path]:
    return list(directory.iterdir())


def stated(certificate: Path, key: Path) -> dict[str, Any]:
    """A user with a certificate in the kubeconfig itself."""
    return {"client-certificate-data": data(certificate), "client-key-data": data(key)}


def plugin(certificate: Path, key: Path) -> dict[str, Any]:
    """A user whose credential plugin answers with a certificate."""
    status = {"clientCertificateData": certificate.read_text(), "clientKeyData": key.read_text()}
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    command = ["-c", f"print({json.dumps(answer)!r})"]
    return {"exec": {"apiVersion": answer["apiVersion"], "command": sys.executable, "args": command}}


class TestDataOfCertificates:
    @pytest.fixture(autouse=True)
    def temporary(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Where temporary files are."""
        directory = tmp_path / "temporary"
        directory.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(directory))
        return directory

    @pytest.mark.parametrize(
        "user",
        [
            pytest.param(
                {"client-certificate-data": data(CERTIFICATE), "client-key-data": data(KEY)}, id="as they are"
            ),
            pytest.param(plugin(CERTIFICATE, KEY), id="of a plugin"),
        ],
    )
    async def test_they_are_read_and_leave_no_file(self, tmp_path: Path, temporary: Path, user: dict[str, Any]) -> None:
        """A process that is killed would leave the key of its user behind."""
        made = await connect(tmp_path, cluster={"certificate-authority-data": data(AUTHORITY)}, user=user)
        assert left(temporary) == []
        (authority,) = made.ssl_context().get_ca_certs()
        assert authority["subject"] == ((("commonName", "berth test authority"),),)
        before = made.ssl_context()
        await made.reload()
        assert left(temporary) == []
        assert made.ssl_context() is not before
        assert len(made.ssl_context().get_ca_certs()) == 1

    @pytest.mark.parametrize(
        "user",
        [
            pytest.param(stated(AUTHORITY, KEY), id="as they are"),
            pytest.param(plugin(AUTHORITY, KEY), id="of a plugin"),
        ],
    )
    async def test_those_that_do_not_belong_together_leave_none_either(
        self, tmp_path: Path, temporary: Path, user: dict[str, Any]
    ) -> None:
        with pytest.raises(ConnectionConfigError, match=r"certificates are unusable: .*; check certificate-authority"):
            await connect(tmp_path, user=user)
        assert left(temporary) == []

    def test_threads_that_read_the_same_at_once_keep_out_of_each_others_way(self, tmp_path: Path) -> None:
        """The Lease of each component has a connection of its own."""
        path = written(tmp_path / "k", config(user=stated(CERTIFICATE, KEY)))

        def read(_: int) -> ssl.SSLContext:
            return asyncio.run(load_connection(kubeconfig=path)).ssl_context()

        with ThreadPoolExecutor(8) as threads:
            assert len(set(threads.map(read, range(40)))) == 40

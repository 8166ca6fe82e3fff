"""Kubeconfig files are read as kubectl reads them, whatever their users left empty, and their secrets stay in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth.kube.connection import ConnectionConfigError, load_connection
from berth.kube.kubeconfig_files import KubeconfigFiles
from tests.support.kubeconfigs import config, connect, forget_environment, written

CERTIFICATES = Path(__file__).resolve().parents[3] / "data" / "client-certificate"
SECRET = "hunter2"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_environment(monkeypatch, tmp_path / "home")


class TestNull:
    """Go reads null as absent."""

    @pytest.mark.parametrize(
        ("fields", "headers"),
        [
            pytest.param({"users": [{"name": "x", "user": None}]}, {}, id="user"),
            pytest.param({"users": [{"name": "x"}]}, {}, id="no user"),
            pytest.param({"users": [None, *config()["users"]]}, {"authorization": "Bearer secret"}, id="entry"),
            pytest.param({"contexts": [None, *config()["contexts"]]}, {"authorization": "Bearer secret"}, id="context"),
            pytest.param({"preferences": None}, {"authorization": "Bearer secret"}, id="preferences"),
            pytest.param({"contexts": [{"name": "x", "context": {"cluster": "x", "user": None}}]}, {}, id="no name"),
            pytest.param(
                {"contexts": [{"name": "x", "context": {"cluster": "x"}}], "users": None}, {}, id="nobody at all"
            ),
        ],
    )
    async def test_of_the_file(self, tmp_path: Path, fields: dict[str, Any], headers: dict[str, str]) -> None:
        """Without a user nothing is proved, as behind a proxy that does it."""
        made = await load_connection(kubeconfig=written(tmp_path / "k", {**config(), **fields}))
        assert (made.server, made.namespace) == ("https://x.example:6443", "default")
        assert await made.headers() == headers

    @pytest.mark.parametrize(
        "field",
        [
            "certificate-authority",
            "certificate-authority-data",
            "insecure-skip-tls-verify",
            "proxy-url",
            "tls-server-name",
        ],
    )
    async def test_of_a_cluster(self, tmp_path: Path, field: str) -> None:
        made = await connect(tmp_path, cluster={field: None})
        assert (made.server_hostname, made.proxy) == (None, None)
        assert made.ssl_context().check_hostname

    @pytest.mark.parametrize("field", ["exec", "auth-provider", "client-certificate", "client-key-data", "tokenFile"])
    async def test_of_a_user(self, tmp_path: Path, field: str) -> None:
        made = await connect(tmp_path, user={"token": "t", field: None})
        assert await made.headers() == {"authorization": "Bearer t"}

    @pytest.mark.parametrize("section", ["clusters", "contexts"])
    async def test_of_what_is_needed(self, tmp_path: Path, section: str) -> None:
        with pytest.raises(ConnectionConfigError, match=r"--kubeconfig or \$KUBECONFIG"):
            await load_connection(kubeconfig=written(tmp_path / "k", {**config(), section: None}))


class TestSeveral:
    async def test_the_first_that_names_a_current_context_counts(self, tmp_path: Path) -> None:
        """The last one's was used: another cluster than kubectl's."""
        files = [written(tmp_path / name, config(name=name)) for name in ("one", "two")]
        made = await load_connection(kubeconfig=":".join(files))
        assert (made.server, made.context) == ("https://one.example:6443", "one")

    @pytest.mark.parametrize("empty", ["", "---\n", {"current-context": ""}])
    async def test_empty_ones_add_nothing(self, tmp_path: Path, empty: Any) -> None:
        files = [written(tmp_path / "empty", empty), written(tmp_path / "k", config()), written(tmp_path / "z", empty)]
        made = await load_connection(kubeconfig=":".join(files))
        assert await made.headers() == {"authorization": "Bearer secret"}

    async def test_files_are_looked_for_beside_the_one_that_names_them(self, tmp_path: Path) -> None:
        """A user's in the user's file, also where the cluster comes from another one."""
        for directory, names in (("c", ["ca.crt"]), ("u", ["client.crt", "client.key"])):
            for name in names:
                written(tmp_path / directory / name, (CERTIFICATES / name).read_text())
        written(tmp_path / "u" / "token", "t")
        cluster = config(cluster={"certificate-authority": "ca.crt"})
        user = config(user={"tokenFile": "token", "client-certificate": "client.crt", "client-key": "../u/client.key"})
        files = [
            written(tmp_path / "c/k", {**cluster, "users": None}),
            written(tmp_path / "u/k", {**user, "clusters": None}),
        ]
        made = await load_connection(kubeconfig=":".join(files))
        assert await made.headers() == {"authorization": "Bearer t"}
        assert len(made.ssl_context().get_ca_certs()) == 1


def test_tokens_that_were_renewed_are_saved_in_their_file(tmp_path: Path) -> None:
    """As kubectl does with those of OpenID Connect: the provider may not take the one before again."""
    provider = {"name": "oidc", "config": {"refresh-token": "old"}}
    paths = [written(tmp_path / name, config(name=name, user={"auth-provider": provider})) for name in ("a", "b")]
    files = KubeconfigFiles(":".join(paths))
    files.entries("users")["b"]["auth-provider"]["config"]["refresh-token"] = "new"
    files.save_changes()
    assert [
        KubeconfigFiles(path).entries("users")[name]["auth-provider"]["config"]["refresh-token"]
        for path, name in zip(paths, "ab", strict=True)
    ] == ["old", "new"]


async def test_a_token_file_counts_before_a_token(tmp_path: Path) -> None:
    """The one that somebody replaces: the other was good for the first hour."""
    made = await connect(tmp_path, user={"token": "old", "tokenFile": written(tmp_path / "token", "new")})
    assert await made.headers() == {"authorization": "Bearer new"}


@pytest.mark.parametrize("stated", ["false", "true", "no!", 1])
async def test_whether_certificates_are_verified_is_true_or_false(tmp_path: Path, stated: Any) -> None:
    """The text "false" turned verification off."""
    with pytest.raises(ConnectionConfigError, match=r"insecure-skip-tls-verify .* true or false"):
        await connect(tmp_path, cluster={"insecure-skip-tls-verify": stated})


async def test_credentials_of_a_kind_that_is_not_known_are_told(tmp_path: Path) -> None:
    """Otherwise everything would be asked for as nobody."""
    with pytest.raises(ConnectionConfigError, match=r"auth-provider 'azure' .*exec"):
        await connect(tmp_path, user={"auth-provider": {"name": "azure", "config": {"access-token": "t"}}})


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(f"users:\n- name: x\n  user: {{token: {SECRET}: {SECRET}}}", id="no YAML"),
        pytest.param(f"users: [{{name: x, user: {{token: {SECRET}\n", id="ends too early"),
        pytest.param(config(user={"token": SECRET, "exec": 5}), id="a plugin that is none"),
        pytest.param(config(user={"token": SECRET, "exec": {"command": "x"}}), id="a plugin without version"),
        pytest.param(config(user={"password": SECRET, "as-groups": "x"}), id="groups that are no list"),
        pytest.param(config(user={"token": SECRET, "auth-provider": {"name": "azure"}}), id="another kind"),
        pytest.param({**config(user={"token": SECRET}), "current-context": "y"}, id="another context"),
        pytest.param({**config(user={"token": SECRET}), "contexts": SECRET}, id="no contexts"),
        pytest.param({**config(user={"token": SECRET}), "clusters": [{"name": "x"}]}, id="no cluster"),
    ],
)
async def test_what_is_told_has_no_secrets(tmp_path: Path, document: Any) -> None:
    """Messages go to logs, which more people read than a kubeconfig."""
    with pytest.raises(ConnectionConfigError) as caught:
        await load_connection(kubeconfig=written(tmp_path / "k", document))
    assert SECRET not in str(caught.value)


@pytest.fixture
def in_another_encoding(tmp_path: Path) -> str:
    path = tmp_path / "k"
    path.write_bytes(f"users: [{{name: x, user: {{token: {SECRET}}}}}] # \xe9".encode("latin-1"))
    return str(path)


async def test_nor_has_what_is_told_of_bytes(in_another_encoding: str) -> None:
    with pytest.raises(ConnectionConfigError, match="no text in UTF-8") as caught:
        await load_connection(kubeconfig=in_another_encoding)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("document", ["[" * 100_000, "a: " + "[" * 3000 + "]" * 3000], ids=["open", "closed"])
async def test_one_that_is_nested_without_end_is_told(tmp_path: Path, document: str) -> None:
    with pytest.raises(ConnectionConfigError, match="not a kubeconfig: it is nested too deeply"):
        await load_connection(kubeconfig=written(tmp_path / "k", document))


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param("{0}/none", id="one"),
        pytest.param("{0}/none:{0}/neither", id="two"),
        pytest.param("~/none", id="at home"),
        pytest.param("~nobody-has-this-name/none", id="at the home of nobody"),
        pytest.param("{0}/" + 300 * "n", id="a name that no file can have"),
        pytest.param(":", id="none"),
    ],
)
async def test_files_that_are_not_there_are_told_once(
    tmp_path: Path, paths: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConnectionConfigError, match="no such file"):
        await load_connection(kubeconfig=paths.format(tmp_path))
    assert caplog.messages == []


async def test_a_directory_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match=f"kubeconfig {tmp_path}: is a directory; name a readable file"):
        await load_connection(kubeconfig=str(tmp_path))

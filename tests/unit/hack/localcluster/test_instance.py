"""An instance's directory: names, credentials, ports and what survives damage. No process is started here."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

import pytest

from hack.localcluster import ClusterError, LocalCluster, Options, credentials, instance, paths
from hack.localcluster.instance import Instance


@pytest.fixture
def made(tmp_path: Path) -> Instance:
    home = tmp_path / "one"
    home.mkdir()
    return Instance.create(home, Options(scheduler=True, apiserver_args=("--v=2",)))


def test_loading_returns_what_was_created(made: Instance) -> None:
    loaded = Instance.load(made.layout.home)
    assert (loaded.options, loaded.ports, loaded.name) == (made.options, made.ports, "one")


def test_instances_do_not_share_ports_even_before_they_listen(made: Instance, tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    other = Instance.create(tmp_path / "two", Options())
    assert not set(made.ports.values()) & set(other.ports.values())
    assert instance.reserved_ports(tmp_path) == {*made.ports.values(), *other.ports.values()}


def test_addresses_of_stopped_instances_are_reserved_and_damage_is_passed_over(made: Instance, tmp_path: Path) -> None:
    for name, content in {"none": "{}", "list": "[]", "no-json": "{", "text": '{"options": 1, "ports": 2}'}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "instance.json").write_text(content)
    assert instance.reserved_addresses(tmp_path) == {"127.0.0.1"}
    assert instance.reserved_ports(tmp_path) == set(made.ports.values())


def test_every_kubelet_has_a_token_of_its_own(tmp_path: Path) -> None:
    made = Instance.create(tmp_path, Options(kubelets=2))
    lines = made.layout.tokens.read_text().splitlines()
    for name in ("node-1", "node-2"):
        assert f'{made.token(f"system:node:{name}")},system:node:{name},system:node:{name},"system:nodes"' in lines
    assert made.token("system:node:node-1") != made.token("system:node:node-2")


def test_a_new_port_is_saved(made: Instance) -> None:
    before = made.ports["kwok"]
    assert made.new_port("kwok") != before
    assert Instance.load(made.layout.home).ports == made.ports


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(Options(), "etcd kube-apiserver kube-controller-manager kwok", id="default"),
        pytest.param(
            Options(scheduler=True), "etcd kube-apiserver kube-controller-manager kube-scheduler kwok", id="scheduler"
        ),
        pytest.param(Options(kwok=False, controller_manager=False), "etcd kube-apiserver", id="bare"),
        pytest.param(
            Options(kwok=False, kubelets=2),
            "etcd kube-apiserver kube-controller-manager "
            "containerd-1 containerd-2 service-relay-1 service-relay-2 kubelet-1 kubelet-2",
            id="real nodes",
        ),
    ],
)
def test_components(tmp_path: Path, options: Options, expected: str) -> None:
    assert Instance.create(tmp_path, options).components == expected.split()


def test_secrets_are_for_the_owner_only_and_differ_per_instance(made: Instance, tmp_path: Path) -> None:
    for path in (made.layout.tokens, made.layout.service_account_key):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(made.layout.pki.stat().st_mode) == 0o700
    (tmp_path / "two").mkdir()
    other = Instance.create(tmp_path / "two", Options())
    assert made.token("admin") != other.token("admin")
    assert made.layout.service_account_key.read_text() != other.layout.service_account_key.read_text()


def test_tokens(made: Instance) -> None:
    lines = made.layout.tokens.read_text().splitlines()
    assert f'{made.token("admin")},admin,admin,"system:masters"' in lines
    assert f'{made.token("system:kube-scheduler")},system:kube-scheduler,system:kube-scheduler,""' in lines
    with pytest.raises(ClusterError, match="no token of nobody"):
        made.token("nobody")


def test_service_account_key_is_a_p256_key() -> None:
    lines = credentials.new_service_account_key().splitlines()
    assert (lines[0], lines[-1]) == ("-----BEGIN EC PRIVATE KEY-----", "-----END EC PRIVATE KEY-----")
    der = base64.b64decode("".join(lines[1:-1]))
    # RFC 5915: SEQUENCE { INTEGER 1, OCTET STRING of 32 bytes, [0] OBJECT IDENTIFIER 1.2.840.10045.3.1.7 }
    assert der[:2] == bytes([0x30, len(der) - 2])
    assert der[2:7] == bytes([2, 1, 1, 4, 32])
    assert der[39:] == bytes([0xA0, 10, 6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7])


CERTIFICATE = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"


def test_authority_is_the_end_of_the_chain() -> None:
    chain = CERTIFICATE.format("leaf") + CERTIFICATE.format("root")
    assert credentials.authority_of(chain) == CERTIFICATE.format("root")


@pytest.mark.parametrize(
    "chain",
    [
        pytest.param("", id="empty"),
        pytest.param(CERTIFICATE.format("leaf"), id="leaf only"),
        pytest.param(CERTIFICATE.format("leaf") + "-----BEGIN CERTIFICATE-----\nro", id="half written"),
    ],
)
def test_incomplete_chain_is_not_taken(made: Instance, chain: str) -> None:
    with pytest.raises(ClusterError, match="no authority in its chain"):
        credentials.authority_of(chain)
    (made.layout.pki / "apiserver.crt").write_text(chain)
    assert not made.take_authority()
    assert not made.layout.authority.exists()


def test_kubeconfig(made: Instance) -> None:
    (made.layout.pki / "apiserver.crt").write_text(CERTIFICATE.format("leaf") + CERTIFICATE.format("root"))
    assert made.take_authority()
    made.write_kubeconfigs()
    config = json.loads(made.layout.kubeconfig.read_text())
    assert config["current-context"] == "berth-one"
    cluster = config["clusters"][0]["cluster"]
    assert cluster["server"] == f"https://127.0.0.1:{made.ports['kube-apiserver']}"
    assert base64.b64decode(cluster["certificate-authority-data"]).decode() == CERTIFICATE.format("root")
    assert config["users"][0]["user"] == {"token": made.token("admin")}
    scheduler = json.loads(made.layout.component_kubeconfig("kube-scheduler").read_text())
    assert scheduler["users"][0]["user"] == {"token": made.token("system:kube-scheduler")}


@pytest.mark.parametrize("name", ["berth", "a", "a-1", "0", "a" * 42])
def test_usable_names(name: str) -> None:
    assert paths.check_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "a/b", "..", "a" * 43, "a\n"])
def test_unusable_names(name: str) -> None:
    with pytest.raises(ClusterError, match="at most 42"):
        paths.check_name(name)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("[]", id="list"),
        pytest.param("{}", id="no fields"),
        pytest.param('{"options": {"colour": 1}, "ports": {}}', id="unknown options"),
    ],
)
def test_a_damaged_instance_says_so_and_can_be_removed(made: Instance, tmp_path: Path, content: str) -> None:
    (made.layout.home / "instance.json").write_text(content)
    (made.layout.home / "processes" / "etcd.json").write_text("{")
    with pytest.raises(ClusterError, match=r"is damaged .*: remove it with hack/cluster down --name one"):
        LocalCluster.open("one", root=tmp_path)
    assert LocalCluster.remove("one", root=tmp_path)
    assert LocalCluster.names(tmp_path) == []


def test_removing_keeps_logs_on_request(made: Instance, tmp_path: Path) -> None:
    log = made.layout.log("etcd")
    log.write_text("last words")
    assert LocalCluster.remove("one", root=tmp_path, keep_logs=True)
    assert [path.name for path in made.layout.home.iterdir()] == ["logs"]
    assert log.read_text() == "last words"


def test_nothing_to_open_or_remove(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"no cluster 'gone' in .*: see hack/cluster list"):
        LocalCluster.open("gone", root=tmp_path)
    assert not LocalCluster.remove("gone", root=tmp_path)


def test_bad_topology_is_found_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="cannot be read"):
        LocalCluster.start("one", root=tmp_path, nodes=tmp_path / "missing.yaml")
    assert LocalCluster.names(tmp_path) == []


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        pytest.param({"BERTH_CLUSTERS_DIR": "/a/b"}, "/a/b", id="own variable"),
        pytest.param({"XDG_STATE_HOME": "/s"}, "/s/berth/clusters", id="XDG"),
        pytest.param({"HOME": "/home/u"}, "/home/u/.local/state/berth/clusters", id="home"),
    ],
)
def test_directory_of_instances(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str) -> None:
    for name in ("BERTH_CLUSTERS_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert paths.clusters_root() == Path(expected)

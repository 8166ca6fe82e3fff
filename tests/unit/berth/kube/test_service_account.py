"""A pod's credentials: which server, which token, and when it is read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from berth.kube import service_account
from berth.kube.service_account import TOKEN_SECONDS, ServiceAccount

ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("t0\n")
    (tmp_path / "ca.crt").write_text("certificates")
    return tmp_path


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(service_account, "time", made)
    return made


async def token(account: ServiceAccount) -> str:
    return str((await account.auth_settings())["BearerToken"]["value"])


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        pytest.param("10.96.0.1", "443", "https://10.96.0.1:443", id="IPv4"),
        pytest.param("fd00::1", "6443", "https://[fd00::1]:6443", id="IPv6"),
        pytest.param("api.example", "443", "https://api.example:443", id="name"),
    ],
)
def test_the_server_is_that_of_the_environment(directory: Path, host: str, port: str, url: str) -> None:
    made = ServiceAccount(directory, {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port})
    assert (made.host, made.ssl_ca_cert, made.verify_ssl) == (url, str(directory / "ca.crt"), True)


@pytest.mark.parametrize("name", ENVIRONMENT)
@pytest.mark.parametrize("value", [None, ""])
def test_without_a_server_there_is_none(directory: Path, name: str, value: str | None) -> None:
    environment = {key: text for key, text in {**ENVIRONMENT, name: value}.items() if text is not None}
    with pytest.raises(ValueError, match="unset or empty"):
        ServiceAccount(directory, environment)


@pytest.mark.parametrize("name", ["token", "ca.crt"])
def test_a_file_is_missing_or_empty(directory: Path, name: str) -> None:
    (directory / name).write_text("\n")
    with pytest.raises(ValueError, match=f"{name} is empty"):
        ServiceAccount(directory, ENVIRONMENT)
    (directory / name).unlink()
    with pytest.raises(FileNotFoundError):
        ServiceAccount(directory, ENVIRONMENT)


async def test_a_rotated_token_is_read_after_a_minute(directory: Path, clock: Clock) -> None:
    account = ServiceAccount(directory, ENVIRONMENT)
    (directory / "token").write_text("t1\n")
    clock.now += TOKEN_SECONDS - 1
    assert await token(account) == "Bearer t0"
    clock.now += 1
    assert await token(account) == "Bearer t1"


@pytest.mark.parametrize(
    "break_it",
    [
        pytest.param(Path.unlink, id="gone"),
        pytest.param(lambda file: file.write_text(""), id="empty"),
        pytest.param(lambda file: file.write_bytes(b"\xff"), id="no text"),
    ],
)
async def test_a_token_that_goes_counts_until_there_is_another(
    directory: Path, clock: Clock, break_it: Callable[[Path], object]
) -> None:
    """It is good for most of an hour, and a leader that could not send it would end within ten seconds."""
    account = ServiceAccount(directory, ENVIRONMENT)
    break_it(directory / "token")
    clock.now += TOKEN_SECONDS
    assert await token(account) == "Bearer t0"
    (directory / "token").write_text("t2")
    assert await token(account) == "Bearer t2"


async def test_a_token_is_replaced_as_the_kubelet_does_it(tmp_path: Path, clock: Clock) -> None:
    """By a link to another directory, which is put in the place of the one before."""
    for name, text in (("old", "t0"), ("new", "t1")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(text)
    (tmp_path / "..data").symlink_to("old")
    (tmp_path / "token").symlink_to("..data/token")
    (tmp_path / "ca.crt").write_text("certificates")
    account = ServiceAccount(tmp_path, ENVIRONMENT)
    (tmp_path / "..data_tmp").symlink_to("new")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")
    clock.now += TOKEN_SECONDS
    assert await token(account) == "Bearer t1"

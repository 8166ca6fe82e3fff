"""Which proxy is used, and that one which cannot be used is said and not passed over."""

from __future__ import annotations

import pytest

from berth.kube.proxies import proxy_for

SERVER = "https://api.prod.example:6443"
PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "stated", "environment", "proxy"),
    [
        pytest.param(SERVER, None, {}, None, id="none"),
        pytest.param(SERVER, PROXY, {"HTTPS_PROXY": "http://other:1"}, PROXY, id="stated wins"),
        pytest.param(SERVER, PROXY, {"NO_PROXY": "*"}, PROXY, id="stated knows no exceptions"),
        pytest.param(SERVER, None, {"HTTPS_PROXY": PROXY}, PROXY, id="environment"),
        pytest.param(SERVER, None, {"https_proxy": PROXY}, PROXY, id="small letters"),
        pytest.param(SERVER, None, {"HTTPS_PROXY": "proxy:3128"}, PROXY, id="without scheme"),
        pytest.param(SERVER, None, {"HTTP_PROXY": PROXY}, None, id="for the other scheme"),
        pytest.param("http://api", None, {"HTTP_PROXY": PROXY}, PROXY, id="plain HTTP"),
        pytest.param("https://127.0.0.1:6443", None, {"HTTPS_PROXY": PROXY}, None, id="this machine"),
        pytest.param("https://localhost:6443", None, {"HTTPS_PROXY": PROXY}, None, id="this machine by name"),
    ],
)
def test_the_proxy(server: str, stated: str | None, environment: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(server, stated=stated, environment=environment) == proxy


@pytest.mark.parametrize(
    ("server", "listed", "direct"),
    [
        pytest.param(SERVER, "*", True, id="everything"),
        pytest.param(SERVER, "api.prod.example", True, id="the host"),
        pytest.param(SERVER, "prod.example", True, id="its domain"),
        pytest.param(SERVER, ".prod.example", True, id="its domain with a dot"),
        pytest.param(SERVER, "other, PROD.example ,", True, id="one of several"),
        pytest.param(SERVER, ".api.prod.example", False, id="a dot means below"),
        pytest.param(SERVER, "od.example", False, id="part of a name"),
        pytest.param(SERVER, "api.prod.example:6443", True, id="with the port"),
        pytest.param(SERVER, "api.prod.example:443", False, id="with another port"),
        pytest.param("https://10.96.0.1", "10.96.0.0/12", True, id="network"),
        pytest.param("https://10.96.0.1", "10.96.0.1", True, id="address"),
        pytest.param("https://10.96.0.1", "192.168.0.0/16,10.0.0.1", False, id="other addresses"),
        pytest.param("https://[fd00::1]:6443", "fd00::/8", True, id="IPv6 network"),
        pytest.param("https://[fd00::1]:6443", "fd00::1", True, id="IPv6 address"),
        pytest.param("https://[fd00::1]:6443", "[fd00::1]", True, id="IPv6 address in brackets"),
        pytest.param("https://[fd00::1]:6443", "[FD00:0::1]:6443", True, id="IPv6 address with the port"),
        pytest.param("https://[fd00::1]:6443", "[fd00::1]:443", False, id="IPv6 address with another port"),
        pytest.param("https://[fd00::1]:6443", "[fd00::2]", False, id="another IPv6 address"),
        pytest.param("https://10.96.0.1", "10.96.0.1:443", True, id="address with the port"),
        pytest.param("https://10.96.0.1", "10.96.0.1:6443", False, id="address with another port"),
    ],
)
def test_exceptions(server: str, listed: str, direct: bool) -> None:
    found = proxy_for(server, stated=None, environment={"HTTPS_PROXY": PROXY, "NO_PROXY": listed})
    assert (found is None) == direct


@pytest.mark.parametrize("proxy", ["socks5://proxy:1080", "socks5h://u:secret@proxy:1080", "ftp://proxy", "http://"])
@pytest.mark.parametrize("setting", ["proxy-url", "HTTPS_PROXY"])
def test_what_cannot_be_used_is_said(setting: str, proxy: str) -> None:
    stated, environment = (proxy, {}) if setting == "proxy-url" else (None, {"HTTPS_PROXY": proxy})
    with pytest.raises(ValueError, match=rf"{setting} '.*' cannot be used; name a proxy by http://HOST:PORT") as caught:
        proxy_for(SERVER, stated=stated, environment=environment)
    assert "secret" not in str(caught.value)

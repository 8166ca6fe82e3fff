"""Where a user's identity is found, and what counts where it is not there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from aiohttp.test_utils import make_mocked_request

from berth.api.latency_exchange import Identity, IdentitySource
from berth.runtime.proxy.identity import address_of, identity_of

if TYPE_CHECKING:
    from aiohttp import web


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        pytest.param(IdentitySource.ADDRESS, "", "192.0.2.1", id="address"),
        pytest.param(IdentitySource.HEADER, "x-user", "h", id="header, in any case"),
        pytest.param(IdentitySource.HEADER, "X-Other", "192.0.2.1", id="no such header"),
        pytest.param(IdentitySource.HEADER, "X-Empty", "192.0.2.1", id="an empty one"),
        pytest.param(IdentitySource.COOKIE, "user", "c", id="cookie"),
        pytest.param(IdentitySource.COOKIE, "User", "192.0.2.1", id="another cookie"),
        pytest.param(IdentitySource.COOKIE, "user[id]", "p", id="cookie of an array"),
        pytest.param(IdentitySource.COOKIE, "X User", "s", id="cookie with a space"),
        pytest.param(IdentitySource.QUERY, "id", "q 1", id="query, unquoted"),
        pytest.param(IdentitySource.QUERY, "none", "192.0.2.1", id="no such parameter"),
    ],
)
def test_identities(source: IdentitySource, name: str, expected: str) -> None:
    fields = {"X-User": "h", "X-Empty": "", "Cookie": "a=b; user[id]=p; X User=s; user=c"}
    request = make_mocked_request("GET", "/p?id=q%201&id=other", headers=fields)
    assert identity_of(request, Identity(source, name), address="192.0.2.1") == expected


@pytest.mark.parametrize("cookie", ["=;;;=", "user", "\x01=\x02", "user=\xff", "a" * 10_000, '"', "$Version=1; user=="])
def test_no_cookie_stops_the_reading(cookie: str) -> None:
    request = make_mocked_request("GET", "/", headers={"Cookie": cookie})
    assert isinstance(identity_of(request, Identity(IdentitySource.COOKIE, "user"), address="a"), str)


@pytest.mark.parametrize("query", ["%", "%ff%fe", "id=%00", "&&&=", "id", "id=" + "x" * 10_000])
def test_no_query_stops_the_reading(query: str) -> None:
    request = make_mocked_request("GET", f"/?{query}")
    assert isinstance(identity_of(request, Identity(IdentitySource.QUERY, "id"), address="a"), str)


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        pytest.param("192.0.2.1", "192.0.2.1", id="IPv4"),
        pytest.param("::ffff:192.0.2.1", "192.0.2.1", id="IPv4 by a socket of IPv6"),
        pytest.param("2001:db8::1", "2001:db8::1", id="IPv6"),
        pytest.param("", "", id="a socket without addresses"),
    ],
)
def test_addresses_have_one_form(remote: str, address: str) -> None:
    assert address_of(make_mocked_request("GET", "/").clone(remote=remote)) == address


@pytest.mark.parametrize(
    ("cookie", "wanted"),
    [
        pytest.param("user=c", "c", id="alone"),
        pytest.param("a=b;user=c;d=e", "c", id="without spaces"),
        pytest.param(" user = c ; a=b", "c", id="with spaces about everything"),
        pytest.param('user="c d"', "c d", id="in quotes"),
        pytest.param("user=c=d==", "c=d==", id="a value with equals signs"),
        pytest.param("user=c; user=d", "d", id="the last of several"),
        pytest.param("user=c; xuser=d; user-2=e", "c", id="names that are longer"),
        pytest.param("user; a=b", "the address", id="a name without a value"),
        pytest.param("user=; a=b", "the address", id="an empty value"),
        pytest.param("x;" * 8000 + "user=c" + ";x" * 100, "c", id="among thousands that are none"),
    ],
)
def test_a_cookie_is_read_without_the_library_for_all_of_them(cookie: str, wanted: str) -> None:
    """That takes tens of milliseconds for a header that is malformed."""

    class Request(SimpleNamespace):
        @property
        def cookies(self) -> None:
            pytest.fail("all cookies were read")

    request = cast("web.BaseRequest", Request(headers={"Cookie": cookie}))
    assert identity_of(request, Identity(IdentitySource.COOKIE, "user"), address="the address") == wanted

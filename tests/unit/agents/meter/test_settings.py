"""Settings of the meter: what is refused, and what they make."""

from __future__ import annotations

import pytest

from agents.meter.settings import END_SECONDS, MAX_LINGER, MeterSettings, host_and_port
from berth.api.latency_exchange import Identity, IdentitySource
from berth.runtime.process import SHUTDOWN_GRACE
from berth.runtime.proxy.upstream import Address
from berth.runtime.settings import SettingsError, settings_from


def of(**given: object) -> MeterSettings:
    return settings_from(MeterSettings, "meter", {f"--meter-{name.replace('_', '-')}": v for name, v in given.items()})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("127.0.0.1:8080", Address("127.0.0.1", 8080), id="IPv4"),
        pytest.param("[::1]:80", Address("::1", 80), id="IPv6"),
        pytest.param("localhost:65535", Address("localhost", 65535), id="name"),
    ],
)
def test_applications(text: str, expected: Address) -> None:
    assert host_and_port(of(application=text).application) == expected


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        pytest.param("application", "8080", id="no host"),
        pytest.param("application", ":8080", id="an empty host"),
        pytest.param("application", "::1:8080", id="IPv6 without brackets"),
        pytest.param("application", "[]:8080", id="empty brackets"),
        pytest.param("application", "h:0", id="port 0"),
        pytest.param("application", "h:65536", id="a port too high"),
        pytest.param("application", "h:٨٠", id="digits of another script"),
        pytest.param("controller", "http://berth-latency:9474", id="a controller without TLS"),
        pytest.param("controller", "https://user:secret@berth-latency", id="a password in the URL"),
        pytest.param("controller", "berth-latency:9474", id="a controller that is no URL"),
        pytest.param("identity", "Password", id="an identity that is not offered"),
        pytest.param("identity_name", "X-User", id="a name for addresses"),
        pytest.param("timestamp_header", "X Timestamp", id="no name of a header"),
        pytest.param("users", "4", id="no room for users"),
        pytest.param("linger", "8", id="longer than a process may take to stop"),
    ],
)
def test_what_cannot_be_right_is_refused(flag: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"--meter-{flag.replace('_', '-')}"):
        of(**{flag: value})


@pytest.mark.parametrize(("source", "name"), [("Header", "X User"), ("Cookie", "user=id"), ("Cookie", " user")])
def test_an_identity_has_a_name_that_a_request_can_have(source: str, name: str) -> None:
    with pytest.raises(SettingsError, match="--meter-identity-name"):
        of(identity=source, identity_name=name)
    assert of(identity="Query", identity_name=name).identity_stated() == Identity(IdentitySource.QUERY, name)


@pytest.mark.parametrize(("source", "name"), [("Header", "X-User's_1.0|~"), ("Cookie", "user[id]")])
def test_odd_names_of_headers_and_cookies_are_taken(source: str, name: str) -> None:
    assert of(identity=source, identity_name=name).identity_stated() == Identity(IdentitySource(source), name)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, Identity(), id="addresses unless said otherwise"),
        pytest.param(
            {"identity": "Cookie", "identity_name": "session"},
            Identity(IdentitySource.COOKIE, "session"),
            id="a cookie",
        ),
    ],
)
def test_identities(given: dict[str, str], expected: Identity) -> None:
    assert of(**given).identity_stated() == expected


def test_an_identity_needs_a_name() -> None:
    with pytest.raises(ValueError, match="which header tells users from each other"):
        of(identity="Header").identity_stated()


def test_the_end_is_within_what_a_process_has() -> None:
    assert MAX_LINGER + END_SECONDS < SHUTDOWN_GRACE

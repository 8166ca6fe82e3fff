import msgspec
import pytest

from berth.api.latency_exchange import (
    MAX_IDENTITY_BYTES,
    Identity,
    IdentitySource,
    Instructions,
    ProbeAnswers,
    ProbeOrder,
    ProbeOrders,
    RoundTrips,
    UserRoundTrips,
    hash_identity,
)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(RoundTrips("a", 1, (UserRoundTrips("u", (1200, 1300), 0.5, "192.0.2.1"),)), id="round trips"),
        pytest.param(RoundTrips("a", 2), id="no news"),
        pytest.param(Instructions(), id="no policy"),
        pytest.param(
            Instructions("web", "a2V5", Identity(IdentitySource.COOKIE, "session"), True, 2.5, {"u": "edge-1"}),
            id="instructions",
        ),
        pytest.param(ProbeOrders((ProbeOrder("7", "2001:db8::1"),)), id="orders"),
        pytest.param(ProbeAnswers(), id="nothing to answer"),
    ],
)
def test_messages_are_read_as_they_were_written(message: msgspec.Struct) -> None:
    assert msgspec.json.decode(msgspec.json.encode(message), type=type(message)) == message


def test_names_on_the_wire() -> None:
    assert msgspec.json.encode(Instructions("web", tell_addresses=True)) == b'{"policy":"web","tellAddresses":true}'


def test_a_hash_is_keyed_short_and_of_letters_and_digits() -> None:
    found = hash_identity(b"key", "alice")
    assert len(found) == 26
    assert found.isalnum()
    assert found == found.lower()
    assert found != hash_identity(b"other", "alice")
    assert found != hash_identity(b"key", "bob")


@pytest.mark.parametrize(
    "identity",
    [
        pytest.param("", id="empty"),
        pytest.param("\udcff", id="bytes that are no UTF-8"),
        pytest.param("x" * (MAX_IDENTITY_BYTES + 1), id="huge"),
    ],
)
def test_any_identity_has_a_hash(identity: str) -> None:
    assert len(hash_identity(b"key", identity)) == 26

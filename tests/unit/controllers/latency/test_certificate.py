"""The endpoint's certificate: trusted by itself, for its name, for as long as it is valid."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from berth.api.latency_exchange import SERVER_NAME
from berth.runtime.measuring.calls import trusting
from controllers.latency.certificate import LEAST_LEFT, LIFETIME, KeyPair, is_usable, make_key_pair, server_context

NOW = datetime.now(UTC)
PAIR = make_key_pair(NOW)

AUTHORITY = ec.generate_private_key(ec.SECP256R1())


def signed(by: str = "an authority", *, name: str = SERVER_NAME, usage: ObjectIdentifier | None = None) -> KeyPair:
    """A pair that others have made, of an authority that the certificate does not bring along."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (name, by))
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + LIFETIME)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    if usage is not None:
        made = made.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate = made.sign(AUTHORITY, hashes.SHA256())
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), encoded)


OF_AN_AUTHORITY = signed()


def handshake(pair: KeyPair, trusted: KeyPair, name: str) -> None:
    """Let a client and a server talk in memory."""
    client_in, client_out, server_in, server_out = (ssl.MemoryBIO() for _ in range(4))
    client = trusting(trusted.certificate).wrap_bio(client_in, client_out, server_hostname=name)
    server = server_context(pair).wrap_bio(server_in, server_out, server_side=True)
    done = set[ssl.SSLObject]()
    for _ in range(10):
        for each, incoming, outgoing in ((client, client_in, server_out), (server, server_in, client_out)):
            incoming.write(outgoing.read())
            try:
                each.do_handshake()
                done.add(each)
            except ssl.SSLWantReadError:
                pass
        if len(done) == 2:
            return
    raise AssertionError("the handshake does not end")


@pytest.mark.parametrize(
    "pair", [pytest.param(PAIR, id="our own"), pytest.param(OF_AN_AUTHORITY, id="of an authority that nobody knows")]
)
def test_who_trusts_it_reaches_it_by_its_name(pair: KeyPair) -> None:
    handshake(pair, pair, SERVER_NAME)


@pytest.mark.parametrize(
    "ahead", [pytest.param(timedelta(days=30), id="a month"), pytest.param(timedelta(days=3000), id="eight years")]
)
def test_one_that_was_made_by_a_clock_that_was_ahead_is_valid_once_the_clock_is_right(ahead: timedelta) -> None:
    pair = make_key_pair(NOW + ahead)
    handshake(pair, pair, SERVER_NAME)
    assert is_usable(pair, NOW)


@pytest.mark.parametrize(
    ("trusted", "name"),
    [
        pytest.param(make_key_pair(NOW), SERVER_NAME, id="another certificate of that name"),
        pytest.param(PAIR, "example.com", id="another name"),
        pytest.param(make_key_pair(NOW - LIFETIME - timedelta(days=1)), SERVER_NAME, id="one that has expired"),
    ],
)
def test_nobody_else_does(trusted: KeyPair, name: str) -> None:
    with pytest.raises(ssl.SSLError):
        handshake(PAIR, trusted, name)


@pytest.mark.parametrize(
    ("pair", "at", "usable"),
    [
        pytest.param(PAIR, NOW, True, id="new"),
        pytest.param(PAIR, NOW + LIFETIME - LEAST_LEFT - timedelta(days=1), True, id="just long enough"),
        pytest.param(PAIR, NOW + LIFETIME - LEAST_LEFT + timedelta(days=1), False, id="too short"),
        pytest.param(PAIR, NOW - LIFETIME - timedelta(days=2), False, id="not yet"),
        pytest.param(PAIR._replace(key=make_key_pair(NOW).key), NOW, False, id="of another key"),
        pytest.param(PAIR._replace(certificate=b"none"), NOW, False, id="no certificate"),
        pytest.param(KeyPair(b"", b""), NOW, False, id="nothing"),
        pytest.param(OF_AN_AUTHORITY, NOW, True, id="of an authority"),
        pytest.param(signed(name="latency.example"), NOW, False, id="of another name"),
        pytest.param(signed(usage=ExtendedKeyUsageOID.CLIENT_AUTH), NOW, False, id="for clients alone"),
    ],
)
def test_what_a_controller_goes_on_with(pair: KeyPair, at: datetime, usable: bool) -> None:
    assert is_usable(pair, at) is usable

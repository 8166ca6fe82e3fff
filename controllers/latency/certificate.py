"""The endpoint's certificate: one that it signs itself, for one name; whoever asks trusts it and nothing else. No I/O.

There is no authority behind it: the ConfigMap that names the endpoint has the certificate, and who may write that is
whom agents believe.
"""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from berth.api.latency_exchange import SERVER_NAME
from berth.runtime.measuring.calls import trusting

LIFETIME: Final = timedelta(days=3650)
"""How long a certificate is valid from now on."""
LEAST_LEFT: Final = timedelta(days=365)
"""How long it has to be valid still; else a controller makes another one."""
_BEFORE: Final = LIFETIME
"""How long it was valid before it was made: by a clock that was ahead then it is valid once that was put right."""

_TURNS: Final = 3
"""How often each side speaks in a handshake at the most."""


class KeyPair(NamedTuple):
    """A certificate and its private key, in PEM."""

    certificate: bytes
    """public"""
    key: bytes
    """secret"""


def make_key_pair(now: datetime) -> KeyPair:
    """Return a new pair that is valid now, and was for ten years: clocks differ."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SERVER_NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(SERVER_NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), encoded)


def is_usable(pair: KeyPair, now: datetime) -> bool:
    """Return whether a pair can be read, is believed by whoever trusts it, and is valid for long enough."""
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        _shake_hands(pair)
    except (ValueError, ssl.SSLError):
        return False
    return certificate.not_valid_before_utc <= now and now + LEAST_LEFT <= certificate.not_valid_after_utc


def server_context(pair: KeyPair) -> ssl.SSLContext:
    """Return the TLS settings of a server with that pair.

    Raises:
        ssl.SSLError: the pair cannot be read, or does not belong together.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Python reads keys of files alone; one in memory is never on a disk.
    file = os.memfd_create("berth-latency")
    try:
        os.write(file, pair.key + b"\n" + pair.certificate)
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
    return context


def _shake_hands(pair: KeyPair) -> None:
    """Let a client that trusts the certificate and nothing else reach a server that has the pair, in memory.

    Raises:
        ssl.SSLError, ValueError: it does not believe it.
    """
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(pair.certificate).wrap_bio(to_client, to_server, server_hostname=SERVER_NAME)
    server = server_context(pair).wrap_bio(to_server, to_client, server_side=True)
    for each in (client, server) * _TURNS:
        with suppress(ssl.SSLWantReadError):
            each.do_handshake()
    client.getpeercert()  # which it has where that is over

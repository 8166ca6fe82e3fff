"""Which key the users of a policy are hashed with. Left out: Secret and ConfigMap (tests/integration/test_rbac.py)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from berth.api.latency_exchange import hash_identity
from controllers.latency.certificate import KeyPair
from controllers.latency.identity import Identity, _read

NO_PAIR = KeyPair(b"", b"")


def test_each_policy_has_a_key_of_its_own_that_stays() -> None:
    identity = Identity(NO_PAIR, b"k" * 32)
    keys = [base64.b64decode(identity.key_of(uid)) for uid in ("one", "two", "one")]
    assert keys[0] == keys[2] != keys[1]
    assert {len(key) for key in keys} == {32}
    assert hash_identity(keys[0], "alice") != hash_identity(keys[1], "alice")
    assert Identity(NO_PAIR, b"j" * 32).key_of("one") != identity.key_of("one")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="no data"),
        pytest.param({}, id="nothing in it"),
        pytest.param({"tls.crt": None, "tls.key": None, "users.key": None}, id="nulls"),
        pytest.param({"users.key": "="}, id="no base64"),
        pytest.param({"users.key": base64.b64encode(b"short").decode()}, id="a key that is too short"),
    ],
)
def test_a_secret_without_a_key_of_users(data: dict[str, Any] | None) -> None:
    assert _read({"data": data}) is None

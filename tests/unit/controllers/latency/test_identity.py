"""Which key the users of a policy are hashed with. Left out: Secret and ConfigMap (tests/integration/test_rbac.py)."""

from __future__ import annotations

import base64

from berth.api.latency_exchange import hash_identity
from controllers.latency.certificate import KeyPair
from controllers.latency.identity import Identity

NO_PAIR = KeyPair(b"", b"")


def test_each_policy_has_a_key_of_its_own_that_stays() -> None:
    identity = Identity(NO_PAIR, b"k" * 32)
    keys = [base64.b64decode(identity.key_of(uid)) for uid in ("one", "two", "one")]
    assert keys[0] == keys[2] != keys[1]
    assert {len(key) for key in keys} == {32}
    assert hash_identity(keys[0], "alice") != hash_identity(keys[1], "alice")
    assert Identity(NO_PAIR, b"j" * 32).key_of("one") != identity.key_of("one")

"""Answers of the controller: what is followed, and what is refused."""

from __future__ import annotations

import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.latency_exchange import Identity, IdentitySource
from berth.runtime.measuring.instructions import decode_instructions

KEY = base64.b64encode(b"k" * 32).decode()


def answer(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def test_a_policy_comes_with_its_key() -> None:
    identity = {"source": "Header", "name": "X-User"}
    found, key = decode_instructions(answer(policy="near", key=KEY, identity=identity, tellAddresses=True))
    assert (found.policy, key, found.tell_addresses) == ("near", b"k" * 32, True)
    assert found.identity == Identity(IdentitySource.HEADER, "X-User")


def test_without_a_policy_there_is_no_key() -> None:
    found, key = decode_instructions(answer(key=KEY))
    assert (found.policy, key) == ("", b"")


def test_what_is_not_known_yet_is_left_alone() -> None:
    assert decode_instructions(answer(policy="near", key=KEY, another=1))[0].policy == "near"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(b"", "the answer is none", id="nothing"),
        pytest.param(b"<html>", "the answer is none", id="a page"),
        pytest.param(b'{"policy": "\xff"}', "the answer is none", id="no UTF-8"),
        pytest.param(answer(policy=7), "the answer is none", id="another type"),
        pytest.param(answer(policy="near", key="?"), "the answer is none", id="a key that is none"),
        pytest.param(answer(policy="near", key="ü"), "the answer is none", id="a key beyond ASCII"),
        pytest.param(answer(policy="near"), "the key has 0 bytes", id="no key"),
        pytest.param(answer(policy="near", key="YQ=="), "the key has 1 bytes", id="a short key"),
        pytest.param(
            answer(policy="near", key=KEY, identity={"source": "Cookie"}), "is a Cookie without", id="a nameless cookie"
        ),
    ],
)
def test_what_cannot_be_followed(body: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        decode_instructions(body)


@pytest.mark.parametrize(
    ("stated", "followed"),
    [
        pytest.param(5, 5, id="usual"),
        pytest.param(0, 0.5, id="without pause"),
        pytest.param(-1, 0.5, id="negative"),
        pytest.param(1e9, 300, id="hardly ever"),
    ],
)
def test_intervals_are_bounded(stated: float, followed: float) -> None:
    assert decode_instructions(answer(interval=stated))[0].interval == followed


@given(body=st.binary())
def test_whatever_comes_is_followed_or_refused(body: bytes) -> None:
    with contextlib.suppress(ValueError):
        decode_instructions(body)

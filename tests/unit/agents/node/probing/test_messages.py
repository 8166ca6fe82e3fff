"""What the agent and its prober tell each other arrives as it was said, and nothing else is taken for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.node.probing.messages import (
    Order,
    decode_input,
    decode_order,
    decode_output,
    decode_round,
    encode_found,
    encode_order,
    encode_round,
    encode_user,
)
from agents.node.probing.rounds import Round, Target
from agents.node.probing.user_probes import FoundUser, UserTarget
from agents.node.probing.window import Method, Sample

ROUND_TRIPS = st.none() | st.integers(min_value=1, max_value=10**9)
TEXTS = st.text(max_size=8)
TARGETS = st.builds(Target, TEXTS, TEXTS, st.integers(min_value=0, max_value=65535))
SAMPLES = st.builds(Sample, st.floats(min_value=0, max_value=1e9), st.sampled_from(Method), ROUND_TRIPS)
ROUNDS = st.builds(
    Round,
    st.lists(ROUND_TRIPS, max_size=6).map(tuple),
    st.dictionaries(TEXTS, st.lists(SAMPLES, max_size=4).map(tuple), max_size=4),
)


@given(order=st.builds(Order, st.lists(TARGETS, max_size=4).map(tuple)))
def test_orders(order: Order) -> None:
    line = encode_order(order)
    assert line.index(b"\n") == len(line) - 1
    assert decode_order(line) == order


@given(order=st.builds(Order, st.lists(TARGETS, max_size=4).map(tuple)), user=st.builds(UserTarget, TEXTS, TEXTS))
def test_orders_and_users_are_told_apart(order: Order, user: UserTarget) -> None:
    assert decode_input(encode_order(order)) == order
    assert decode_input(encode_user(user)) == user


@given(
    measured=ROUNDS,
    found=st.builds(
        FoundUser,
        TEXTS,
        st.lists(st.integers(min_value=1, max_value=10**9), max_size=4).map(tuple),
        TEXTS,
        st.booleans(),
    ),
)
def test_rounds_and_users_are_told_apart(measured: Round, found: FoundUser) -> None:
    assert decode_output(encode_round(measured)) == measured
    assert decode_output(encode_found(found)) == found


@given(measured=ROUNDS)
def test_rounds(measured: Round) -> None:
    line = encode_round(measured)
    assert line.index(b"\n") == len(line) - 1
    found = decode_round(line)
    assert found == measured
    assert all(isinstance(sample.method, Method) for samples in found.samples.values() for sample in samples)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"Traceback (most recent call last):\n", id="no JSON"),
        pytest.param(b"{}\n", id="no round"),
        pytest.param(b'{"self":[],"samples":{"n":[[0,"PIGEON",1]]}}\n', id="unknown method"),
        pytest.param(b"3\n", id="a number"),
        pytest.param(b"\xff\n", id="no text"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="too deep"),
        pytest.param(b'{"self":[],"samples":[]}\n', id="samples without names"),
        pytest.param(b'{"self":{"a":1},"samples":{}}\n', id="self-probes with names"),
        pytest.param(b'{"self":["9"],"samples":{}}\n', id="a self-probe that is a text"),
        pytest.param(b'{"self":[0],"samples":{}}\n', id="a self-probe that took no time"),
        pytest.param(b'{"self":[],"samples":{"n":[[1,"TCP","9"]]}}\n', id="a round trip that is a text"),
        pytest.param(b'{"self":[],"samples":{"n":[[1,"TCP",true]]}}\n', id="a round trip that is a truth"),
        pytest.param(b'{"self":[],"samples":{"n":[[1,"TCP",-5]]}}\n', id="a round trip into the past"),
        pytest.param(b'{"self":[],"samples":{"n":[[1,"TCP",1e999]]}}\n', id="a round trip without end"),
        pytest.param(b'{"self":[],"samples":{"n":[["1","TCP",9]]}}\n', id="a time that is a text"),
        pytest.param(b'{"self":[],"samples":{"n":[[1%s,"TCP",9]]}}\n' % (b"0" * 400), id="a time too far"),
        pytest.param(b'{"self":[],"samples":{"n":[[NaN,"TCP",9]]}}\n', id="a time that is none"),
        pytest.param(b'{"found":["7",[null],""]}\n', id="a user without a round trip"),
        pytest.param(b'{"found":[7,[20],""]}\n', id="a user whose name is a number"),
        pytest.param(b'{"found":["7",[20]]}\n', id="half a user"),
    ],
)
def test_neither_a_round_nor_a_user(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_output(line)

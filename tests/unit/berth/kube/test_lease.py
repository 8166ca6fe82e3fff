"""Timing of leader election. The election itself: tests/integration/test_kube_lease.py."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube import lease
from berth.kube.client import ApiClient
from berth.kube.lease import LeaseLock, LeaseTiming
from tests.support.api_server import Answer, api_server, refusal

LEASE = {"kind": "Lease", "metadata": {"name": "berth", "resourceVersion": "1"}, "spec": {"holderIdentity": "me"}}


def test_defaults_are_those_of_kubernetes() -> None:
    timing = LeaseTiming()
    assert (timing.duration, timing.renew_deadline, timing.retry_period) == (15.0, 10.0, 2.0)
    assert LeaseTiming.of(15.0) == timing


@pytest.mark.parametrize(
    ("duration", "renew_deadline", "retry_period"),
    [
        pytest.param(10, 10, 2, id="deadline not below duration"),
        pytest.param(10, 12, 2, id="deadline above duration: two leaders"),
        pytest.param(15, 10, 10, id="one attempt only"),
        pytest.param(15, 10, 11, id="no attempt before the deadline"),
        pytest.param(15, 10, 0, id="no pause"),
        pytest.param(15, 10, -1, id="negative pause"),
        pytest.param(0, 0, 0, id="zeros"),
        pytest.param(math.nan, 10, 2, id="nan"),
        pytest.param(15, math.nan, 2, id="nan deadline"),
        pytest.param(math.inf, 10, 2, id="for ever"),
    ],
)
def test_timing_that_allows_two_leaders_is_refused(duration: float, renew_deadline: float, retry_period: float) -> None:
    with pytest.raises(ValueError, match=r"duration > renew_deadline > retry_period > 0, not "):
        LeaseTiming(duration=duration, renew_deadline=renew_deadline, retry_period=retry_period)


@given(duration=st.floats(min_value=0.01, max_value=10_000))
def test_any_duration_keeps_the_order_and_the_proportions(duration: float) -> None:
    timing = LeaseTiming.of(duration)
    assert timing.duration > timing.renew_deadline > timing.retry_period > 0
    assert timing.renew_deadline == pytest.approx(duration * 10 / 15)
    assert timing.retry_period == pytest.approx(duration * 2 / 15)


@pytest.mark.parametrize("duration", [0, -5, math.nan, math.inf])
def test_no_timing_for_a_senseless_duration(duration: float) -> None:
    with pytest.raises(ValueError, match="lease timing must satisfy"):
        LeaseTiming.of(duration)


@given(duration=st.floats(min_value=0.01, max_value=10_000))
def test_published_duration_never_ends_before_the_real_one(duration: float) -> None:
    published = LeaseTiming.of(duration).published
    assert published >= duration
    assert published < duration + 1


def test_the_clock_is_not_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    before = lease.boot_clock()
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert before <= lease.boot_clock() < before + 60


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        pytest.param(LEASE, True, id="as written"),
        pytest.param(LEASE | {"spec": {"holderIdentity": "you"}}, False, id="another's"),
        pytest.param({"kind": "LeaseList", "metadata": {"resourceVersion": "1"}, "items": []}, False, id="a list"),
        pytest.param({"login": "https://sso.example"}, False, id="JSON of something on the way"),
    ],
)
async def test_a_lease_is_taken_only_if_the_answer_says_so(answer: object, taken: bool) -> None:
    with api_server(
        lambda request: refusal(404, "NotFound") if request.method == "GET" else Answer(201, answer)
    ) as server:
        async with ApiClient(server.connection(), retries=0) as client:
            lock = LeaseLock(client, name="berth", namespace="ns", identity="me", timing=LeaseTiming())
            assert await lock._try() is taken


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({**LEASE, "metadata": {"name": "berth"}}, id="no version"),
        pytest.param({**LEASE, "metadata": {"name": "berth", "resourceVersion": 1}}, id="a version that is no text"),
        pytest.param({**LEASE, "spec": []}, id="a list"),
        pytest.param({**LEASE, "spec": {"holderIdentity": ["me"]}}, id="a holder that is none"),
        pytest.param({**LEASE, "spec": {"leaseTransitions": "x"}}, id="transitions that are no number"),
        pytest.param(
            {**LEASE, "spec": {"holderIdentity": "you", "leaseDurationSeconds": "x"}}, id="a duration that is none"
        ),
        pytest.param({**LEASE, "kind": "PartialObjectMetadata", "spec": None}, id="a part of it"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_an_odd_lease_is_an_attempt_that_failed(method: str, odd: object) -> None:
    """Otherwise one odd answer of something on the way would end the leader, or have it take what another holds."""
    with api_server(lambda request: Answer(200, odd if request.method == method else LEASE)) as server:
        async with ApiClient(server.connection(), retries=0) as client:
            lock = LeaseLock(client, name="berth", namespace="ns", identity="me", timing=LeaseTiming())
            assert await lock._try() is False
        assert server.count("PUT") == (method == "PUT")


@pytest.mark.parametrize("spec", [{}, None, {"holderIdentity": None, "leaseTransitions": None}], ids=str)
async def test_a_lease_without_a_holder_is_taken(spec: object) -> None:
    with api_server(lambda request: Answer(200, LEASE | ({"spec": spec} if request.method == "GET" else {}))) as server:
        async with ApiClient(server.connection(), retries=0) as client:
            lock = LeaseLock(client, name="berth", namespace="ns", identity="me", timing=LeaseTiming())
            assert await lock._try() is True

"""A meter behind a router: whatever keys the two have, the way between them is no user's.

Left out: what the router itself tells of its users (tests/unit/agents/router).
"""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from agents.router.balancer import Backend
from berth.runtime.proxy.upstream import Address
from tests.support.proxying import answering, application, get, status_of
from tests.unit.agents.meter.test_meter import OK, metering
from tests.unit.agents.router.test_routing import router

OLD, NEW = b"o" * 32, b"n" * 32


def total(name: str) -> float:
    return REGISTRY.get_sample_value(name) or 0.0


@pytest.mark.parametrize(
    ("router_key", "meter_key", "proven"),
    [
        pytest.param(NEW, NEW, True, id="both have the key"),
        pytest.param(OLD, NEW, False, id="a router that has the key of before"),
        pytest.param(NEW, OLD, False, id="a meter that has the key of before"),
        pytest.param(b"", NEW, False, id="a router without a key"),
        pytest.param(NEW, None, False, id="a meter without a key"),
        pytest.param(b"", None, False, id="none has a key"),
    ],
)
async def test_the_way_from_a_router_is_no_users(router_key: bytes, meter_key: bytes | None, proven: bool) -> None:
    before = total("berth_meter_routed_total"), total("berth_meter_unproven_marks_total")
    async with application(answering(OK)) as app, metering(app) as stand:
        if meter_key is not None:
            stand.follow(key=meter_key)
        pod = Backend(Address("127.0.0.1", stand.server.port), "a", "pod")
        async with router(pod) as under_test:
            under_test.knowledge.key = router_key
            for _ in range(2):
                assert status_of(await under_test.ask(get("/", "X-User: ann"))) == 200
        assert (list(stand.table), stand.came) == ([], [])
        assert b"berth-router:" not in app.heads[0].lower()
    routed, unproven = (
        total("berth_meter_routed_total") - before[0],
        total("berth_meter_unproven_marks_total") - before[1],
    )
    assert (routed, unproven) == ((2, 0) if proven else (0, 2))

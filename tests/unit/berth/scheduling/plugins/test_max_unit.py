"""MaxUnit: the largest pod of an opaque node."""

from __future__ import annotations

from berth.scheduling.decision import Outcome
from tests.support.placement import Lab, lone, zoned


def reasons(outcome: Outcome) -> dict[str, int]:
    (failure,) = outcome.failures
    return {item.reason: item.count for item in failure.rejections}


def test_largest_unit() -> None:
    node = zoned("n1", cpu=100)
    node.metadata.annotations["berth.dev/max-unit-cpu"] = "8"
    lab = Lab([node])
    assert lab.place_alone(lone("fits", cpu="8")).complete
    assert reasons(lab.place_alone(lone("large", cpu="9"))) == {
        "node(s) had a largest unit of cpu below the pod's request": 1
    }

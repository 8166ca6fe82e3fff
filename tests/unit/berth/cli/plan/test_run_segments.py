"""Plans over segments of a zone: nearer ones are taken, and what is shown of them."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.labels import LABEL_SEGMENT
from berth.cli.plan.tables import plan_page
from tests.support import plans
from tests.support.topologies import Stated, level

PAIR = plans.appgroup("shop", {"front": ["back"], "back": []})


def node(name: str, segment: str, zone: str = "a") -> dict[str, Any]:
    """A node that takes one pod."""
    made = plans.node(name, zone=zone, region="r", cpu="1500m")
    made["metadata"]["labels"][LABEL_SEGMENT] = segment
    return made


def costs(segments: Stated) -> dict[str, Any]:
    net = plans.topology({("a", "b"): 50})
    net["spec"]["weights"][0]["topologyList"].append(level(LABEL_SEGMENT, segments))
    return net


def members() -> list[dict[str, Any]]:
    return [plans.pod("f", group="shop", workload="front"), plans.pod("b", group="shop", workload="back")]


NODES = [node("n1", "s1"), node("n2", "s2"), node("n3", "s3"), node("n4", "s1", zone="b")]
BOTH: Stated = {f"{one}>{other}": 30 for one in ("s1", "s2", "s3") for other in ("s1", "s2", "s3") if one != other}


@pytest.mark.parametrize(
    ("near", "nodes"),
    [
        pytest.param({"s2>s3": 2, "s3>s2": 2}, {"n2", "n3"}, id="two-near-ones"),
        pytest.param({"s1>s3": 2, "s3>s1": 2}, {"n1", "n3"}, id="two-others"),
        pytest.param({"s1>s2": {"isAllowed": False}, "s2>s1": {"isAllowed": False}, "s1>s3": 40, "s3>s1": 40},
                     {"n2", "n3"}, id="one-is-cut-and-one-is-dearer"),
    ],
)  # fmt: skip
def test_callers_and_callees_go_to_segments_that_are_near(near: Stated, nodes: set[str]) -> None:
    document = plans.made(*NODES, costs({**BOTH, **near}), PAIR, *members())
    assert set(plans.where(document).values()) == nodes
    assert {item["segment"] for item in document["pods"]} == {"s" + name[1] for name in nodes}


def test_a_limit_rules_out_segments_that_are_further() -> None:
    limited = plans.appgroup("shop", {"front": ["back"], "back": []}, maxNetworkCost=20)
    far = plans.made(*NODES, costs(BOTH), limited, *members())
    assert len(plans.where(far)) < 2
    near = plans.made(*NODES, costs({**BOTH, "s1>s2": 20, "s2>s1": 20}), limited, *members())
    assert set(plans.where(near).values()) == {"n1", "n2"}


def test_a_budget_between_segments_holds() -> None:
    hungry = plans.appgroup("shop", {"front": ["back"], "back": []}, minBandwidth="10M")
    links: Stated = {pair: {"networkCost": 2, "bandwidthCapacity": "5M"} for pair in BOTH if "s3" not in pair}
    document = plans.made(*NODES[:3], costs({**BOTH, **links}), hungry, *members())
    assert "n3" in plans.where(document).values()


def test_the_page_has_the_segment_with_the_zone() -> None:
    page = plan_page(plans.made(*NODES, costs(BOTH), PAIR, *members()), show=("pods", "nodes"), width=160)
    assert page.count("a/s") == 4  # of two pods, and of their nodes

"""Priorities inside an AppGroup whose pods do not all have room."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from berth.kube.objects import Pod
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Outcome
from berth.scheduling.gang.strategies import DEFAULT, REPLICAS
from tests.support.placement import Lab, chain, group_object, member, where, zoned

ROOM = 1000
"""Milli-cores of every node"""


def pods(amounts: Mapping[str, tuple[int, int]]) -> list[Pod]:
    """Pods of workloads named by their first letters, by priority and milli-cores."""
    return [
        member(name, name[0], cpu=f"{cpu}m", spec={"priority": priority}) for name, (priority, cpu) in amounts.items()
    ]


@pytest.fixture(params=[REPLICAS, DEFAULT])
def profile(request: pytest.FixtureRequest) -> Profile:
    return Profile.model_validate({"gang": {"strategy": request.param}})


def place(stage: Lab, amounts: Mapping[str, tuple[int, int]], *, partial: bool = True) -> Outcome:
    shop = stage.group(group_object("shop", *chain("a", "b", "c")))
    return stage.place(shop, *pods(amounts), partial=partial)


@pytest.mark.parametrize(
    ("nodes", "amounts", "placed"),
    [
        pytest.param(1, {"a0": (10, 800), "b0": (0, 400), "b1": (0, 400)}, "a0", id="one large beside two small"),
        pytest.param(1, {"a0": (0, 800), "b0": (10, 400), "b1": (10, 400)}, "b0 b1", id="two small beside one large"),
        pytest.param(1, {"a0": (10, 700), "b0": (5, 300), "b1": (0, 200), "c0": (0, 200)}, "a0 b0", id="three classes"),
        pytest.param(
            2, {"a0": (10, 800), "b0": (0, 700), "c0": (0, 700), "b1": (0, 200)}, "a0 b1 b0|a0 b1 c0", id="what is left"
        ),
        pytest.param(1, {"a0": (10, 1200), "b0": (0, 400)}, "b0", id="one that fits nowhere"),
        pytest.param(1, {"a0": (0, 800), "b0": (0, 400), "b1": (0, 400)}, "b0 b1|a0", id="no priorities"),
        pytest.param(1, {"a0": (0, 800), "b0": (10, 300)}, "b0", id="a small one beside a large one"),
        pytest.param(1, {"a0": (0, 300), "b0": (0, 300), "c0": (10, 700)}, "c0 a0|c0 b0", id="the last of a chain"),
        pytest.param(2, {"a0": (10, 800), "b0": (0, 400), "b1": (0, 400)}, "a0 b0 b1", id="room for all"),
    ],
)
def test_a_higher_class_has_the_room_first(
    profile: Profile, nodes: int, amounts: dict[str, tuple[int, int]], placed: str
) -> None:
    stage = Lab([zoned(f"n{number}", cpu=f"{ROOM}m") for number in range(nodes)], profile)
    outcome = place(stage, amounts)
    assert set(where(outcome)) in [set(names.split()) for names in placed.split("|")]
    assert sorted(failure.pod.metadata.name for failure in outcome.failures) == sorted(
        set(amounts) - set(where(outcome))
    )
    assert stage.over_committed() == []


def test_what_is_placed_of_a_higher_class_draws_the_next(profile: Profile) -> None:
    nodes = [zoned("n0", "z3", "r2", cpu="700m"), zoned("n1", "z1", cpu="900m"), zoned("n2", "z1", cpu="400m")]
    stage = Lab(nodes, profile)
    outcome = place(stage, {"a0": (10, 900), "b0": (0, 400), "b1": (0, 400), "b2": (0, 400)})
    assert where(outcome)["a0"] == "n1"
    assert set(where(outcome).values()) == {"n0", "n1", "n2"}
    assert len(outcome.failures) == 1


def test_nothing_is_placed_in_part_while_it_is_all_or_nothing(profile: Profile) -> None:
    stage = Lab([zoned("n0", cpu=f"{ROOM}m")], profile)
    outcome = place(stage, {"a0": (10, 800), "b0": (0, 400), "b1": (0, 400)}, partial=False)
    assert outcome.decisions == ()
    assert not any(stage.cache.state.pods_on("n0"))


def test_a_plan_that_took_all_the_time_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Lab([zoned("n0", cpu=f"{ROOM}m")], Profile.model_validate({"gang": {"strategy": REPLICAS}}))
    assume = Cache.assume

    def slowly(cache: Cache, pod: Pod, node: str) -> None:
        stage.clock.advance(100.0)
        assume(cache, pod, node)

    monkeypatch.setattr(Cache, "assume", slowly)
    outcome = place(stage, {"a0": (10, 800), "b0": (0, 400), "b1": (0, 400)})
    assert set(where(outcome)) == {"b0", "b1"}
    assert outcome.cut_short

"""The status that follows from spec and pods: every field, its times, and that it is a fixed point."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.appgroup import MAX_PODS_SCHEDULED, AppGroupStatus
from berth.api.conditions import ConditionStatus, find_condition
from controllers.appgroup.plan import plan_spec
from controllers.appgroup.pods import PodFacts
from controllers.appgroup.status import desired_status, read_status
from hack.harness.boutique import appgroup, boutique

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
CREATED = datetime(2026, 3, 1, 11, 0, tzinfo=UTC)

CHAIN = {"web": ["cart"], "cart": ["db"]}
SELECTORS = ["web", "cart", "db"]


def facts(name: str, workload: str, **changes: Any) -> PodFacts:
    values: dict[str, Any] = {
        "name": name,
        "uid": f"uid-{name}",
        "workload": workload,
        "node": "n1",
        "phase": "Running",
        "created": CREATED,
        "deleting": False,
    }
    return PodFacts(**{**values, **changes})


def status(
    pods: list[PodFacts],
    *,
    current: AppGroupStatus | None = None,
    now: datetime = NOW,
    document: dict[str, Any] | None = None,
) -> AppGroupStatus:
    plan = plan_spec(document or appgroup(CHAIN, SELECTORS))
    return desired_status(plan, pods, current or AppGroupStatus(), now=now)


def unreadable(*, generation: int = 1) -> dict[str, Any]:
    """A group whose spec no schema accepts."""
    document = appgroup(CHAIN, SELECTORS, algorithm="TarjanSort", generation=generation)
    return {**document, "spec": {**document["spec"], "numMembers": 0}}


ALL = [facts("web-1", "web"), facts("cart-1", "cart"), facts("db-1", "db")]


def test_a_group_without_pods() -> None:
    result = status([])
    assert result.running_workloads == 0
    assert result.pods_scheduled == ()
    assert result.pods_scheduled_total == 0
    assert result.schedule_start_time is None
    assert result.order_summary == "web,cart,db"
    assert result.observed_generation == 1
    assert result.topology_calculation_time == NOW.replace(microsecond=0)


@pytest.mark.parametrize(
    ("pods", "running"),
    [
        pytest.param(ALL, 3, id="one pod each"),
        pytest.param([*ALL, facts("web-2", "web")], 4, id="replicas count one by one"),
        pytest.param([facts("web-1", "web", phase="Pending")], 0, id="pending"),
        pytest.param([facts("web-1", "web", phase="Succeeded")], 0, id="succeeded"),
        pytest.param([facts("x-1", "stranger")], 1, id="the group's label alone makes a member"),
        pytest.param([facts("web-1", "web", deleting=True)], 1, id="still running while it stops"),
    ],
)
def test_running_workloads(pods: list[PodFacts], running: int) -> None:
    assert status(pods).running_workloads == running


def test_pods_scheduled_follow_the_order_and_then_the_name() -> None:
    pods = [
        facts("web-2", "web", node="n3"),
        facts("db-1", "db"),
        facts("web-1", "web", node="n2"),
        facts("cart-1", "cart", node="", phase="Pending"),
        facts("cart-0", "cart", phase="Failed"),
        facts("x-1", "stranger"),
    ]
    result = status(pods)
    assert [(item.workload.selector, item.pod, item.replica_id, item.hostname) for item in result.pods_scheduled] == [
        ("web", "web-1", "uid-web-1", "n2"),
        ("web", "web-2", "uid-web-2", "n3"),
        ("db", "db-1", "uid-db-1", "n1"),
    ]
    assert result.pods_scheduled_total == 3


def test_pods_scheduled_are_cut_but_counted() -> None:
    pods = [facts(f"web-{number:04}", "web") for number in range(MAX_PODS_SCHEDULED + 7)]
    result = status(pods)
    assert len(result.pods_scheduled) == MAX_PODS_SCHEDULED
    assert result.pods_scheduled_total == MAX_PODS_SCHEDULED + 7


def test_schedule_start_is_the_creation_of_the_first_pod() -> None:
    early = CREATED - timedelta(minutes=1)
    assert status([*ALL, facts("web-0", "web", created=early)]).schedule_start_time == early


def test_schedule_start_never_moves() -> None:
    first = status(ALL)
    assert status([], current=first).schedule_start_time == CREATED
    earlier = facts("web-0", "web", created=CREATED - timedelta(hours=1))
    assert status([*ALL, earlier], current=first).schedule_start_time == CREATED


@pytest.mark.parametrize(
    ("document", "moved"),
    [
        pytest.param(appgroup(CHAIN, SELECTORS, generation=2), False, id="same spec"),
        pytest.param(appgroup({**CHAIN, "web": ["cart", "db"]}, SELECTORS), False, id="new edge, same order"),
        pytest.param(appgroup(CHAIN, ["db", *SELECTORS[:2]]), False, id="other declaration, same order"),
        pytest.param(appgroup({"db": ["cart"]}, SELECTORS), True, id="other order"),
        pytest.param(appgroup(CHAIN, SELECTORS, algorithm="TarjanSort"), True, id="other algorithm, same order"),
    ],
)
def test_calculation_time_belongs_to_the_order(document: dict[str, Any], moved: bool) -> None:
    first = status([])
    second = status([], current=first, now=LATER, document=document)
    assert (second.topology_calculation_time != first.topology_calculation_time) is moved


PLACED = [
    pytest.param([], "False", "NoPods", id="no pods"),
    pytest.param(ALL, "True", "AllPodsBound", id="all there"),
    pytest.param(ALL[:2], "False", "WorkloadsWithoutPods", id="a workload without pods"),
    pytest.param([*ALL, facts("web-2", "web", node="")], "False", "PodsWaiting", id="a replica waits"),
    pytest.param([*ALL, facts("web-2", "web", node="", deleting=True)], "True", "AllPodsBound", id="one ends unbound"),
    pytest.param([*ALL[:2], facts("db-1", "db", deleting=True)], "False", "WorkloadsWithoutPods", id="last one ends"),
    pytest.param([*ALL[:2], facts("db-1", "db", phase="Failed")], "False", "WorkloadsWithoutPods", id="failed pod"),
    pytest.param([facts("db-1", "db", phase="Succeeded")], "False", "NoPods", id="only finished pods"),
    pytest.param([*ALL, facts("x-1", "stranger", node="")], "True", "AllPodsBound", id="strangers do not count"),
    pytest.param([pod._replace(phase="Pending") for pod in ALL], "True", "AllPodsBound", id="bound, not running yet"),
]


@pytest.mark.parametrize(("pods", "expected", "reason"), PLACED)
def test_placed(pods: list[PodFacts], expected: str, reason: str) -> None:
    condition = find_condition(status(pods).conditions, "Placed")
    assert condition is not None
    assert (condition.status.value, condition.reason) == (expected, reason)


def test_transition_time_changes_with_the_status_only() -> None:
    first = status([])
    still_false = status(ALL[:1], current=first, now=LATER)
    true = status(ALL, current=still_false, now=LATER)
    times = []
    for result in (first, still_false, true):
        condition = find_condition(result.conditions, "Placed")
        assert condition is not None
        times.append(condition.last_transition_time)
    assert times == [NOW.replace(microsecond=0), NOW.replace(microsecond=0), LATER.replace(microsecond=0)]


def test_an_invalid_spec_keeps_the_last_good_order() -> None:
    good = status(ALL)
    broken = unreadable(generation=2)
    result = status(ALL, current=good, now=LATER, document=broken)
    assert result.topology_order == good.topology_order
    assert result.algorithm == "KahnSort"
    assert result.topology_calculation_time == good.topology_calculation_time
    assert result.observed_generation == 2
    ordered, placed = (find_condition(result.conditions, name) for name in ("Ordered", "Placed"))
    assert ordered is not None
    assert placed is not None
    assert (ordered.status, ordered.reason) == (ConditionStatus.FALSE, "InvalidSpec")
    assert "spec.numMembers: input should be greater than or equal to 1" in ordered.message
    assert (placed.status, placed.reason) == (ConditionStatus.UNKNOWN, "InvalidSpec")


def test_an_order_kept_from_an_older_version_becomes_sorted_by_selector() -> None:
    good = status(ALL)
    by_index = good.model_copy(
        update={"topology_order": tuple(sorted(good.topology_order, key=lambda entry: entry.index))}
    )
    result = status(ALL, current=by_index, document=unreadable())
    assert [entry.workload.selector for entry in result.topology_order] == ["cart", "db", "web"]
    assert result.order_summary == "web,cart,db"


def test_an_invalid_spec_from_the_start_has_no_order() -> None:
    result = status([], document=unreadable())
    assert result.topology_order == ()
    assert result.order_summary is None
    assert result.topology_calculation_time is None


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(None, id="absent"),
        pytest.param({}, id="empty"),
        pytest.param({"topologyOrder": "nonsense"}, id="wrong type"),
        pytest.param({"conditions": [{"type": "Ordered"}]}, id="incomplete condition"),
    ],
)
def test_unreadable_status_counts_as_empty(raw: Any) -> None:
    assert read_status({"status": raw}) == AppGroupStatus()


def test_foreign_conditions_are_left_to_their_owners() -> None:
    written = status(ALL).to_api()
    foreign = {**written["conditions"][0], "type": "Audited"}
    assert read_status({"status": {**written, "conditions": [foreign, *written["conditions"]]}}) == status(ALL)


_pods = st.lists(
    st.builds(
        facts,
        st.text("abc", min_size=1, max_size=3),
        st.sampled_from([*SELECTORS, "stranger", ""]),
        node=st.sampled_from(["", "n1", "n2"]),
        phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
        deleting=st.booleans(),
        created=st.none() | st.just(CREATED),
    ),
    max_size=8,
    unique_by=lambda pod: pod.name,
)
_documents = st.sampled_from(
    [
        appgroup(CHAIN, SELECTORS),
        appgroup({"cart": ["db"], "db": ["cart"]}, SELECTORS),
        appgroup({"web": ["nowhere"]}, SELECTORS),
        unreadable(),
        boutique(algorithm="AlternateTarjan"),
    ]
)


@given(_documents, _pods)
def test_status_is_a_fixed_point_that_survives_the_api(document: dict[str, Any], pods: list[PodFacts]) -> None:
    first = status(pods, document=document)
    echoed = read_status({"status": first.to_api()})
    assert echoed == first
    assert status(list(reversed(pods)), current=echoed, now=LATER, document=document) == first


@given(_documents, _documents, _pods, _pods)
def test_status_forgets_its_history_but_for_times(
    document: dict[str, Any], other: dict[str, Any], pods: list[PodFacts], before: list[PodFacts]
) -> None:
    fresh = status(pods, document=document)
    led = status(pods, document=document, current=status(before, document=other), now=LATER)
    order_may_stay = fresh.topology_order == ()
    times = {"schedule_start_time", "topology_calculation_time", "conditions"}
    skipped = times | ({"topology_order", "order_summary", "algorithm"} if order_may_stay else set())
    assert led.model_dump(exclude=skipped) == fresh.model_dump(exclude=skipped)
    said = [
        [(item.type, item.status, item.reason, item.message) for item in result.conditions] for result in (led, fresh)
    ]
    assert said[0] == said[1]

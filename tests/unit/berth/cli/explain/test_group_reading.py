"""What is asked of the API server about one AppGroup, and what is done without."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from berth.api.labels import LABEL_APPGROUP
from berth.cli.explain.group import group_document
from berth.cli.explain.group_reading import GroupFacts, read_group_facts
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.meta import MOST_ENTRIES
from berth.kube.objects import CustomObject, ObjectMeta
from berth.scheduling.cache.large_pods import entries
from berth.scheduling.configuration import Profile, TopologyReference
from tests.support import kinds

GROUP = CustomObject(metadata=ObjectMeta(name="shop", namespace="own"))
NAMED = Profile(network_topology=TopologyReference(namespace="net", name="t"))


class Server:
    """Answers lists by plural and namespace, and refuses others."""

    def __init__(self, *forbidden: str, **answers: list[Any]) -> None:
        self.forbidden = forbidden
        self.answers = answers
        self.asked: list[str] = []

    async def list_all(
        self, resource: Any, *, namespace: str | None = None, label_selector: str | None = None
    ) -> list[Any]:
        place = f"{resource.plural}/{namespace or '*'}"
        self.asked.append(place + (f"?{label_selector}" if label_selector else ""))
        if place in self.forbidden:
            raise ApiError(status=403, reason="Forbidden", message=f"cannot list resource {place}")
        answer = self.answers.get(place.replace("/", "_").replace("*", "all").replace("-", "_"), [])
        return [
            msgspec.json.decode(msgspec.json.encode(item), type=resource.type) if isinstance(item, dict) else item
            for item in answer
        ]


def topology(cost: Any = 5) -> CustomObject:
    body = kinds.network_topology(kinds.weight_set(z1={"z2": cost}))
    return CustomObject.of({"metadata": {"name": "t", "namespace": "own"}, "spec": body["spec"]})


async def read(server: Server, profile: Profile | None = None) -> GroupFacts:
    return await read_group_facts(cast("ApiClient", server), GROUP, profiles=[profile or Profile()])


async def test_only_the_groups_own_namespaces_are_looked_at_but_for_nodes() -> None:
    server = Server()
    facts = await read(server)
    assert facts == GroupFacts(GROUP, [], Profile(), [], [], [], [], [])
    assert set(server.asked) == {
        "pods/own?appgroup.diktyo.x-k8s.io=shop",
        "nodes/*",
        "networktopologies/own",
        "networktopologies/berth-system",
        "events/own",
        "services/own",
    }


@pytest.mark.parametrize(
    ("own", "profile", "asked"),
    [
        pytest.param([topology()], Profile(), ["own"], id="one of its own"),
        pytest.param([topology("near")], Profile(), ["own", "berth-system"], id="one of its own that is broken"),
        pytest.param([], Profile(system_namespace="own"), ["own"], id="it is the system namespace"),
        pytest.param([topology()], NAMED, ["net"], id="configured"),
    ],
)
async def test_networktopologies_are_asked_for_where_the_one_that_serves_may_be(
    own: list[CustomObject], profile: Profile, asked: list[str]
) -> None:
    server = Server(networktopologies_own=own)
    await read(server, profile)
    assert [place for place in server.asked if "topologies" in place] == [f"networktopologies/{name}" for name in asked]


async def test_what_may_not_be_listed_is_noted() -> None:
    places = ("nodes/*", "networktopologies/own", "networktopologies/berth-system", "events/own", "services/own")
    facts = await read(Server(*places))
    assert facts.unread == ["nodes", "networktopologies", "events", "services"]


async def test_the_system_namespace_is_not_missed_beside_a_topology_of_its_own() -> None:
    facts = await read(Server("networktopologies/berth-system", networktopologies_own=[topology()]))
    assert (len(facts.topologies), facts.unread) == (1, [])


async def test_without_the_right_to_list_pods_there_is_no_explanation() -> None:
    with pytest.raises(ApiError, match="cannot list resource pods"):
        await read(Server("pods/own"))


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        pytest.param({}, ["appgroup.diktyo.x-k8s.io", "appgroup.diktyo.x-k8s.io.workload", "l0"], id="small"),
        pytest.param(
            {f"l{n}": "1" for n in range(MOST_ENTRIES)},
            ["appgroup.diktyo.x-k8s.io", "appgroup.diktyo.x-k8s.io.workload"],
            id="large",
        ),
    ],
)
async def test_a_member_is_told_of_however_large_it_is_and_takes_little(more: dict[str, str], kept: list[str]) -> None:
    names = {"appgroup.diktyo.x-k8s.io": "shop", "appgroup.diktyo.x-k8s.io.workload": "front"}
    pod = {"metadata": {"name": "p", "namespace": "own", "uid": "u", "labels": names | {"l0": "1"} | more}}
    facts = await read(Server(pods_own=[pod]))
    (found,) = facts.pods
    assert sorted(found.metadata.labels) == kept
    assert entries(found) < 20
    document = group_document(facts, schedulers=["berth-scheduler"], now=datetime.now(UTC))
    assert [(row["name"], row["selector"]) for row in document["pods"]] == [("p", "front")]


@pytest.mark.parametrize(
    ("schedulers", "spread"),
    [
        pytest.param([], "soft", id="no pods"),
        pytest.param(["berth-zone"], "zone", id="the second"),
        pytest.param(["berth-scheduler", "berth-zone", "berth-zone"], "zone", id="most of them"),
        pytest.param(["berth-zone", "berth-scheduler"], "soft", id="as many"),
        pytest.param(["another"], "soft", id="none of ours"),
    ],
)
async def test_the_profile_that_most_pods_name_counts(schedulers: list[str], spread: str) -> None:
    pods = [
        {
            "metadata": {"name": f"p{n}", "namespace": "own", "uid": f"u{n}", "labels": {LABEL_APPGROUP: "shop"}},
            "spec": {"schedulerName": scheduler},
        }
        for n, scheduler in enumerate(schedulers)
    ]
    zone = {"schedulerName": "berth-zone", "spread": "zone"}
    profiles = [Profile(), Profile.model_validate(zone)]
    facts = await read_group_facts(cast("ApiClient", Server(pods_own=pods)), GROUP, profiles=profiles)
    assert facts.profile.spread == spread

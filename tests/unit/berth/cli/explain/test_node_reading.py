"""What is asked of the API server about one node: by selector, as little as the waiting pods' rules allow."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from berth.cli.explain.node import NodeFacts
from berth.cli.explain.node_reading import MAX_NAMED, read_node_facts
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import Node, Pod
from tests.support import builders
from tests.support.node_explanations import placed, pod

WAITING = "spec.nodeName=,status.phase=Pending,spec.schedulerName=berth-scheduler"
HERE = "spec.nodeName=n1"
PLACED = "spec.nodeName!="


class Server:
    """Answers lists, and remembers the selectors by (plural, namespace)."""

    def __init__(self, *forbidden: str, **answers: list[Any]) -> None:
        self.forbidden = forbidden
        self.answers = answers
        self.asked: list[tuple[str, str, str]] = []

    async def list_all(
        self, resource: Any, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> list[Any]:
        self.asked.append((resource.plural, namespace or "", label_selector or field_selector))
        if resource.plural in self.forbidden:
            raise ApiError(status=403, reason="Forbidden", message=f"cannot list resource {resource.plural}")
        if resource.plural == "networktopologies":
            raise ApiError(status=404, reason="NotFound", message="no such kind")
        found = self.answers.get({HERE: "here", WAITING: "waiting"}.get(field_selector, resource.plural), [])
        return [msgspec.to_builtins(item) for item in found] if resource.type is dict else found

    def pods(self) -> set[tuple[str, str]]:
        """(namespace, selector) of the lists of pods."""
        return {(namespace, selector) for plural, namespace, selector in self.asked if plural == "pods"}


async def read(
    server: Server, *, stated: Pod | None = None, namespace: str | None = None, links: bool = False
) -> NodeFacts:
    node: Node = builders.node("n1")
    client = cast("ApiClient", server)
    return await read_node_facts(
        client, node, schedulers=["berth-scheduler"], namespace=namespace, stated=stated, links=links
    )


async def test_a_node_without_pods_of_berth_while_none_waits_takes_two_lists() -> None:
    server = Server(here=[pod("q", on="n1", scheduler="default-scheduler")])
    facts = await read(server)
    assert [item.metadata.name for item in facts.here] == ["q"]
    assert server.asked == [("pods", "", HERE), ("pods", "", WAITING)]


async def test_partners_are_found_by_the_label_of_their_groups() -> None:
    server = Server(here=[placed("front-1", "front")])
    await read(server)
    assert server.pods() == {("", HERE), ("", WAITING), ("", "appgroup.diktyo.x-k8s.io in (shop)")}


async def test_services_are_those_of_the_namespaces_of_groups() -> None:
    here = [placed("front-1", "front", namespace="shop"), pod("q", on="n1", namespace="other")]
    server = Server(here=here, waiting=[pod("front-2", "front", namespace="late")], services=["s"])
    facts = await read(server)
    assert list(facts.services) == ["s", "s"]
    assert [namespace for plural, namespace, _ in server.asked if plural == "services"] == ["late", "shop"]


async def test_of_many_namespaces_all_services_are_listed_at_once() -> None:
    here = [placed(f"front-{number}", "front", namespace=f"n{number}") for number in range(MAX_NAMED + 1)]
    server = Server(here=here)
    await read(server)
    assert [namespace for plural, namespace, _ in server.asked if plural == "services"] == [""]


async def test_waiting_pods_bring_the_placed_pods_of_their_namespaces() -> None:
    server = Server(waiting=[pod("p"), pod("q", namespace="other"), pod("gone", namespace="third", deleting=True)])
    facts = await read(server)
    assert [item.metadata.name for item in facts.waiting] == ["p", "q"]
    assert server.pods() == {("", HERE), ("", WAITING), ("default", PLACED), ("other", PLACED)}


@pytest.mark.parametrize(
    ("term", "asked"),
    [
        (builders.pod_term("zone", {}, namespaces=["db"]), {("db", PLACED)}),
        (builders.pod_term("zone", {}, namespaceSelector={}), {("", PLACED)}),
    ],
    ids=["namespaces by name", "namespaces by label"],
)
async def test_rules_about_other_namespaces_are_followed(term: dict[str, Any], asked: set[tuple[str, str]]) -> None:
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    server = Server(waiting=[pod("p", spec={"affinity": anti})])
    await read(server)
    assert asked <= server.pods()


async def test_of_many_namespaces_all_pods_are_listed_at_once() -> None:
    server = Server(waiting=[pod("p", namespace=f"n{n}") for n in range(MAX_NAMED + 1)])
    await read(server)
    assert ("", PLACED) in server.pods()
    assert len(server.pods()) == 3


async def test_one_namespace_of_waiting_pods_can_be_asked_for() -> None:
    server = Server()
    await read(server, namespace="shop")
    assert ("shop", WAITING) in server.pods()


async def test_a_stated_pod_is_judged_as_if_it_had_no_node() -> None:
    stated = pod("p", on="n7")
    server = Server(pods=[pod("p", on="n7")])
    facts = await read(server, stated=stated)
    assert [(item.metadata.name, item.spec.node_name) for item in facts.waiting] == [("p", "")]
    assert facts.elsewhere == []
    assert ("", WAITING) not in server.pods()


async def test_volumes_are_only_read_for_pods_that_use_claims() -> None:
    claim = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    with_claim, without = Server(waiting=[pod("p", spec=claim)]), Server(waiting=[pod("p")])
    await read(with_claim)
    await read(without)
    assert "persistentvolumeclaims" in {plural for plural, *_ in with_claim.asked}
    assert "persistentvolumeclaims" not in {plural for plural, *_ in without.asked}


async def test_when_a_pod_got_the_node_is_read_from_its_condition() -> None:
    class Dated(Server):
        async def list_all(self, resource: Any, **selection: Any) -> list[Any]:
            found = await super().list_all(resource, **selection)
            for item in found if resource.type is dict else ():
                moment = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-05-01T11:50:00Z"}
                item["status"]["conditions"] = [{"type": "Ready"}, moment]
            return found

    here = pod("p", on="n1")
    facts = await read(Dated(here=[here]))
    assert facts.bound == {here.metadata.uid: "2026-05-01T11:50:00Z"}


CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}


@pytest.mark.parametrize(
    ("forbidden", "unread"),
    [
        pytest.param(("namespaces",), ("namespaces",), id="namespaces"),
        pytest.param(("nodes",), ("nodes",), id="other-nodes"),
        pytest.param(("appgroups", "networktopologies"), ("appgroups", "networktopologies"), id="berths-kinds"),
        pytest.param(("services",), ("services",), id="services"),
        pytest.param(("persistentvolumes", "csinodes"), ("csinodes", "persistentvolumes"), id="storage"),
        pytest.param((), (), id="none"),
    ],
)
async def test_what_may_not_be_listed_is_named_and_the_rest_is_read(
    forbidden: tuple[str, ...], unread: tuple[str, ...]
) -> None:
    here = [placed("front-1", "front"), placed("front-2", "front", namespace="other")]
    facts = await read(Server(*forbidden, here=here, waiting=[pod("p", spec=CLAIM)]))
    assert tuple(sorted(facts.unread)) == unread
    assert [item.metadata.name for item in facts.waiting] == ["p"]


async def test_without_the_right_to_list_pods_there_is_no_explanation() -> None:
    with pytest.raises(ApiError, match="cannot list resource pods"):
        await read(Server("pods"))


async def test_other_trouble_is_no_missing_right() -> None:
    class Broken(Server):
        async def list_all(self, resource: Any, **selection: Any) -> list[Any]:
            if resource.plural == "namespaces":
                raise ApiError(status=500, reason="InternalError", message="no etcd")
            return await super().list_all(resource, **selection)

    with pytest.raises(ApiError, match="no etcd"):
        await read(Broken(waiting=[pod("p")]))


@pytest.mark.parametrize(
    ("links", "waiting", "asked"),
    [
        pytest.param(True, True, [("probereports", "", "metadata.name=n1")], id="of this node alone"),
        pytest.param(True, False, [], id="while none waits"),
        pytest.param(False, True, [], id="no profile judges links"),
    ],
)
async def test_reports_are_read_where_links_are_judged(
    links: bool, waiting: bool, asked: list[tuple[str, str, str]]
) -> None:
    server = Server(waiting=[pod("front-1", "front")] if waiting else [], probereports=["report"])
    facts = await read(server, links=links)
    assert [item for item in server.asked if item[0] == "probereports"] == asked
    assert list(facts.reports) == (["report"] if asked else [])

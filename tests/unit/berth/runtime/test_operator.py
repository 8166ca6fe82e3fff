"""The operator's own logic; with a real API server and kopf: tests/integration/test_operator.py."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import pytest
from kubernetes_asyncio.client import Configuration
from yarl import URL

from berth.kube.client import ApiClient
from berth.kube.connection import Connection, load_connection
from berth.kube.events import EventRecorder
from berth.kube.precedence import Precedence
from berth.kube.resources import APP_GROUPS, NETWORK_TOPOLOGIES, Resource
from berth.runtime import metadata_response
from berth.runtime import operator as operator_module
from berth.runtime.component import ComponentContext
from berth.runtime.health import Checks
from berth.runtime.operator import LIST_PAGE, SILENT_SECONDS, WATCH_SECONDS, Operator
from tests.support.api_server import Answer, Request, api_server, refusal
from tests.support.kube import running, until

CERTIFICATE = Path(__file__).resolve().parents[3] / "data" / "server-certificate"

AGENT = "berth-operator"


def test_the_server_ends_a_watch_before_it_counts_as_silent() -> None:
    assert WATCH_SECONDS < SILENT_SECONDS


def test_a_process_that_follows_nothing_does_not_load_kopf() -> None:
    look = "import sys; import controllers.placement.controller, berth.runtime.process; print('kopf' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", look], check=True, capture_output=True, text=True)
    assert answer.stdout == "False\n"


async def test_the_certificate_has_to_have_the_name_of_the_kubeconfig() -> None:
    configuration = Configuration()
    configuration.ssl_ca_cert, configuration.tls_server_name = str(CERTIFICATE / "server.crt"), "127.0.0.1"
    operator = Operator()
    operator._main = asyncio.get_running_loop()
    with api_server(lambda _: Answer(200, {}), tls=CERTIFICATE) as server:
        configuration.host = server.url.replace("127.0.0.1", "localhost")
        operator._connection = Connection(configuration=configuration, namespace="default")
        session = (await operator._login()).aiohttp_session
        async with session, session.get(configuration.host) as answer:
            assert answer.status == 200


async def test_kopf_acts_for_whom_the_kubeconfig_names_and_by_its_proxy(tmp_path: Path) -> None:
    operator = Operator()
    operator._main = asyncio.get_running_loop()
    with api_server(lambda _: Answer(200, {})) as proxy:
        path = proxy.kubeconfig(tmp_path, proxy_url=proxy.url, server="http://api.example:6443")
        _act_for(Path(path), "jane", "dev", "ops")
        operator._connection = await load_connection(kubeconfig=path)
        session = (await operator._login()).aiohttp_session
        async with session, session.get("http://api.example:6443/api") as answer:
            assert answer.status == 200
    (request,) = proxy.requests
    assert request.path == "http://api.example:6443/api"
    assert (request.headers["authorization"], request.headers["impersonate-user"]) == ("Bearer t", "jane")
    assert session.headers.getall("Impersonate-Group") == ["dev", "ops"]


def _act_for(kubeconfig: Path, user: str, *groups: str) -> None:
    document = json.loads(kubeconfig.read_text())
    document["users"][0]["user"] |= {"as": user, "as-groups": groups}
    kubeconfig.write_text(json.dumps(document))


async def test_kopf_is_started_anew_where_there_are_newer_certificates(tmp_path: Path) -> None:
    """It keeps its session while watches fail, and would go on with an authority that has been replaced for ever."""
    authority = tmp_path / "ca.crt"
    authority.write_text((CERTIFICATE.parent / "client-certificate" / "ca.crt").read_text())
    operator = Operator()
    operator._main = asyncio.get_running_loop()
    with api_server(lambda _: Answer(200, {}), tls=CERTIFICATE) as server:
        path = server.kubeconfig(tmp_path, certificate_authority=str(authority))
        operator._connection = await load_connection(kubeconfig=path)
        before = (await operator._login()).aiohttp_session
        authority.write_text((CERTIFICATE / "server.crt").read_text())
        async with before:
            with pytest.raises(aiohttp.ClientSSLError):
                await before.get(server.url)
        assert operator._changed.is_set()
        after = (await operator._login()).aiohttp_session
        async with after, after.get(server.url) as answer:
            assert answer.status == 200


def announced(plural: str, kind: str) -> dict[str, Any]:
    """A kind as the API server's discovery has it."""
    verbs = ["list", "watch", "patch"]
    return {"name": plural, "singularName": "", "kind": kind, "namespaced": True, "verbs": verbs}


def appgroups_in_pages(request: Request) -> Answer:
    """An API server with two pages of AppGroups, of which nothing changes."""
    url, kind = URL(request.path), APP_GROUPS
    first = "continue" not in url.query
    version = {"groupVersion": kind.api_version, "version": kind.version}
    names = range(LIST_PAGE) if first else range(LIST_PAGE, LIST_PAGE + 3)
    items = [
        {"metadata": {"name": f"g{n}", "namespace": "shop", "uid": f"u{n}", "resourceVersion": "5"}, "spec": {}}
        for n in names
    ]
    page = {"metadata": {"resourceVersion": "9", "continue": "more" if first else ""}, "items": items}
    answers: dict[str, Any] = {
        "/api": {"versions": ["v1"]},
        "/api/v1": {"resources": [announced("namespaces", "Namespace")]},
        "/apis": {"groups": [{"name": kind.group, "versions": [version], "preferredVersion": version}]},
        f"/apis/{kind.api_version}": {"resources": [announced(kind.plural, kind.kind)]},
    }
    return Answer(429) if url.query.get("watch") == "true" else Answer(200, answers.get(url.path, page))


async def followed_until(count: int, directory: Path, answer: Callable[[Request], Answer]) -> tuple[int, list[int]]:
    """Follow AppGroups until so many are known: how often they were listed anew, and the limits of kopf's lists."""
    names: set[str] = set()
    listed: list[None] = []

    def register(registry: kopf.OperatorRegistry) -> None:
        @kopf.on.event(*APP_GROUPS.names, registry=registry)
        def changed(name: str, **_: Any) -> None:
            names.add(name)

    operator = Operator()
    with api_server(answer) as server:
        async with ApiClient(await load_connection(kubeconfig=server.kubeconfig(directory))) as client:
            context = ComponentContext(
                connection=client.connection,
                client=client,
                recorder=EventRecorder(client, controller="test", instance="test", gives_way_to=Precedence()),
                checks=Checks(),
                identity="test",
            )
            following = operator.follow(context, APP_GROUPS, register, listed=lambda: listed.append(None))
            async with running(operator.run(), following):
                await until(lambda: len(names) == count, what="all objects")
        asked = [URL(request.path).query for request in server.requests if request.headers["user-agent"] == AGENT]
    return len(listed), [int(query["limit"]) for query in asked if "limit" in query]


async def test_kinds_that_are_followed_from_the_start_on_begin_together(tmp_path: Path) -> None:
    """kopf that is stopped while it looks around takes seconds for it, and only then is started with all kinds."""
    begun = threading.Event()
    kinds = (APP_GROUPS, NETWORK_TOPOLOGIES)

    def answer(request: Request) -> Answer:
        url = URL(request.path)
        if request.headers["user-agent"] == AGENT:
            begun.set()
        elif url.path.endswith(NETWORK_TOPOLOGIES.plural):
            begun.wait(0.5)  # slow, while kopf could begin with the other
        if url.query.get("watch") == "true":
            return Answer(429)
        versions = [{"groupVersion": kind.api_version, "version": kind.version} for kind in kinds]
        answers: dict[str, Any] = {
            "/api": {"versions": ["v1"]},
            "/api/v1": {"resources": [announced("namespaces", "Namespace")]},
            "/apis": {
                "groups": [
                    {"name": kind.group, "versions": [version], "preferredVersion": version}
                    for kind, version in zip(kinds, versions, strict=True)
                ]
            },
        }
        for kind in kinds:
            answers[f"/apis/{kind.api_version}"] = {"resources": [announced(kind.plural, kind.kind)]}
        return Answer(200, answers.get(url.path, {"metadata": {"resourceVersion": "9"}, "items": []}))

    operator, listed = Operator(), set[str]()
    with api_server(answer) as server:
        async with ApiClient(await load_connection(kubeconfig=server.kubeconfig(tmp_path))) as client:
            context = ComponentContext(
                connection=client.connection,
                client=client,
                recorder=EventRecorder(client, controller="test", instance="test", gives_way_to=Precedence()),
                checks=Checks(),
                identity="test",
            )

            def follow(kind: Resource[Any]) -> Any:
                def register(registry: kopf.OperatorRegistry) -> None:
                    kopf.on.event(*kind.names, registry=registry)(lambda **_: None)

                return operator.follow(context, kind, register, listed=lambda: listed.add(kind.plural))

            async with running(operator.run(), *map(follow, kinds)):
                await until(lambda: listed == {kind.plural for kind in kinds}, what="both kinds listed")
        starts = [each for each in server.requests if each.headers["user-agent"] == AGENT and each.path == "/apis"]
    assert len(starts) == 1


async def test_a_kind_is_listed_page_by_page_and_counts_as_listed_anew_once(tmp_path: Path) -> None:
    """Objects of a megabyte each would not fit into memory together; every known key is due again only once."""
    assert await followed_until(LIST_PAGE + 3, tmp_path, appgroups_in_pages) == (1, [LIST_PAGE, LIST_PAGE])


async def test_a_list_that_expires_between_pages_is_read_in_larger_ones(tmp_path: Path) -> None:
    """Otherwise what is on later pages would never be known where hundreds of pages take minutes."""

    def answer(request: Request) -> Answer:
        query = URL(request.path).query
        late = "continue" in query and int(query["limit"]) == LIST_PAGE
        return refusal(410, "Expired") if late else appgroups_in_pages(request)

    _, asked = await followed_until(LIST_PAGE + 3, tmp_path, answer)
    assert asked == [LIST_PAGE] * 2 + [4 * LIST_PAGE] * 2


async def test_pages_that_have_grown_too_large_to_be_read_are_small_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else no later list of these objects would be read."""
    monkeypatch.setattr(metadata_response, "LARGEST_BODY", 20_000)
    first: list[int] = []

    def answer(request: Request) -> Answer:
        url = URL(request.path)
        if url.path.endswith(APP_GROUPS.plural) and request.headers["user-agent"] == AGENT:
            if "continue" not in url.query:
                first.append(int(url.query["limit"]))
            elif len(first) == 1:
                return refusal(410, "Expired")
            if len(first) == 2:
                return Answer(200, b" " * 20_001)
        return appgroups_in_pages(request)

    await followed_until(LIST_PAGE + 3, tmp_path, answer)
    assert first == [LIST_PAGE, 4 * LIST_PAGE, LIST_PAGE]


async def test_a_watch_that_was_broken_off_is_listed_anew_where_the_server_has_gone_back(tmp_path: Path) -> None:
    """To a backup of etcd: the server takes the watch all the same, and never tells what came with the backup."""
    watches: list[str] = []

    def answer(request: Request) -> Answer:
        url = URL(request.path)
        if url.query.get("watch") == "true":
            watches.append(url.query["resourceVersion"])
            return Answer(200)
        if url.path.endswith(APP_GROUPS.plural) and watches:
            item = {"metadata": {"name": "restored", "namespace": "shop", "uid": "r", "resourceVersion": "7"}}
            return Answer(200, {"metadata": {"resourceVersion": "8"}, "items": [item]})
        return appgroups_in_pages(request)

    await followed_until(LIST_PAGE + 4, tmp_path, answer)
    assert set(watches) <= {"9", "8"}


async def test_pages_are_small_again_once_a_list_has_been_read(tmp_path: Path) -> None:
    """Else one hour in which lists expired would have each later one read in pages of a gigabyte."""
    lists: list[int] = []
    watches: list[None] = []

    def answer(request: Request) -> Answer:
        url = URL(request.path)
        if url.query.get("watch") == "true":
            watches.append(None)
            return Answer(200, b'{"type": "ERROR", "object": {"kind": "Status", "code": 410}}\n')
        if url.path.endswith(APP_GROUPS.plural) and request.headers["user-agent"] == AGENT:
            if "continue" not in url.query:
                lists.append(int(url.query["limit"]))
            elif len(lists) == 1:
                return refusal(410, "Expired")
            if len(watches) == 1:
                item = {"metadata": {"name": "again", "namespace": "shop", "uid": "a", "resourceVersion": "7"}}
                return Answer(200, {"metadata": {"resourceVersion": "10"}, "items": [item]})
        return appgroups_in_pages(request)

    await followed_until(LIST_PAGE + 4, tmp_path, answer)
    assert lists[:3] == [LIST_PAGE, 4 * LIST_PAGE, LIST_PAGE]


async def test_a_server_that_ends_every_watch_at_once_is_not_hammered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one behind a proxy that cuts every watch within the first line: lists tell what watches do not."""
    paused: list[int] = []

    def pause(attempt: int, **_: float) -> float:
        paused.append(attempt)
        return 0.0

    monkeypatch.setattr(operator_module, "backoff", pause)

    def answer(request: Request) -> Answer:
        url = URL(request.path)
        if url.query.get("watch") == "true":
            return Answer(200, b'{"type": "ADDED", "object": {"meta')
        if paused and url.path.endswith(APP_GROUPS.plural) and request.headers["user-agent"] == AGENT:
            item = {"metadata": {"name": "late", "namespace": "shop", "uid": "l", "resourceVersion": "7"}}
            return Answer(200, {"metadata": {"resourceVersion": "9"}, "items": [item]})
        return appgroups_in_pages(request)

    await followed_until(LIST_PAGE + 4, tmp_path, answer)
    assert paused[:4] == [1, 2, 3, operator_module.MAX_HASTY]

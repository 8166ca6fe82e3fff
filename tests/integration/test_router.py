"""The router as a process on a real API server, with the rights of its manifest: pods and associations as they change.

Pods are servers of this machine behind EndpointSlices that the test writes; the latency controller is a stand-in that
gives out a key. Left out: pods on real nodes, and Services that lead users to routers.
"""

from __future__ import annotations

import asyncio
import functools
import signal
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from berth.api.latency_exchange import Identity, IdentitySource, hash_identity
from hack.harness.cluster import REPOSITORY, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from hack.localcluster.rest import Api
from tests.support.latency_controller import CERTIFICATE, KEY, instructions, latency_controller

POLICIES = "/apis/berth.dev/v1alpha1/namespaces/{}/latencypolicies"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"


@functools.cache
def address() -> str:
    """This machine's own address: EndpointSlices hold none of loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unsent:
        unsent.connect(("192.0.2.1", 9))
        found: str = unsent.getsockname()[0]
        return found


@dataclass
class Pod:
    """A server that says its name."""

    node: str
    port: int
    runner: aiohttp.web.AppRunner
    hold: asyncio.Event
    asked: int = 0


@asynccontextmanager
async def pod(node: str) -> AsyncIterator[Pod]:
    async def handle(request: aiohttp.web.Request) -> aiohttp.web.Response:
        found.asked += 1
        if request.path == "/slow":
            await found.hold.wait()
        return aiohttp.web.Response(text=node)

    app = aiohttp.web.Application()
    app.router.add_route("*", "/{any:.*}", handle)
    runner = aiohttp.web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await aiohttp.web.TCPSite(runner, address(), 0).start()
    found = Pod(node, runner.addresses[0][1], runner, asyncio.Event())
    try:
        yield found
    finally:
        found.hold.set()
        await runner.cleanup()


class Stage:
    """A namespace with the router's manifest, a policy, and a slice for each pod."""

    def __init__(self, cluster: LocalCluster, namespace: str, directory: Path) -> None:
        self.cluster, self.namespace, self.directory = cluster, namespace, directory
        self.api: Api = cluster.api()
        self.processes: list[ControllerProcess] = []
        for document in yaml.safe_load_all((REPOSITORY / "examples" / "router" / "router.yaml").read_text()):
            if document["kind"] in ("ServiceAccount", "Role", "RoleBinding"):
                group = document["apiVersion"]
                root = f"/api/{group}" if "/" not in group else f"/apis/{group}"
                self.api.request("POST", f"{root}/namespaces/{namespace}/{document['kind'].lower()}s", document)
        spec = {"targetRef": {"name": "web"}, "hardMaxLatency": 50, "users": {"mode": "PerUser"}}
        self.api.request("POST", POLICIES.format(namespace), self.policy(spec=spec))

    def policy(self, **parts: Any) -> dict[str, Any]:
        return {
            "apiVersion": "berth.dev/v1alpha1",
            "kind": "LatencyPolicy",
            "metadata": {"name": "web"},
            **parts,
        }

    def associate(self, users: dict[str, str]) -> None:
        found = [
            {"user": hash_identity(KEY, user), "node": node, "lastSeenTime": "2026-11-23T12:00:00Z"}
            for user, node in users.items()
        ]
        path = f"{POLICIES.format(self.namespace)}/web/status"
        self.api.raw("PATCH", path, {"status": {"associations": found}}, content_type="application/merge-patch+json")

    def show(self, shown: Pod, *ports: dict[str, Any], ready: bool = True) -> None:
        """Write the slice of a pod, or change whether it is ready; further ports come before its own."""
        item = {
            "metadata": {"name": shown.node, "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address()], "nodeName": shown.node, "conditions": {"ready": ready}}],
            "ports": [*ports, {"name": "http", "port": shown.port}],
        }
        root = SLICES.format(self.namespace)
        code, _, _ = self.api.raw("POST", root, item)
        if code == 409:
            self.api.request("PUT", f"{root}/{shown.node}", item)

    def start(self, *arguments: str) -> ControllerProcess:
        """Start one."""
        path = self.directory / f"kubeconfig-{len(self.processes)}"
        kubeconfig = self.cluster.service_account_kubeconfig(self.namespace, "berth-router", path=path)
        given = [
            "--router-service=web",
            "--router-policy=web",
            f"--router-namespace={self.namespace}",
            "--router-port=0",
            "--router-linger=0.5",
            *arguments,
        ]
        process = ControllerProcess.start(["router"], kubeconfig=kubeconfig, directory=self.directory, arguments=given)
        self.processes.append(process)
        return process

    def router(self, *arguments: str) -> tuple[ControllerProcess, str]:
        """Start one and wait for it; the process and its URL."""
        process = self.start(*arguments)
        process.wait_ready()
        port = next(entry["port"] for entry in process.records("routing"))
        return process, f"http://127.0.0.1:{port}"

    def close(self) -> None:
        for process in self.processes:
            process.stop(check=False)
        self.api.close()


@pytest.fixture
def stage(cluster: LocalCluster, namespace: str, tmp_path: Path) -> Iterator[Stage]:
    made = Stage(cluster, namespace, tmp_path)
    yield made
    made.close()


@asynccontextmanager
async def pods(stage: Stage, *nodes: str) -> AsyncIterator[list[Pod]]:
    async with AsyncExitStack() as stack:
        found = [await stack.enter_async_context(pod(node)) for node in nodes]
        for each in found:
            await asyncio.to_thread(stage.show, each)
        yield found


async def ask(session: aiohttp.ClientSession, url: str, user: str = "", path: str = "/") -> str:
    async with session.get(url + path, headers={"X-User": user}) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.text()


async def until(condition: Callable[[], Any]) -> None:
    """Wait until a coroutine function says True."""
    async with asyncio.timeout(120):
        while not await condition():
            await asyncio.sleep(0.05)


@asynccontextmanager
async def controller(tmp_path: Path) -> AsyncIterator[list[str]]:
    """A controller that tells users by a header; the options of routers that listen to it."""
    token = tmp_path / "token"
    await asyncio.to_thread(token.write_text, "a-token")
    async with latency_controller() as running:
        running.says(instructions(policy="web", identity=Identity(IdentitySource.HEADER, "X-User")))
        yield [
            f"--router-controller={running.url}",
            f"--router-ca-file={CERTIFICATE / 'server.crt'}",
            f"--router-token-file={token}",
        ]


async def test_users_go_where_the_policy_says_and_follow_it(stage: Stage, tmp_path: Path) -> None:
    """Two routers that know nothing of each other say the same."""
    await asyncio.to_thread(stage.associate, {"ann": "a", "bob": "b"})
    async with controller(tmp_path) as options, pods(stage, "a", "b", "c"), aiohttp.ClientSession() as session:
        urls = [(await asyncio.to_thread(stage.router, *options))[1] for _ in range(2)]

        async def served(user: str, url: str) -> set[str]:
            return {await ask(session, url, user) for _ in range(16)}

        async def served_by(user: str, url: str, nodes: set[str]) -> bool:
            return await served(user, url) == nodes

        for url in urls:
            await until(functools.partial(served_by, "ann", url, {"a"}))
            assert await served("bob", url) == {"b"}
            assert len(await served("eve", url)) > 1, "nobody has said where eve is served"
        await asyncio.to_thread(stage.associate, {"ann": "c"})
        for url in urls:
            await until(functools.partial(served_by, "ann", url, {"c"}))
            assert await served("bob", url) != {"b"}, "it was learnt at once with the other"


async def test_pods_that_are_not_ready_get_no_requests(stage: Stage) -> None:
    async with pods(stage, "a", "b") as (one, two), aiohttp.ClientSession() as session:
        _, url = await asyncio.to_thread(stage.router)
        await asyncio.to_thread(stage.show, one, ready=False)

        async def only_b() -> bool:
            return {await ask(session, url) for _ in range(12)} == {"b"}

        await until(only_b)
        await asyncio.to_thread(stage.show, one)
        await asyncio.to_thread(stage.show, two, ready=False)

        async def only_a() -> bool:
            return {await ask(session, url) for _ in range(12)} == {"a"}

        await until(only_a)


async def test_no_request_fails_while_a_pod_dies_and_another_comes(stage: Stage, tmp_path: Path) -> None:
    """The pod is gone a while before its EndpointSlice says so."""
    await asyncio.to_thread(stage.associate, {"ann": "a"})
    answers: Counter[str] = Counter()
    stop = asyncio.Event()
    async with controller(tmp_path) as options, pods(stage, "a", "b") as (one, _):
        _, url = await asyncio.to_thread(stage.router, *options)

        async def user() -> None:
            async with aiohttp.ClientSession() as session:
                while not stop.is_set():
                    answers[await ask(session, url, "ann")] += 1

        users = [asyncio.create_task(user()) for _ in range(4)]

        async def reached(node: str, count: int) -> None:
            async def enough() -> bool:
                for each in users:
                    if each.done():
                        each.result()
                return answers[node] >= count

            await until(enough)

        try:
            await reached("a", 50)
            await one.runner.cleanup()
            before = answers["b"]
            await reached("b", before + 50)
            await asyncio.to_thread(stage.api.request, "DELETE", f"{SLICES.format(stage.namespace)}/a")
            async with pod("a") as again:
                await asyncio.to_thread(stage.show, again)
                await reached("a", answers["a"] + 50)
        finally:
            stop.set()
            await asyncio.gather(*users)


async def test_a_request_under_way_is_answered_when_the_router_ends(stage: Stage) -> None:
    async with pods(stage, "a") as (one,), aiohttp.ClientSession() as session:
        process, url = await asyncio.to_thread(stage.router, "--router-linger=7")
        slow = asyncio.create_task(ask(session, url, path="/slow"))

        async def under_way() -> bool:
            return one.asked == 1

        await until(under_way)
        process.process.send_signal(signal.SIGTERM)
        async with aiohttp.ClientSession() as other:
            assert await ask(other, url) == "a", "it serves on until nobody is sent to it"

        async def closed() -> bool:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            except OSError:
                return True
            writer.close()
            return False

        await until(closed)
        one.hold.set()
        assert await slow == "a"
        assert await asyncio.to_thread(process.process.wait, 120) == 0


async def test_without_a_policy_that_is_there_all_are_served(stage: Stage) -> None:
    stage.api.request("DELETE", f"{POLICIES.format(stage.namespace)}/web")
    async with pods(stage, "a", "b"), aiohttp.ClientSession() as session:
        _, url = await asyncio.to_thread(stage.router)
        assert {await ask(session, url, "ann") for _ in range(24)} == {"a", "b"}


async def test_which_of_several_ports_is_asked_has_to_be_said(stage: Stage) -> None:
    """But a router that runs goes on with the port of before."""
    metrics = {"name": "metrics", "port": 9}
    async with pods(stage, "a", "b") as (one, two), aiohttp.ClientSession() as session:
        _, running = await asyncio.to_thread(stage.router)
        await asyncio.to_thread(stage.show, one, metrics)
        await asyncio.to_thread(stage.show, two, metrics, ready=False)

        async def only_a() -> bool:
            return {await ask(session, running) for _ in range(12)} == {"a"}

        await until(only_a)

        async def says(process: ControllerProcess, words: str) -> bool:
            code, text = await asyncio.to_thread(process.get, "/readyz")
            return code == 503 and f"{words} --router-service-port" in text

        untold = await asyncio.to_thread(stage.start)
        await until(functools.partial(says, untold, "several ports: write"))
        mistaken = await asyncio.to_thread(stage.start, "--router-service-port=htpp")
        await until(functools.partial(says, mistaken, "no port htpp: write another"))
        _, told = await asyncio.to_thread(stage.router, "--router-service-port=http")
        assert await ask(session, told) == "a"


def test_without_a_service_it_says_what_to_write(stage: Stage) -> None:
    process = ControllerProcess.start(
        ["router"], kubeconfig=stage.cluster.kubeconfig, directory=stage.directory, arguments=[]
    )
    stage.processes.append(process)
    assert eventually(process.process.poll, what="end of the process") != 0
    assert "write --router-service NAME" in process.log.read_text()

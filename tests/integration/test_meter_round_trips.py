"""What the meter makes of users who are far: real packets that take their time on a link to another network namespace.

The meter is a process, its application another; users are programs in the namespace. As root, for the namespace. Like
the link, meter and users are ahead of what else the machine does: an answer is acknowledged with the next request, and
a stated time compared when the request is read, so that who waits for a processor is further off.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from hack.harness.cluster import eventually
from hack.harness.delayed_link import DelayedLink, delayed_link
from hack.harness.processes import ControllerProcess

TOKEN = "a token of readers"
APPLICATION = """
import asyncio
async def serve(reader, writer):
    try:
        while True:
            await reader.readuntil(b"\\r\\n\\r\\n")
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    except asyncio.IncompleteReadError:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
USER = """
import contextlib, os, socket, sys, time
with contextlib.suppress(PermissionError):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(9))
address, port, times, user, pause, kept, stated = sys.argv[1:8]
connection = None
for number in range(int(times)):
    if connection is None or kept == "0":
        connection = socket.create_connection((address, int(port)), 20)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, int(sys.argv[8]))
    time.sleep(float(pause))
    if sys.argv[9] == "1" and number == int(times) // 2:
        print("half of them", flush=True)
        sys.stdin.readline()
    head = f"GET / HTTP/1.1\\r\\nHost: h\\r\\nX-User: {user}\\r\\n"
    if stated == "1":
        head += f"X-Timestamp: {1000 * (time.time() + 1000):.3f}\\r\\n"
    connection.sendall((head + "\\r\\n").encode())
    if int(sys.argv[8]) == 0:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
    answer = b""
    while not answer.endswith(b"ok"):
        answer += connection.recv(4096)
"""


@dataclass
class Stand:
    """A meter, and a link that leads to it."""

    link: DelayedLink
    meter: ControllerProcess
    port: int
    measurements_port: int

    def user(
        self,
        name: str,
        *,
        times: int = 10,
        pause: float = 0.0,
        kept: bool = True,
        stated: bool = False,
        prompt: bool = True,
    ) -> None:
        """Have a user send requests and read the answers.

        Args:
            name: of the user.
            times: requests.
            pause: seconds before each.
            kept: whether the connection is.
            stated: whether the user states the time, by a clock that is far ahead.
            prompt: whether answers are acknowledged at once.
        """
        words = [name, pause, int(kept), int(stated), int(prompt)]
        subprocess.run([*self._command(times, *words), "0"], check=True, timeout=120)

    def moving_user(self, name: str, milliseconds: float, *, times: int, stated: bool) -> None:
        """Have a user's way change after half of the requests, while the connection stays."""
        command = [*self._command(times, name, 0.05, 1, int(stated), 1), "1"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
            assert user.stdin is not None
            assert user.stdout is not None
            assert user.stdout.readline() == "half of them\n"
            self.link.take(milliseconds)
            user.communicate("go on\n", timeout=120)
            assert user.returncode == 0

    def _command(self, times: int, *words: object) -> list[str]:
        program = [sys.executable, "-c", USER, self.link.near, str(self.port), str(times)]
        return [*self.link.enter(), *program, *map(str, words)]

    def measured(self) -> dict[str, tuple[int, ...]]:
        """Round trips by user, in microseconds."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.measurements_port}/measurements", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            document: dict[str, Any] = json.load(answer)
        return {user["user"]: tuple(user["microseconds"]) for user in document["users"]}

    def new(self, before: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
        """Round trips of the one user who was not there before."""
        [name] = set(self.measured()) - set(before)
        return self.measured()[name]


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    directory = tmp_path_factory.mktemp("meter")
    token = directory / "token"
    token.write_text(TOKEN)
    with (
        subprocess.Popen([sys.executable, "-c", APPLICATION], stdout=subprocess.PIPE) as application,
        delayed_link("berth-far", milliseconds=20.0) as link,
    ):
        try:
            assert application.stdout is not None
            options = {
                "address": "0.0.0.0",
                "port": 0,
                "application": f"127.0.0.1:{int(application.stdout.readline())}",
                "identity": "Header",
                "identity-name": "X-User",
                "measurements-port": 0,
                "measurements-token-file": token,
                "linger": 0,
            }
            arguments = [f"--meter-{name}={value}" for name, value in options.items()]
            with ControllerProcess.start(
                ["meter"], kubeconfig="/nowhere", directory=directory, arguments=arguments
            ) as meter:
                [line] = eventually(lambda: list(meter.records("users are measured")), what="the meter")
                with contextlib.suppress(PermissionError):
                    os.sched_setscheduler(meter.pid, os.SCHED_FIFO, os.sched_param(9))
                yield Stand(link, meter, line["port"], line["measurements_port"])
        finally:
            application.kill()


@pytest.mark.parametrize("milliseconds", [20.0, 80.0, 200.0])
@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"kept": False}, id="a connection for each request"),
        pytest.param({"kept": True}, id="one connection, at once"),
        pytest.param({"kept": True, "pause": 0.1}, id="one connection, with pauses"),
        pytest.param({"kept": True, "pause": 0.1, "prompt": False}, id="acknowledged late"),
    ],
)
def test_the_round_trip_is_right_within_a_tenth(stand: Stand, milliseconds: float, how: dict[str, Any]) -> None:
    stand.link.take(milliseconds)
    before = stand.measured()
    stand.user(f"{milliseconds} {how}", **how)
    found = stand.new(before)
    assert statistics.median(found) / 1000 == pytest.approx(milliseconds, rel=0.1)


def test_a_user_who_comes_nearer_is_seen_at_once(stand: Stand) -> None:
    stand.link.take(100.0)
    before = stand.measured()
    stand.moving_user("nearer", 20.0, times=10, stated=False)
    found = stand.new(before)
    assert max(found) / 1000 == pytest.approx(100.0, rel=0.1)
    assert statistics.median(found[-3:]) / 1000 == pytest.approx(20.0, rel=0.1)


def test_a_user_far_away_with_a_wrong_clock_is_measured_by_the_kernel(stand: Stand) -> None:
    stand.link.take(50.0)
    before = stand.measured()
    stand.user("ahead", times=10, stated=True, pause=0.05)
    assert statistics.median(stand.new(before)) / 1000 == pytest.approx(50.0, rel=0.1)


def test_on_a_connection_that_stays_a_longer_way_is_no_news_without_the_clients_time(stand: Stand) -> None:
    stand.link.take(20.0)
    before = stand.measured()
    stand.moving_user("no clock", 100.0, times=20, stated=False)
    # None of 100 ms, and none between: where nothing is sure, nothing is told.
    assert max(stand.new(before)) / 1000 == pytest.approx(20.0, rel=0.4)


def test_on_a_connection_that_stays_a_longer_way_shows_by_the_clients_time(stand: Stand) -> None:
    stand.link.take(20.0)
    before = stand.measured()
    stand.moving_user("clock", 100.0, times=40, stated=True)
    last = stand.new(before)[-5:]
    # A busy machine adds some ms to each way; the way of before would be 20 ms.
    assert statistics.median(last) / 1000 == pytest.approx(100.0, rel=0.25)

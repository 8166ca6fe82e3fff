"""Watch events per second and memory per cached pod, Reflector against json and dicts: ``python -m bench.kube.watch``.

Method and results: docs/benchmarks/kube.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kubernetes_asyncio.client import ApiClient as TypedClient
from kubernetes_asyncio.client import Configuration

from bench.kube.pods import line, pod
from berth.kube.client import ApiClient
from berth.kube.connection import Connection
from berth.kube.reflector import Reflector
from berth.kube.resources import PODS


def with_reflector() -> tuple[Callable[[bytes], None], dict[str, Any]]:
    """Berth: one pass into partial structs."""
    client = ApiClient(Connection(configuration=Configuration(host="https://192.0.2.1"), namespace="default"))
    reflector = Reflector(client, PODS)
    return reflector._apply, reflector.objects


def with_json() -> tuple[Callable[[bytes], None], dict[str, Any]]:
    """The standard library and a dict of dicts, the plain way to write it."""
    objects: dict[str, Any] = {}

    def apply(data: bytes) -> None:
        event = json.loads(data)
        metadata = event["object"]["metadata"]
        objects[f"{metadata['namespace']}/{metadata['name']}"] = event["object"]

    return apply, objects


def with_typed() -> tuple[Callable[[bytes], None], dict[str, Any]]:
    """kubernetes_asyncio's generated models."""
    objects: dict[str, Any] = {}
    client: Any = TypedClient.__new__(TypedClient)  # no session is needed to read JSON
    client.configuration = Configuration()

    def apply(data: bytes) -> None:
        event = json.loads(data)
        item = client.deserialize(SimpleNamespace(data=json.dumps(event["object"])), "V1Pod")
        objects[f"{item.metadata.namespace}/{item.metadata.name}"] = item

    return apply, objects


WAYS = {"reflector": with_reflector, "json and dicts": with_json, "kubernetes_asyncio": with_typed}


def rate(way: str, lines: list[bytes]) -> float:
    """Events per second of processor time."""
    apply, _ = WAYS[way]()
    for each in lines[:100]:
        apply(each)
    started = time.process_time()
    for each in lines:
        apply(each)
    return len(lines) / (time.process_time() - started)


def resident() -> int:
    """Resident memory of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(way: str, count: int, answer: Any) -> None:
    """Send bytes per cached pod and the seconds that one full garbage collection takes then."""
    apply, objects = WAYS[way]()
    apply(line(0, kind="ADDED"))
    gc.collect()
    before = resident()
    gc.disable()
    for number in range(count):
        apply(line(number, kind="ADDED"))
    grown = resident() - before
    assert len(objects) == count
    gc.enable()
    started = time.process_time()
    gc.collect()
    answer.send((grown / count, time.process_time() - started))


def in_child(way: str, count: int) -> tuple[float, float]:
    """Measure in a process of its own, since memory is not given back."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    child = multiprocessing.get_context("spawn").Process(target=memory, args=(way, count, there), daemon=True)
    child.start()
    there.close()
    result: tuple[float, float] = here.recv()
    child.join()
    return result


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=30_000, help="pods to cache")
    parser.add_argument("--events", type=int, default=10_000, help="events per round")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, ways taking turns")
    options = parser.parse_args()
    print(f"one pod is {len(json.dumps(pod(1), separators=(',', ':')))} bytes of JSON\n")
    lines = [line(number) for number in range(options.events)]
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way in WAYS:
            rates[way].append(rate(way, lines if way != "kubernetes_asyncio" else lines[: len(lines) // 20]))
    base = statistics.median(rates["json and dicts"])
    print(f"| {'way':20} | events/s (median) | lowest | highest | ratio |\n|---|---|---|---|---|")
    for way, found in rates.items():
        middle = statistics.median(found)
        print(f"| {way:20} | {middle:,.0f} | {min(found):,.0f} | {max(found):,.0f} | {middle / base:.2f} |")
    print(f"\n| {'way':20} | bytes per pod | {options.pods} pods | full collection |\n|---|---|---|---|")
    for way in ("reflector", "json and dicts"):
        size, seconds = in_child(way, options.pods)
        print(f"| {way:20} | {size:,.0f} | {size * options.pods / 2**20:,.0f} MiB | {seconds * 1000:,.0f} ms |")


if __name__ == "__main__":
    main()

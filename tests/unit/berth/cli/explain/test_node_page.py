"""The page of a node: what matters is there, in 100 columns, bounded."""

from __future__ import annotations

import re
from typing import Any

import pytest

from berth.api.interference import InterferenceClass
from berth.cli.explain.node_page import MAX_ROWS, node_page
from berth.scheduling.cache.socket_choice import Outlook
from tests.support import builders
from tests.support.node_explanations import explained, placed, pod

LONG = "a-rather-long-workload-name"


def page(width: int = 100, **facts: Any) -> str:
    return node_page(explained(**facts), width=width)


def test_the_page_of_a_busy_node() -> None:
    text = page(
        here=[placed("front-1", "front", cpu="1"), placed("lone"), pod("q", on="n1", scheduler="default-scheduler")],
        elsewhere=[placed("back-1", "back", on="n3")],
        waiting=[pod(f"back-{n}", "back", cpu="2") for n in (2, 3)],
    )
    for wanted in (
        "Node n1: 2 pods placed by Berth, 1 by others",
        "Others   1 of default-scheduler, in namespace default; they request nothing",
        "3 jointly",
        "network 3",
        "n2 (5)",
        "10, 1 over limit",
        "1 of 2",
        "NodeResourcesFit: Insufficient cpu",
    ):
        assert wanted in text


def test_who_is_on_which_socket() -> None:
    text = page(160, here=[placed("noisy", outlook=Outlook(1, 1.23, 0.3, InterferenceClass.D)), placed("plain")])
    assert re.search(r"noisy .* 1: D, 1\.23", text)
    assert "SOCKET with the pod's class" in text
    assert "SOCKET" not in page(160, here=[placed("plain")])


@pytest.mark.parametrize("width", [60, 80, 100])
def test_long_names_are_broken_and_never_cut(width: int) -> None:
    here = [placed(f"{LONG}-7d9c6bd4b-{n:05}", LONG) for n in range(3)]
    text = page(width, here=here, waiting=[pod(f"{LONG}-x", LONG, cpu="40")])
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_an_empty_node_says_so() -> None:
    text = page(node=builders.node("n9"))
    for wanted in ("0 pods placed by Berth, 0 by others", "no region or zone label", "none waits"):
        assert wanted in text


def test_a_node_that_takes_nothing_says_why() -> None:
    text = page(node=builders.node("n1", unschedulable=True, taints=["a=b:NoSchedule"]), waiting=[pod("p")])
    for wanted in ("cordoned", "a=b:NoSchedule", "0 of 1", "NodeUnschedulable", "TaintToleration"):
        assert wanted in text


def test_the_question_names_the_pod_that_was_stated() -> None:
    back = pod("back-1", "back")
    text = page(waiting=[back], stated=True, elsewhere=[placed("front-1", "front", on="n2")])
    assert "WOULD IT TAKE default/back-1?" in text
    assert re.search(r"^all in namespace default, appgroup shop\nWORKLOAD +FIT +EDGES +COST", text, re.MULTILINE)
    assert re.search(r"^back +1 of 1 +1 +1$", text, re.MULTILINE)


def test_the_tables_are_bounded() -> None:
    waiting = [pod(f"p{n}") for n in range(MAX_ROWS + 5)]
    text = page(here=[placed(f"p-{n}") for n in range(MAX_ROWS + 5)], waiting=waiting)
    assert text.count("and 5 more; -o json lists them all") == 2


@pytest.mark.parametrize(
    ("unread", "said"),
    [
        ("namespaces", "namespaces: you may not list them; rules that select namespaces by label"),
        ("nodes", "nodes: you may not list them; "),
        ("appgroups", "appgroups: you may not list them; "),
        ("services", "services: you may not list them; "),
        ("networktopologies", "networktopologies: you may not list them; "),
        ("persistentvolumes", "persistentvolumes: you may not list them; "),
    ],
)
def test_a_missing_right_is_named_with_what_it_means(unread: str, said: str) -> None:
    assert said in page(160, waiting=[pod("p")], unread=[unread])

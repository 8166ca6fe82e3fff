"""Plans as text: what a reader sees at 100 columns."""

from __future__ import annotations

from typing import Any

import pytest

from berth.cli.plan.run import render
from berth.cli.plan.tables import Page, amount, number, short, terms_text
from tests.support import plans

GROUP = plans.appgroup("shop", {"front": ["back"], "back": []})
DOCUMENT = plans.made(
    plans.node("node-1", zone="eu-west-a", region="eu-west"),
    plans.node("node-2", zone="eu-west-b", region="eu-west"),
    plans.topology({("eu-west-a", "eu-west-b"): 4}),
    GROUP,
    plans.pod("front", group="shop", workload="front", cpu="3"),
    plans.pod("back", group="shop", workload="back", cpu="3"),
    plans.pod("alone", cpu="100m"),
    *(plans.pod(f"large-{n}", cpu="64") for n in range(8)),
    plans.pod("theirs", scheduler="default-scheduler"),
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
)


def page(*show: str, width: int = 100) -> str:
    return render(DOCUMENT, show=show, width=width)


def test_everything_fits_into_the_width() -> None:
    assert max(map(len, page(width=100).splitlines())) <= 100


def test_no_column_vanishes_on_a_narrow_terminal() -> None:
    text = page("pods", width=80)
    assert "TERMS" in text
    assert max(map(len, text.splitlines())) <= 80


def test_words_of_tables_are_whole_where_nobody_says_how_wide_a_page_is() -> None:
    """In a pipe, names of AppGroups and networks were broken inside a word, so that no search found one."""
    name = "an-application-with-a-long-name"
    group = {**DOCUMENT["appGroups"][0], "name": name}
    document = {**DOCUMENT, "appGroups": [group, {**group, "network": {"topology": f"default/{name * 3}"}}]}
    lines = render(document, show=["groups"], width=None).splitlines()
    assert sum(line.startswith(f"default/{name} ") for line in lines) == 2
    assert sum(f"default/{name * 3}" in line for line in lines) == 1


def test_paragraphs_have_a_width_of_their_own_then() -> None:
    made = Page(width=None)
    made.table(["COLUMN", "FOLDED"], [["x" * 150, "y" * 150]], fold=["FOLDED"])
    made.line("word " * 100)
    assert made.fits(["COLUMN"], [["x" * 150]])
    assert [len(line) > 300 for line in made.text().splitlines()[:3]] == [False, True, True]
    assert max(map(len, made.text().splitlines()[3:])) <= 110


def test_pairs_of_pods_are_not_mistaken_for_what_a_service_routes() -> None:
    text = " ".join(page("pods").split())
    assert "COST OF PAIRS" in text
    assert "PAIRS are those with pods that it calls or that call it" in text
    alone = [pod for pod in DOCUMENT["pods"] if pod["name"] == "alone"]
    assert "PAIRS are" not in render({**DOCUMENT, "pods": alone}, show=["pods"], width=100)


@pytest.mark.parametrize(
    ("section", "shown", "hidden"),
    [
        ("pods", "TERMS", "MEMORY used / free"),
        ("nodes", "MEMORY used / free", "TERMS"),
        ("groups", "MEAN COST", "MEMORY used / free"),
    ],
)
def test_sections_on_request(section: str, shown: str, hidden: str) -> None:
    text = page(section)
    assert shown in text
    assert hidden not in text


@pytest.mark.parametrize("show", [(), ("all",), ("all", "pods")], ids=["default", "all", "all and more"])
def test_all_sections(show: tuple[str, ...]) -> None:
    text = page(*show)
    assert all(title in text for title in ("PODS", "NOT PLACED", "APPGROUPS", "NODES", "NOTES"))


def test_pods_that_do_not_fit_are_always_shown_once_per_cause() -> None:
    text = page("groups")
    assert text.count("Insufficient cpu") == 1
    assert "default/large-5 and 2 more" in " ".join(text.split())


def test_the_last_line_sums_up() -> None:
    assert page().splitlines()[-1] == "3 of 11 pods placed on 2 of 2 nodes"


def test_notes_say_what_was_left_alone() -> None:
    text = page()
    assert "ignored: 1 waiting pod of default-scheduler (--all-pods plans them)" in text
    assert "not read by a plan: 1 Secret" in text


def test_a_score_is_not_mistaken_for_a_cost() -> None:
    [line] = [row for row in page("pods").splitlines() if row.startswith("alone")]
    assert "TaintToleration" in line


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [("cpu", 1.5, "1.5"), ("memory", 2**30, "1Gi"), ("memory", 1.5 * 2**30, "1.5Gi"), ("memory", 512, "512"),
     ("ephemeral-storage", 2**41, "2Ti"), ("hugepages-2Mi", 2**21, "2Mi"), ("memory", -(2**20), "-1Mi")],
)  # fmt: skip
def test_amounts(resource: str, value: float, text: str) -> None:
    assert amount(resource, value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (0, "0"), (0.123456, "0.1235"), (12345.6, "1.235e+04"), (2e6, "2000000")]
)
def test_numbers(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (-3.7e-16, "0"), (0.001, "0.01"), (0.07407, "0.07"), (-0.5, "-0.5"), (2.0, "2"), (42.777, "42.78"),
     (100, "100"), (1234.5, "1234")],
)  # fmt: skip
def test_short_figures(value: float, text: str) -> None:
    assert short(value) == text


@pytest.mark.parametrize("width", [80, 100, 140])
def test_a_group_says_what_its_placement_is_worth(width: int) -> None:
    text = render(DOCUMENT, show=["groups"], width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "4.00 over 1 edge" in text
    assert "100% leave their zone" in text
    assert "no workload has two placed replicas" in text


@pytest.mark.parametrize(
    ("spread", "node", "zone", "said"),
    [
        ("soft", 5, 1, "5 a workload that one node ends, 1 one that a zone ends (spread: soft)"),
        ("node", 1200, 1, "at least 1200 a workload that one node ends, 1 one that a zone ends (spread: node)"),
        ("zone", 12, 12, "at least 12 a workload that one node ends, at least 12 one that a zone ends (spread: zone)"),
    ],
)
def test_prices_are_said_with_the_plan(spread: str, node: int, zone: int, said: str) -> None:
    """What must be survived costs more than that where pods have soft rules, or nodes have prices."""
    prices = {
        "spread": spread, "nodeFailure": node, "zoneFailure": zone, "softRule": 5, "softSpread": 5, "load": 5,
    }  # fmt: skip
    [group] = DOCUMENT["appGroups"]
    text = render({**DOCUMENT, "appGroups": [{**group, "prices": prices}]}, show=["groups"], width=100)
    assert said in " ".join(text.split())


def test_more_groups_than_a_page_has_words_for_keep_their_row() -> None:
    [group] = DOCUMENT["appGroups"]
    many = [{**group, "name": f"shop-{number}"} for number in range(12)]
    text = render({**DOCUMENT, "appGroups": many}, show=["groups"], width=100)
    assert text.count("Mean edge cost") == 10
    assert "default/shop-11" in text
    assert "and 2 more AppGroups" in text


def test_on_narrow_pages_every_term_has_a_line() -> None:
    [first, *_] = DOCUMENT["pods"]
    first = {**first, "decision": {**first["decision"], "strategy": "replicas", "cost": 0.4}}
    first["decision"]["terms"] = {"survival": 0.33, "network": 0.07}
    text = render({**DOCUMENT, "pods": [first]}, show=["pods"], width=80)
    assert "survival 0.33,\n" in text
    assert "PAIRS" not in text


def test_what_a_tenant_states_commands_no_terminal() -> None:
    evil = "a\x1b]0;title\x07\x1b[2Jb"
    made = Page(width=100, color=True)
    made.heading(evil)
    made.line(evil)
    made.item(evil)
    made.fields([("Name", evil)])
    made.table(["COLUMN"], [[evil]])
    shown = "a\\x1b]0;title\\x07\\x1b[2Jb"
    assert made.text().count(shown) == 5
    assert not any(command in made.text() for command in ("\x07", "\x1b]", "\x1b[2J"))


def test_terms_begin_with_the_largest_and_leave_out_zero() -> None:
    assert terms_text({"waste": 0.5, "network": 2.0, "price": 0.0}) == "network 2, waste 0.5"
    assert terms_text({"price": 0.0, "load": -3.7e-16}) == "-"


@pytest.mark.parametrize(
    ("objects", "line", "heading"),
    [
        pytest.param([GROUP], "\nwithout network costs\n", "CROSS-ZONE", id="no network"),
        pytest.param([], "there is no AppGroup shop in default", "PROBLEM", id="no AppGroup"),
    ],
)
def test_groups_without_a_network_or_with_a_problem(objects: list[dict[str, Any]], line: str, heading: str) -> None:
    """A problem, and that there is no network, stood behind "all in network"."""
    pods = [plans.pod(name, group="shop", workload=name) for name in ("front", "back")]
    text = render(plans.made(plans.node("n1"), *objects, *pods), show=["groups"], width=120)
    assert line in text
    assert heading in text
    assert "all in network" not in text
    assert ("without network costs" in text) is bool(objects)


@pytest.mark.parametrize("field", [("\x1b[2J", "x"), ("x", "\x1b[2J")], ids=["name", "value"])
def test_nothing_that_a_cluster_says_drives_the_terminal(field: tuple[str, str]) -> None:
    """Types of conditions are names of fields."""
    made = Page(width=100)
    made.fields([field])
    assert "\x1b" not in made.text()

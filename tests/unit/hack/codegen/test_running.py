"""The tables of options in the page about running components."""

from __future__ import annotations

import pytest

from hack.codegen.running import BEGIN, END, with_options


def test_the_tables_stand_between_the_comments_and_the_rest_stays() -> None:
    page = with_options(f"above\n{BEGIN}\nstale\n{END}\nbelow\n")
    assert page.startswith(f"above\n{BEGIN}\n\n| option | default | meaning |\n")
    assert page.endswith(f"\n{END}\nbelow\n")
    assert "stale" not in page
    assert with_options(page) == page


@pytest.mark.parametrize(
    "row",
    [
        "| `--leader-elect / --no-leader-elect` | on | Work only while holding the Lease berth-COMPONENT;",
        "| `--lease-duration NUMBER` | 15 | Seconds until",
        "| `--context TEXT` | unset | Context of the kubeconfig;",
        "| `--log-format json\\|text` | json | JSON lines",
        "### Options of placement\n\n| option | default | meaning |\n|---|---|---|\n| `--placement-config FILE` |",
        "| `--path-algorithm Dijkstra\\|BellmanFord` | Dijkstra |",
    ],
    ids=["switch", "number", "no default", "choice", "component", "flag of its own name"],
)
def test_rows(row: str) -> None:
    assert row in with_options(f"{BEGIN}{END}")


def test_a_component_without_options_has_no_section() -> None:
    assert "appgroup" not in with_options(f"{BEGIN}{END}")


@pytest.mark.parametrize("page", ["", BEGIN, END, f"{END}{BEGIN}"], ids=["neither", "no end", "no begin", "reversed"])
def test_a_page_without_the_place_is_refused_and_told_what_to_write(page: str) -> None:
    with pytest.raises(ValueError, match="write these two lines") as caught:
        with_options(page)
    assert BEGIN in str(caught.value)

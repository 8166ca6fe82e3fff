"""Documents as tables for people, readable at 100 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from berth.api.text import cost_text, counted, listed, printable, share_text
from berth.cli.figures import calls_line, cost_line, price_line, saving_lines, survival_lines

MAX_NOTES = 12
MAX_DETAILED = 10
"""AppGroups of which more than a row is shown."""
SECTIONS = ("pods", "nodes", "groups")
NOTHING = 1e-6
"""Amounts below are rounding."""
COMFORTABLE_WIDTH = 100
"""Columns that a page is laid out for; on narrower ones every cell may be broken over lines, so that none vanishes."""
UNSTATED_WIDTH = 110
"""Columns of paragraphs where nobody says how many there are."""
WHOLE_WIDTH = 100_000
"""Columns that a table may have there: programs that read it look for whole words."""
LEAST_FOLDED = 20
"""Columns for texts that are broken over lines, at least."""
_GAP = 3
_BYTES = ("memory", "ephemeral-storage")


class Page:
    """A text page that sections are added to."""

    def __init__(self, *, width: int | None, color: bool = False) -> None:
        """Begin; `width` in columns, None where nothing says how many: tables are as wide as they need then."""
        self._buffer = StringIO()
        self.width = width or UNSTATED_WIDTH
        """columns of paragraphs"""
        self._table_width = width or WHOLE_WIDTH
        self._console = Console(
            file=self._buffer, width=self.width, force_terminal=color, no_color=not color, highlight=False, emoji=False
        )
        self._empty = True

    @property
    def narrow(self) -> bool:
        """Whether there are fewer columns than pages are laid out for."""
        return self.width < COMFORTABLE_WIDTH

    def text(self) -> str:
        """Everything so far, without trailing blanks."""
        lines = [line.rstrip() for line in self._buffer.getvalue().splitlines()]
        return "\n".join(lines) + "\n"

    def heading(self, title: str) -> None:
        """A blank line and a title."""
        if not self._empty:
            self._console.print()
        self._console.print(Text(printable(title), style="bold"))
        self._empty = False

    def line(self, text: str, *, indent: int = 0) -> None:
        """A paragraph."""
        self._console.print(Padding(Text(printable(text)), (0, 0, 0, indent)))
        self._empty = False

    def item(self, text: str) -> None:
        """A paragraph with a dash before it."""
        table = Table.grid(padding=(0, 1, 0, 0))
        table.add_row(Text("-"), Text(printable(text)))
        self._console.print(table)
        self._empty = False

    def fields(self, rows: Iterable[tuple[str, str]]) -> None:
        """Names and values below each other."""
        table = Table.grid(padding=(0, 3, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in rows:
            table.add_row(Text(printable(name)), Text(printable(value)))
        self._console.print(table)
        self._empty = False

    def fits(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, fold: Sequence[str] = ()) -> bool:
        """Whether a table has room for whole words: for all of its cells, of columns in `fold` for LEAST_FOLDED."""
        widths = [
            LEAST_FOLDED if name in fold else max(len(printable(cell)) for cell in (name, *(row[at] for row in rows)))
            for at, name in enumerate(columns)
        ]
        return not self.narrow and sum(widths) + _GAP * (len(widths) - 1) <= self._table_width

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        fold: Sequence[str] = (),
        right: Sequence[str] = (),
    ) -> None:
        """Columns as wide as they need, broken over lines if in `fold`; numbers and columns in `right` stand right."""
        rows = [tuple(row) for row in rows]
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for number, name in enumerate(columns):
            cells = [row[number] for row in rows]
            numeric = name in right or (bool(cells) and all(_is_number(cell) for cell in cells if cell))
            table.add_column(
                name,
                justify="right" if numeric else "left",
                no_wrap=name not in fold and not self.narrow,
                overflow="fold" if name in fold or self.narrow else "ellipsis",
            )
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        self._console.width = self._table_width
        self._console.print(table)
        self._console.width = self.width
        self._empty = False


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def number(value: float | None) -> str:
    """A figure, short."""
    return "" if value is None else f"{value:.4g}" if abs(value) < 1e6 else f"{value:.0f}"


def zone_text(document: Mapping[str, Any]) -> str:
    """The zone of a node or pod, with its segment where it has one."""
    return "/".join((document["zone"], *([document["segment"]] if "segment" in document else [])))


def terms_text(terms: Mapping[str, float]) -> str:
    """``network 2, waste 0.01``, without those that are nearly 0; ``-`` when all are."""
    ordered = sorted(terms.items(), key=lambda term: -abs(term[1]))
    return ", ".join(f"{name} {short(value)}" for name, value in ordered if abs(value) >= NOTHING) or "-"


def short(value: float) -> str:
    """A figure with two places at most, ``0.01`` at least unless it is nearly 0."""
    if abs(value) < NOTHING:
        return "0"
    places = f"{max(abs(value), 0.01):.2f}" if abs(value) < 1000 else f"{abs(value):.0f}"
    return ("-" if value < 0 else "") + (places.rstrip("0").rstrip(".") if "." in places else places)


def amount(resource: str, value: float) -> str:
    """A resource amount in its usual unit."""
    if resource in _BYTES or resource.startswith("hugepages-"):
        for unit, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if abs(value) >= size:
                return f"{value / size:.1f}".removesuffix(".0") + unit
    return number(value)


def plan_page(document: Mapping[str, Any], *, show: Sequence[str], width: int | None, color: bool = False) -> str:
    """A plan (see report.py) as text.

    Args:
        document: the plan.
        show: sections of :data:`SECTIONS`.
        width: columns; None where nothing says how many.
        color: whether the reader is a terminal.
    """
    page = Page(width=width, color=color)
    summary = document["summary"]
    if "pods" in show and document["pods"]:
        page.heading("PODS")
        _pods(page, document["pods"])
        _sockets(page, document["pods"])
    if document["notPlaced"]:
        page.heading("NOT PLACED")
        _not_placed(page, document["notPlaced"])
    if "groups" in show and document["appGroups"]:
        page.heading("APPGROUPS")
        _groups(page, document["appGroups"])
    if "nodes" in show and document["nodes"]:
        page.heading("NODES")
        _nodes(page, document["nodes"])
    notes = [
        *document["notes"],
        *(
            f"ignored: {counted(item['pods'], 'waiting pod')} of {item['schedulerName']} (--all-pods plans them)"
            for item in document["ignored"]
        ),
    ]
    if document["skipped"]:
        kinds = ", ".join(f"{item['objects']} {item['kind']}" for item in document["skipped"])
        notes.append(f"not read by a plan: {kinds}")
    if notes:
        page.heading("NOTES")
        for note in notes[:MAX_NOTES]:
            page.item(note)
        if len(notes) > MAX_NOTES:
            page.line(f"- and {len(notes) - MAX_NOTES} more; -o json lists them all")
    page.heading(
        f"{summary['placed']} of {summary['pods']} pods placed on {summary['nodesUsed']} of {summary['nodes']} nodes"
    )
    return page.text()


_PAIRS = ("PAIRS", "COST OF PAIRS")


def _pods(page: Page, pods: Sequence[Mapping[str, Any]]) -> None:
    columns = ["NAMESPACE", "POD", "APPGROUP", "NODE", "ZONE", *_PAIRS, "COST", "TERMS"]
    rows: list[list[str]] = []
    for pod in pods:
        decision = pod["decision"]
        edges = decision.get("edges", 0)
        rows.append(
            [
                pod["namespace"],
                pod["name"],
                pod.get("appGroup", ""),
                pod["node"],
                zone_text(pod),
                str(edges) if edges else "",
                number(decision["edgeCost"]) if edges else "",
                short(decision["cost"]) if decision["strategy"] != "alone" else "",
                terms_text(decision["terms"]) + (" (score)" if decision["strategy"] == "alone" else ""),
            ]
        )
    if page.narrow:
        # The terms say more about a decision.
        kept = [number for number, name in enumerate(columns) if name not in _PAIRS]
        columns, rows = [columns[at] for at in kept], [[row[at].replace(", ", ",\n") for at in kept] for row in rows]
    page.table(*without_constant(columns, rows, ("NAMESPACE", "APPGROUP"), page), fold=("TERMS",))
    if not page.narrow and any(pod["decision"].get("edges") for pod in pods):
        page.line(
            "PAIRS are those with pods that it calls or that call it, and what the network between them costs, whether "
            "a Service sends calls there or not; COST is what the plan keeps low, by its TERMS"
        )


def _sockets(page: Page, pods: Sequence[Mapping[str, Any]]) -> None:
    """Who shares a socket, and what that costs; nothing where no pod has an interference class."""
    found = [(pod, pod["decision"]) for pod in pods if "slowdown" in pod["decision"]]
    if not found:
        return
    page.heading("SOCKETS")
    rows = [
        (
            pod["node"],
            str(decision.get("socket", "none")),
            pod["namespace"],
            pod["name"],
            decision["interferenceClass"],
            f"{decision['slowdown']['suffered']:.3g}",
            f"{decision['slowdown']['caused']:.3g}",
        )
        for pod, decision in sorted(found, key=lambda item: (item[0]["node"], item[1].get("socket", -1)))
    ]
    columns = ("NODE", "SOCKET", "NAMESPACE", "POD", "CLASS", "SLOWDOWN", "CAUSED")
    page.table(*without_constant(columns, rows, ("NAMESPACE",), page))
    page.line(
        "SLOWDOWN is the expected run time divided by that alone; CAUSED by how much others become slower because of "
        "the pod, in sum"
    )


def without_constant(
    columns: Sequence[str], rows: Sequence[Sequence[str]], candidates: Sequence[str], page: Page
) -> tuple[list[str], list[list[str]]]:
    """Leave out columns in which every row is the same, and say so in a line above."""
    kept, said = [], []
    for index, name in enumerate(columns):
        values = {row[index] for row in rows}
        if name in candidates and len(values) == 1:
            value = values.pop()
            if value:
                said.append(f"{name.lower()} {value}")
        else:
            kept.append(index)
    if said:
        page.line(f"all in {', '.join(said)}")
    return [columns[index] for index in kept], [[row[index] for index in kept] for row in rows]


def _not_placed(page: Page, pods: Sequence[Mapping[str, Any]]) -> None:
    """Pods with the same reason share an entry: an application that waits has one cause."""
    together: dict[tuple[str, str], list[str]] = {}
    for pod in pods:
        together.setdefault((pod["reason"], pod["message"]), []).append(f"{pod['namespace']}/{pod['name']}")
    for (reason, message), names in together.items():
        page.line(listed(names, limit=6))
        page.line(f"{reason}: {message}", indent=4)


def _groups(page: Page, groups: Sequence[Mapping[str, Any]]) -> None:
    columns = [
        "APPGROUP",
        "PLACED",
        "NODES",
        "EDGES",
        "MEAN COST",
        "CROSS-ZONE",
        "SURVIVE NODE",
        "ZONE",
        "OVER LIMIT",
        "NETWORK",
        "PROBLEM",
    ]
    networks = {group["network"].get("topology", "") for group in groups if "problem" not in group}
    if networks == {""}:
        page.line("without network costs")
    rows = [
        (
            f"{group['namespace']}/{group['name']}",
            f"{group['placed']}/{group['pods']}",
            str(len(group["nodes"])),
            str(group.get("edges", "")),
            cost_text(group["meanEdgeCost"]) if "meanEdgeCost" in group else "",
            share_text(group["crossZoneShare"]) if "crossZoneShare" in group else "",
            *_survivors(group),
            str(group["pairsOverLimit"]) if group.get("pairsOverLimit") else "",
            "" if "problem" in group or networks == {""} else group["network"].get("topology", "none"),
            group.get("problem", ""),
        )
        for group in groups
    ]
    kept = [number for number, name in enumerate(columns) if any(row[number] for row in rows)]
    columns, table = [columns[at] for at in kept], [[row[at] for at in kept] for row in rows]
    found = without_constant(columns, table, ("NETWORK",), page)
    page.table(*found, fold=("APPGROUP", "NETWORK", "PROBLEM"), right=("CROSS-ZONE",))
    shown = [group for group in groups if "survival" in group][:MAX_DETAILED]
    for group in shown:
        page.heading(f"{group['namespace']}/{group['name']}")
        _group(page, group)
    if len(shown) < len(groups):
        page.heading(f"and {len(groups) - len(shown)} more AppGroups; -o json has the same about each")


def _survivors(group: Mapping[str, Any]) -> list[str]:
    found = group.get("survival")
    if not found or not found["workloads"]:
        return ["", ""]
    return [f"{found[name]} of {found['workloads']}" for name in ("surviveNode", "surviveZone")]


def _group(page: Page, group: Mapping[str, Any]) -> None:
    """What a placement is worth, in words."""
    rows = [("Mean edge cost", cost_line(group)), ("Calls", calls_line(group)), *survival_lines(group)]
    rows += [
        ("Cost of this plan", f"{short(item['cost'])} by strategy {item['strategy']}: {terms_text(item['terms'])}")
        for item in group.get("objective", ())
        if item["cost"] >= NOTHING
    ]
    rows.append(("Prices", price_line(group)))
    page.fields((name, text) for name, text in rows if text)
    show_savings(page, group)


def show_savings(page: Page, group: Mapping[str, Any]) -> None:
    """What other settings of Services would save."""
    savings = saving_lines(group)
    if savings:
        page.heading("COST OF CALLS WITH OTHER SETTINGS OF SERVICES, PODS WHERE THEY ARE")
    for line in savings:
        page.line(line)


def _nodes(page: Page, nodes: Sequence[Mapping[str, Any]]) -> None:
    names = list(dict.fromkeys(name for node in nodes for name in node["resources"] if name != "pods"))
    rows = []
    for node in nodes:
        cells = [node["name"], zone_text(node), f"{node['planned']}", str(node["pods"])]
        for name in names:
            found = node["resources"].get(name)
            cells.append(f"{amount(name, found['used'])} / {amount(name, found['free'])}" if found else "")
        rows.append(cells)
    headers = ["NODE", "ZONE", "NEW", "PODS", *(f"{name.upper()} used / free" for name in names)]
    page.table(headers, rows)

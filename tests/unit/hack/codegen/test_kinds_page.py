"""The reference page of the kinds."""

from __future__ import annotations

import pytest

from hack.codegen.crds import crd
from hack.codegen.kinds import KINDS, SOCKETSTATUS, KindSpec
from hack.codegen.kinds_page import kinds_page
from tests.unit.hack.codegen.schemas import schema_nodes


@pytest.mark.parametrize("kind", KINDS, ids=[kind.kind for kind in KINDS])
def test_it_names_every_field_and_column(kind: KindSpec) -> None:
    page = kinds_page([(kind, crd(kind))])
    for path in schema_nodes(kind):
        if path.startswith((".spec", ".status")) and not path.endswith("[]"):
            assert f"| `{path[1:]}` |" in page, path
    for column in kind.columns:
        assert f"| {column.name} | {'`-o wide`' if column.wide else 'always'} | {column.description} |" in page


def test_a_list_says_what_its_items_are() -> None:
    page = kinds_page([(SOCKETSTATUS, crd(SOCKETSTATUS))])
    assert "| list of objects (at most 64) | Sockets of the node. |" in page
    assert "| list of strings (to 16384 characters) (at most 4096) | CPUs of each core" in page
    assert "| list of int32s (at most 64) | NUMA nodes" in page

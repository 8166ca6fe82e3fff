"""TaintToleration: hard taints."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.plugins.taint_toleration import REASON as REASON_TAINT
from berth.scheduling.plugins.taint_toleration import TaintToleration
from tests.support.builders import node, pod
from tests.support.filtering import cluster, passing, rejected


@pytest.mark.parametrize(
    ("tolerations", "names"),
    [
        pytest.param([], {"clean", "soft"}, id="none"),
        pytest.param([{"key": "k", "operator": "Exists"}], {"clean", "soft", "hard"}, id="exists"),
        pytest.param([{"key": "k", "value": "v"}], {"clean", "soft", "hard"}, id="equal"),
        pytest.param([{"key": "k", "value": "w"}], {"clean", "soft"}, id="other-value"),
        pytest.param(
            [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], {"clean", "soft", "hard"}, id="effect"
        ),
        pytest.param([{"operator": "Exists"}], {"clean", "soft", "hard", "evicting", "both"}, id="everything"),
        pytest.param(
            [{"key": "k", "operator": "Exists"}, {"key": "j", "operator": "Exists"}],
            {"clean", "soft", "hard", "evicting", "both"},
            id="each-taint-by-its-own-toleration",
        ),
    ],
)
def test_taints(tolerations: list[dict[str, Any]], names: set[str]) -> None:
    state = cluster(
        [
            node("clean"),
            node("soft", taints=["k=v:PreferNoSchedule"]),
            node("hard", taints=["k=v:NoSchedule"]),
            node("evicting", taints=["j=v:NoExecute"]),
            node("both", taints=["k=v:NoSchedule", "j=v:NoExecute"]),
        ]
    )
    new = pod("new", spec={"tolerations": tolerations})
    assert passing(TaintToleration(), new, state) == names
    assert set(map(tuple, rejected(TaintToleration(), new, state).values())) <= {(REASON_TAINT,)}

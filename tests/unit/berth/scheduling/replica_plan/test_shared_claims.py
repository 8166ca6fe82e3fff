"""Pods that a claim brings together; how plans go by it is in ../test_planner_volumes.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from berth.scheduling.cache import ClusterState
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.replica_plan.pod_sets import Alike
from berth.scheduling.replica_plan.shared_claims import held_together
from tests.support.placement import member, zoned
from tests.support.volumes import claim, storage_class, store, using, volume


def together(*pod_sets: Sequence[tuple[str, ...]]) -> list[tuple[int, ...]]:
    """Pod sets that are held together, by the claims of each of their pods."""
    state = ClusterState()
    state.update_node(zoned("n"))
    store(
        state,
        *(storage_class(name) for name in ("wait", "stocked")),
        storage_class("now"),
        storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        *(claim(name) for name in ("one", "two", "reserved")),
        *(claim(name, storageClassName=name) for name in ("stocked", "local", "now")),
        claim("bound", bound_to="v"),
        claim("selected", selected="n"),
        volume("v", for_claim="bound"),
        volume("spare", storageClassName="stocked"),
        volume("kept", for_claim="reserved"),
    )
    mask, nothing = np.ones(state.size, dtype=np.bool_), np.zeros(0, dtype=np.int64)
    result, found = FilterResult(mask, state.size), []
    for row, pods in enumerate(pod_sets):
        made = [member(f"a{row}-{number}", "a", spec=using(*claims)) for number, claims in enumerate(pods)]
        candidates = [Candidate(state.info(pod), result, {}) for pod in made]
        found.append(Alike("a", candidates[0].info.template, result, nothing, mask, {}, candidates))
    alone = list(range(state.size))
    for each in (known := held_together(found, state)):
        assert each.part.tolist() == alone
    return [each.pod_sets for each in known]


@pytest.mark.parametrize(
    ("pod_sets", "expected"),
    [
        pytest.param([[("one",), ("one",)]], [(0,)], id="replicas of one claim"),
        pytest.param([[("one",)], [()], [("one", "two")]], [(0, 2)], id="pods of several sets"),
        pytest.param([[("one", "two"), ("one", "two")]], [(0,)], id="two claims of the same pods"),
        pytest.param([[("one",), ("two",)]], [], id="a claim each"),
        pytest.param([[("one",), ("one",), ("two",)]], [], id="some of those that count as alike"),
        pytest.param([[("one",), ("one",), ("two",)], [("one",)]], [(1,)], id="all of one set, some of another"),
    ],
)
def test_pods_of_a_claim_are_held_together(
    pod_sets: list[list[tuple[str, ...]]], expected: list[tuple[int, ...]]
) -> None:
    assert together(*pod_sets) == expected


class TestClaimsOfVolumesThatAreThere:
    """Four nodes; each volume is reached from one of them or from both of an area."""

    @pytest.mark.parametrize(
        ("volumes", "wanted", "parts"),
        [
            pytest.param(["n0", "n2"], "one one", [[0, -1, 2, -1]], id="each of a node"),
            pytest.param(["a", "n0", "b"], "one one", [[0, 0, 2, 2]], id="of areas"),
            pytest.param(["a", "*"], "one one", [[0, 0, 0, 0]], id="of all nodes"),
            pytest.param(["n0 large", "a"], "large large", [[0, -1, -1, -1]], id="large ones"),
            pytest.param(["n0 large", "a"], "one one large large", [[0, 0, -1, -1], [0, -1, -1, -1]], id="two claims"),
            pytest.param(["n1"], "one one two two", [[-1, 1, -1, -1]], id="claims that are alike, of the same pods"),
            pytest.param(["n1"], "one large", [], id="a claim each"),
            pytest.param(["n1 one"], "one one", [], id="a volume of its own"),
            pytest.param([], "one one", [], id="no volume"),
        ],
    )
    def test_pods_are_where_volumes_are_shared(
        self, volumes: Sequence[str], wanted: str, parts: list[list[int]]
    ) -> None:
        state = ClusterState()
        for number, area in enumerate("aabb"):
            state.update_node(zoned(f"n{number}", labels={"zone": f"n{number}", "area": area}))
        fields: dict[str, Any] = {"storageClassName": "local"}
        store(state, storage_class("local", provisioner="kubernetes.io/no-provisioner"))
        store(state, claim("one", **fields), claim("two", **fields), claim("large", "2Gi", **fields))
        for number, what in enumerate(volumes):
            place, *more = what.split()
            term = {"matchExpressions": [{"key": "area", "operator": "In", "values": [place]}]}
            affinity: dict[str, Any] = (
                {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if place in "ab" else {}
            )
            made = volume(
                f"v{number}",
                "2Gi" if more == ["large"] else "1Gi",
                zone=place if place[0] == "n" else "",
                for_claim=more[0] if more == ["one"] else "",
                **fields,
                **affinity,
            )
            store(state, made)
        names = wanted.split()
        claims = [{*names}] * 2 if len(names) > len({*names}) else [{name} for name in names]
        pods = [member(f"p{number}", "a", spec=using(*sorted(each))) for number, each in enumerate(claims)]
        mask = np.ones(state.size, dtype=np.bool_)
        result, nothing = FilterResult(mask, state.size), np.zeros(0, dtype=np.int64)
        candidates = [Candidate(state.info(pod), result, {}) for pod in pods]
        alike = Alike("a", candidates[0].info.template, result, nothing, mask, {}, candidates)
        found = [together.part.tolist() for together in held_together([alike], state)]
        assert sorted(found) == sorted(parts)


@pytest.mark.parametrize("name", ["stocked", "reserved", "local", "now", "bound", "selected", "missing"])
def test_a_claim_whose_volume_is_not_provisioned_for_them_holds_nobody(name: str) -> None:
    assert together([(name,), (name,)]) == []

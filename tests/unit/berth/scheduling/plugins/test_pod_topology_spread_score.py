"""PodTopologySpread's score: soft constraints, on values worked out by hand from kube-scheduler's formula."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import OwnerReference, Pod
from berth.scheduling.configuration import PodTopologySpreadSettings, Profile
from berth.scheduling.plugins.pod_topology_spread import PodTopologySpread
from tests.support.builders import node, pod, spread
from tests.support.filtering import cluster, cycle_of, scores, zoned

X = {"app": "x"}


def soft(*keys: str, **fields: Any) -> dict[str, Any]:
    return {"topologySpreadConstraints": [spread(key, X, whenUnsatisfiable="ScheduleAnyway", **fields) for key in keys]}


def there(**counts: int) -> list[Pod]:
    return [pod(f"{name}-{n}", on=name, labels=X) for name, count in counts.items() for n in range(count)]


def test_soft_spread_prefers_emptier_zones() -> None:
    state = cluster(zoned("a0", "a1", "b0"), there(a0=2, b0=1))
    # two zones: weight ln 4 = 1.386; raw a 2.77 -> 3, b 1.39 -> 1; 100 * (3 + 1 - raw) / 3
    assert scores(PodTopologySpread(), pod("new", spec=soft("zone")), state) == {"a0": 33, "a1": 33, "b0": 100}


def test_max_skew_waters_the_difference_down() -> None:
    state = cluster(zoned("a0", "b0"), there(a0=2, b0=1))
    # raw a 2.77 + 4 -> 7, b 1.39 + 4 -> 5; 100 * (7 + 5 - raw) / 7
    assert scores(PodTopologySpread(), pod("new", spec=soft("zone", maxSkew=5)), state) == {"a0": 71, "b0": 100}


def test_spread_over_hosts_counts_each_node() -> None:
    state = cluster(zoned("a0", "a1", "b0"), there(a0=2, a1=1))
    # three nodes: weight ln 5 = 1.609; raw 3, 2, 0; 100 * (3 + 0 - raw) / 3
    found = scores(PodTopologySpread(), pod("new", spec=soft("kubernetes.io/hostname")), state)
    assert found == {"a0": 0, "a1": 33, "b0": 100}


def test_nodes_without_a_key_score_zero_and_empty_domains_alike() -> None:
    state = cluster([*zoned("a0", "b0"), node("bare")])
    assert scores(PodTopologySpread(), pod("new", spec=soft("zone")), state) == {"a0": 100, "b0": 100, "bare": 0}
    only_bare = scores(PodTopologySpread(), pod("new", spec=soft("zone")), state, without=("a0", "b0"))
    assert only_bare == {"bare": 0}


def test_domains_among_feasible_nodes_set_the_weight_but_all_pods_count() -> None:
    state = cluster(zoned("a0", "a1", "b0", "c0"), there(a1=3, b0=1))
    # a1 and c0 are not feasible: two domains, ln 4; zone a still holds 3 pods: raw 4.16 -> 4, b 1
    found = scores(PodTopologySpread(), pod("new", spec=soft("zone")), state, without=("a1", "c0"))
    assert found == {"a0": 25, "b0": 100}


ZONE = "topology.kubernetes.io/zone"


def owned(name: str, *, on: str = "", owner: str = "ReplicaSet", **arguments: Any) -> Pod:
    made = pod(name, on=on, **{"labels": X, **arguments})
    made.metadata.owner_references = [OwnerReference(kind=owner, name="x", uid="x", controller=True)]
    return made


class TestDefaults:
    """Pods that state no constraint: kube-scheduler's system defaults, or those of the profile."""

    def nodes(self) -> list[Any]:
        hosts = {"a0": "a", "a1": "a", "b0": "b"}
        nodes = [node(name, labels={ZONE: zone, "kubernetes.io/hostname": name}) for name, zone in hosts.items()]
        return [*nodes, node("c0", labels={"kubernetes.io/hostname": "c0"})]

    def test_replicas_of_one_owner_keep_apart(self) -> None:
        state = cluster(self.nodes(), [owned(f"old{n}", on="a0") for n in range(2)])
        # four hosts: ln 6 = 1.79, and 2 for maxSkew 3; three zones, the missing one among them: ln 5 = 1.61, and 4.
        # raw a0 5.58 + 7.22 -> 13, a1 2 + 7.22 -> 9, b0 2 + 4 -> 6, c0 2; 100 * (13 + 2 - raw) / 13
        found = scores(PodTopologySpread(), owned("new"), state)
        assert found == {"a0": 15, "a1": 46, "b0": 69, "c0": 100}

    @pytest.mark.parametrize(
        ("new", "opinion"),
        [
            pytest.param(owned("new"), True, id="ReplicaSet"),
            pytest.param(owned("new", owner="StatefulSet"), True, id="StatefulSet"),
            pytest.param(owned("new", owner="Job"), False, id="Job"),
            pytest.param(pod("new", labels=X), False, id="nobody's"),
            pytest.param(owned("new", labels={}), False, id="without labels"),
            pytest.param(
                owned("new", spec={"topologySpreadConstraints": [spread(ZONE, X)]}), False, id="a hard constraint"
            ),
        ],
    )
    def test_who_is_spread(self, new: Pod, opinion: bool) -> None:
        state = cluster(self.nodes(), [owned("old", on="a0")])
        assert (PodTopologySpread().score(cycle_of(new, state), state.alive) is not None) is opinion

    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            pytest.param({"defaultingType": "List"}, None, id="off"),
            # Two zones: ln 4 = 1.39, c0 has none; 100 * (3 + 0 - raw) / 3.
            pytest.param(
                {"defaultingType": "List", "defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE}]},
                {"a0": 0, "a1": 0, "b0": 100, "c0": 0},
                id="by zone alone",
            ),
        ],
    )
    def test_a_profile_changes_them(self, settings: dict[str, Any], expected: dict[str, float] | None) -> None:
        state = cluster(self.nodes(), [owned(f"old{n}", on="a0") for n in range(2)])
        plugin = PodTopologySpread.of(Profile.model_validate({"podTopologySpread": settings}))
        if expected is None:
            assert plugin.score(cycle_of(owned("new"), state), state.alive) is None
        else:
            assert scores(plugin, owned("new"), state) == expected

    @pytest.mark.parametrize(
        ("settings", "problem"),
        [
            ({"defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE}]}, "only with defaultingType List"),
            ({"defaultingType": "List", "defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE}] * 2}, "keep one"),
        ],
    )
    def test_settings_that_make_no_sense(self, settings: dict[str, Any], problem: str) -> None:
        with pytest.raises(ValueError, match=problem):
            PodTopologySpreadSettings.model_validate(settings)
